"""An integer program as the program of generic solvers, and as files state it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.fields import first_few
from optsched.models.export import PORTABLE_NAME
from optsched.models.fields import LARGEST_FIELD, numbered
from optsched.models.integer_program.problem import IntegerProgram, Values
from optsched.models.program import UNBOUNDED, Formulation, Program, formulations
from optsched.models.snapshot import SCALE, Snapshot


@formulations.register("integer-program")
class IntegerProgramFormulation(Formulation[IntegerProgram, Values]):
    """Equations (1) to (3) of the model's page, as they are."""

    @cached_property
    def program(self) -> Program:
        """The program, its rows compressed."""
        problem = self.problem
        lengths = [len(row) for row in problem.rows]
        return Program(
            problem.sense,
            objective=problem.coefficients,
            lower=problem.lower,
            upper=problem.upper,
            row_start=np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))),
            columns=np.array([v for row in problem.rows for v in row], dtype=np.int64),
            values=np.array([a for row in problem.rows for a in row.values()], dtype=np.int64),
            row_lower=_limits(problem.at_least, -UNBOUNDED),
            row_upper=_limits(problem.at_most, UNBOUNDED),
            offset=problem.offset,
            variable_name=_portable(problem.variable_names, "x").__getitem__,
            row_name=_portable(problem.row_names, "r").__getitem__,
        )

    def decode(self, x: NDArray[np.int64]) -> Values:
        """Return the value of each variable."""
        return tuple(np.asarray(x).tolist())

    def encode(self, solution: Values) -> NDArray[np.int64]:
        """Return the values as a vector."""
        return np.array(solution, dtype=np.int64)


def _limits(bounds: Sequence[int | None], none: int) -> NDArray[np.int64]:
    return np.array([none if bound is None else bound for bound in bounds], dtype=np.int64)


def _portable(names: Sequence[str], prefix: str) -> Sequence[str]:
    """Return the names if every LP reader accepts all of them, otherwise numbered ones."""
    return names if all(map(PORTABLE_NAME.fullmatch, names)) else numbered(prefix, len(names))


INFINITE = 1e20
"""Bound that files write for no bound."""

INFINITY = re.compile(r"inf(inity)?", re.IGNORECASE)

Number = int | Decimal


MOST_DECIMALS = 6
"""Most decimals of a number in a file."""


def factor_of(numbers: Iterable[int | Decimal]) -> int:
    """Return the least power of ten that makes all numbers integers.

    >>> factor_of([Decimal("600.1"), Decimal("40"), Decimal("18.60")])
    10
    """
    decimals = 0
    for number in numbers:
        if isinstance(number, int) and abs(number) * 10**decimals <= LARGEST_FIELD:
            continue  # almost all numbers
        number = Decimal(number)
        exponent = number.normalize().as_tuple().exponent
        if not isinstance(exponent, int) or -exponent > MOST_DECIMALS:
            raise InputError(f"{number:f}; expected at most {MOST_DECIMALS} decimals")
        decimals = max(decimals, -exponent)
        if abs(number) * 10**decimals > LARGEST_FIELD:
            raise InputError(f"{number:f}; expected a number of at most {LARGEST_FIELD}")
    factor: int = 10**decimals
    return factor


@dataclass(slots=True)
class Variable:
    """A variable: its bounds, None where the file states none, and whether it is an integer."""

    lower: float | None = None
    upper: float | None = None
    integer: bool = False


@dataclass(slots=True)
class Row:
    """A row: its coefficients by number of the variable, and its bounds."""

    entries: dict[int, float]
    at_least: float = -math.inf
    at_most: float = math.inf


@dataclass(slots=True)
class StatedProgram:
    """What a file states; rows and variables in the order in which it names them first."""

    sense: Literal["max", "min"] = "min"
    offset: float = 0.0
    objective: dict[int, float] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)

    def snapshot(self, path: Path) -> Snapshot:
        """Return the program as a snapshot.

        Rows whose numbers are not integers are multiplied by a power of ten, and so is the
        objective; the origin of the snapshot tells the latter.
        """
        mistakes = [
            *first_few("variables", list(self._continuous()), "variables"),
            *first_few("bounds", list(self._unbounded()), "bounds"),
        ]
        if mistakes:
            raise InputError(*mistakes, file=path)
        rows, at_least, at_most = [], [], []
        place = "the objective"
        try:
            costs = {number: _exact(cost) for number, cost in self.objective.items()}
            offset = _exact(self.offset)
            factor = factor_of([*costs.values(), offset])
            for name, row in self.rows.items():
                place = f"row {name}"
                entries = {number: _exact(a) for number, a in row.entries.items() if a}
                bounds = [
                    None if abs(b) >= INFINITE else _exact(b) for b in (row.at_least, row.at_most)
                ]
                of_row = factor_of([*entries.values(), *(b for b in bounds if b is not None)])
                rows.append({number: int(of_row * a) for number, a in entries.items()})
                least, most = (None if b is None else int(of_row * b) for b in bounds)
                at_least.append(least)
                at_most.append(most)
        except InputError as error:
            raise InputError(*error.mistakes, file=path, field=place) from None
        try:
            problem = IntegerProgram(
                self.sense,
                [int(factor * costs.get(number, 0)) for number in range(len(self.variables))],
                [math.ceil(one.lower or 0) for one in self.variables.values()],
                [math.floor(one.upper or 0) for one in self.variables.values()],
                int(factor * offset),
                list(self.variables),
                rows=rows,
                at_least=at_least,
                at_most=at_most,
                row_names=list(self.rows),
            )
        except InputError as error:
            raise error.within(path) from None
        origin = {"file": path.name}
        return Snapshot(problem, origin if factor == 1 else origin | {SCALE: factor})

    def _continuous(self) -> Iterator[str]:
        for name, variable in self.variables.items():
            if not variable.integer:
                yield f"variable {name} is continuous; expected integer variables only"

    def _unbounded(self) -> Iterator[str]:
        expected = "expected both, at most 10^12 in size"
        for name, variable in self.variables.items():
            lower, upper = variable.lower, variable.upper
            if upper is None or abs(upper) >= INFINITE:
                yield f"variable {name} has no upper bound; {expected}"
            elif lower is None and upper < 0:
                stated = f"has the upper bound {upper:g} and no lower one"
                yield f"variable {name} {stated}, which readers take for 0 or none; {expected}"
            if lower is not None and abs(lower) >= INFINITE:
                yield f"variable {name} has no lower bound; {expected}"


def _exact(number: float) -> Number:
    """Return a number as an integer, or as the shortest decimal: the one in the file."""
    return int(number) if number.is_integer() else Decimal(repr(number))
