"""An integer program as the program that generic solvers get."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import numbered
from optsched.models.formulation import Formulation, formulations
from optsched.models.integer_program.problem import IntegerProgram, Values
from optsched.models.linear_text import PORTABLE_NAME
from optsched.models.program import UNBOUNDED, Program


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
