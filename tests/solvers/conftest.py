"""Programs that are problems themselves, and the solvers that answer any program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from optsched import registry
from optsched.models.problem import Problem, Violation
from optsched.models.program import UNBOUNDED, Formulation, Program, formulations


@dataclass(frozen=True, eq=False)
class Stated(Problem):
    """A problem that is no more than its program; a solution is the vector as a tuple."""

    program: Program
    name = "stated"

    @property
    def sense(self):
        return self.program.sense

    @property
    def size(self):
        return f"{self.program.num_variables} variables"

    def objective(self, solution):
        return self.program.value(np.array(solution, dtype=np.int64))

    def violations(self, solution):
        good = self.program.admits(np.array(solution, dtype=np.int64))
        return [] if good else [Violation("program", "not within bounds")]

    # never written, and so never read
    to_json = from_json = solution_to_json = solution_from_json = describe = None


@formulations.register("stated")
class AsStated(Formulation):
    """The program of a problem that is no more than that."""

    @property
    def program(self):
        return self.problem.program

    def decode(self, x):
        return tuple(x.tolist())

    def encode(self, solution):
        return np.array(solution, dtype=np.int64)


def make_program(
    sense: str,
    objective: list[int],
    bounds: list[tuple[int, int]],
    rows: list[tuple[int, dict[int, int], int]] = (),
    offset: int = 0,
) -> Stated:
    """State a program row by row: (lower, {variable: coefficient}, upper)."""
    lower, upper = np.array(bounds, dtype=np.int64).reshape(-1, 2).T
    return Stated(
        Program(
            sense=sense,
            objective=np.array(objective, dtype=np.int64),
            lower=lower.copy(),
            upper=upper.copy(),
            row_start=np.cumsum([0, *(len(row) for _, row, _ in rows)]),
            columns=np.array([v for _, row, _ in rows for v in row], dtype=np.int64),
            values=np.array([a for _, row, _ in rows for a in row.values()], dtype=np.int64),
            row_lower=np.array([row[0] for row in rows], dtype=np.int64),
            row_upper=np.array([row[2] for row in rows], dtype=np.int64),
            offset=offset,
        )
    )


@pytest.fixture
def program():
    """Return the function that states a program as a problem."""
    return make_program


@pytest.fixture
def unbounded() -> int:
    return UNBOUNDED


def make_solver(name: str, **options: Any):
    """Return a solver, or skip the test with the reason why there is none."""
    cls = registry.solvers[name]
    if cls.installed_version() is None:
        pytest.skip(f"{cls.requires} is not installed")
    return cls(**options)


@pytest.fixture
def solver_named():
    """Return the function that makes an installed solver, or skips."""
    return make_solver


@pytest.fixture(params=[n for n in registry.solvers if registry.solvers[n].models is None])
def generic(request):
    """Each solver in turn that answers any problem."""
    return make_solver(request.param)
