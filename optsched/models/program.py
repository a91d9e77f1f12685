"""A solver-neutral integer linear program, the input of every generic solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Integer linear program: optimize ``objective @ x + offset`` subject to rows and bounds.

    Rows are ``row_lower <= A x <= row_upper``, and bounds ``lower <= x <= upper``. All numbers are
    integers, and all variables are integer; with bounds 0 and 1 they are binary. The matrix ``A``
    is stored by rows (compressed sparse rows, as in scipy).

    Parameters
    ----------
    sense : {"max", "min"}
        Direction of the objective.
    objective : int64 array, shape (variables,)
        Objective coefficients.
    lower, upper : int64 array, shape (variables,)
        Bounds of the variables.
    row_start : int64 array, shape (rows + 1,)
        Row ``r`` has its entries at positions ``row_start[r]`` to ``row_start[r + 1]``.
    columns : int64 array, shape (entries,)
        The variable of each entry.
    values : int64 array, shape (entries,)
        The coefficient of each entry.
    row_lower, row_upper : int64 array, shape (rows,)
        Bounds of the rows; `UNBOUNDED` (negative for `row_lower`) for no bound.
    offset : int
        Constant term of the objective.
    variable_name, row_name : callable, optional
        Name of a variable or row by its number, for exports; ``x<number>`` and ``r<number>`` by
        default.
    """

    sense: Literal["max", "min"]
    objective: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    row_start: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.int64]
    row_lower: NDArray[np.int64]
    row_upper: NDArray[np.int64]
    offset: int = 0
    variable_name: Callable[[int], str] = "x{}".format
    row_name: Callable[[int], str] = "r{}".format

    @property
    def num_variables(self) -> int:
        """Number of variables."""
        return len(self.objective)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.row_lower)

    def value(self, x: NDArray[np.int64]) -> int:
        """Return the objective of the vector `x`, shape (variables,), offset included."""
        return int(self.objective @ x) + self.offset

    def admits(self, x: NDArray[np.int64]) -> bool:
        """Return whether the vector `x` is within all bounds of variables and rows, exactly."""
        if (x < self.lower).any() or (x > self.upper).any():
            return False
        rows = np.repeat(np.arange(self.num_rows), np.diff(self.row_start))
        activity = np.zeros(self.num_rows, dtype=np.int64)
        np.add.at(activity, rows, self.values * x[self.columns])
        return not ((activity < self.row_lower) | (activity > self.row_upper)).any()

    @property
    def terms(self) -> NDArray[np.float64]:
        """Largest absolute terms of the objective; a variable without a bound counts as 1.

        The constant term is the last one. The shape is (variables + 1,).
        """
        sizes = np.abs((self.lower, self.upper)).astype(float)
        sizes[sizes == UNBOUNDED] = 1
        terms: NDArray[np.float64] = np.append(self.objective * sizes.max(axis=0), self.offset)
        return np.abs(terms)

    def divided(self, *, offset: bool) -> tuple[Program, int]:
        """Return an equivalent program of smaller numbers, and the divisor of its objective.

        Each row and the objective are divided by the greatest common divisors of their
        coefficients; bounds of rows are rounded to the last integers within. The constant term of
        the objective is left out, unless `offset`.
        """
        constant = self.offset if offset else 0
        divisor = math.gcd(int(np.gcd.reduce(self.objective)), constant) or 1
        lengths = np.diff(self.row_start)
        divisors = np.ones(self.num_rows, dtype=np.int64)
        if len(self.values):
            of_rows = np.gcd.reduceat(np.abs(self.values), self.row_start[:-1][lengths > 0])
            divisors[lengths > 0] = np.maximum(of_rows, 1)
        lower, upper = self.row_lower, self.row_upper
        program = replace(
            self,
            objective=self.objective // divisor,
            offset=constant // divisor,
            values=self.values // np.repeat(divisors, lengths),
            row_lower=np.where(lower == -UNBOUNDED, lower, -(-lower // divisors)),
            row_upper=np.where(upper == UNBOUNDED, upper, upper // divisors),
        )
        return program, divisor


UNBOUNDED = np.iinfo(np.int64).max
"""No upper bound in ``row_upper``; negated, no lower bound in ``row_lower``."""
