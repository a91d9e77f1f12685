"""What a solver is allowed to spend, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.errors import InputError
from optsched.numbers import LARGEST

if TYPE_CHECKING:
    from optsched.models.problem import Violation


INFINITE = 1e20
"""Solvers write "no bound" as this number or a larger one; every number of an answer is smaller."""


class Status(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NO_SOLUTION = "no-solution"
    ERROR = "error"


class Limit(StrEnum):
    """Which limit stopped a solve before it was done."""

    TIME = "time"
    WORK = "work"
    MEMORY = "memory"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True)
class Budget:
    """What a solver may spend: wall-clock seconds, deterministic work, both or no limit.

    Parameters
    ----------
    seconds : float, optional
        Wall-clock seconds. An answer under this limit depends on the machine.
    work : float, optional
        Work in the solver's own deterministic unit (its ``work_unit``): deterministic seconds for
        CP-SAT, nodes for the branch and bounds. An answer under this limit is the same everywhere.

    Raises
    ------
    InputError
        If a limit is not positive, or above 2^53.
    """

    seconds: float | None = None
    work: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("time limit", self.seconds), ("work limit", self.work)):
            if limit is None:
                continue
            number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if not number or not 0 < limit <= LARGEST:
                expected = "expected a number above 0 and at most 2^53"
                raise InputError(f"{limit!r} is not a {name}; {expected}")


class Incumbent(NamedTuple):
    """The best known solution and bound at a moment of a solve."""

    seconds: float
    objective: int
    bound: float | None


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The answer of a solver.

    Parameters
    ----------
    solver : str
        Name of the solver or profile that answered.
    status : Status
        `OPTIMAL` and `INFEASIBLE` are proven claims of the solver, `FEASIBLE` comes with a
        solution, `NO_SOLUTION` means that none was found within the budget or that the solver
        refuses the problem, `ERROR` that the solver failed or that its answer is wrong.
    solution : object or None
        In the problem's own terms.
    objective : int or None
        As the problem's `objective` computes it, not as the solver reports it.
    bound : float or None
        Proven limit of the objective: no solution is better.
    limit : Limit or None
        The limit that stopped the solve.
    seconds : float
        Wall-clock seconds, building of the solver's model included.
    work : float
        Deterministic work spent, in the solver's unit.
    incumbents : tuple of Incumbent
        The improving solutions in order of time.
    version : str
        Version of the solver.
    seed : int
        The seed that was used.
    violations : tuple of Violation
        What verification found wrong with the solution.
    verified : bool
        Whether the solution passed verification; also true when there is no solution to verify.
    message : str
        What went wrong, for `ERROR`; why the solver refuses the problem, for `NO_SOLUTION`.
    wrong : bool
        Whether the answer was given and is refuted, by verification or by the answer of another
        solver: an `ERROR` that is no mere failure.
    """

    solver: str
    status: Status
    solution: Any = None
    objective: int | None = None
    bound: float | None = None
    limit: Limit | None = None
    seconds: float = 0.0
    work: float = 0.0
    incumbents: tuple[Incumbent, ...] = ()
    version: str = ""
    seed: int = 0
    violations: tuple[Violation, ...] = ()
    verified: bool = False
    message: str = ""
    wrong: bool = False

    def __repr__(self) -> str:
        answer = f"objective {self.objective}, bound {self.bound}"
        return f"<Result {self.solver}: {self.status}, {answer}>"

    @property
    def gap(self) -> float | None:
        """Relative gap ``|bound - objective| / max(1, |objective|)``; none without both."""
        if self.objective is None or self.bound is None:
            return None
        return abs(self.bound - self.objective) / max(1.0, abs(self.objective))

    def _repr_html_(self) -> str:
        rows = (
            ("solver", f"{self.solver} {self.version}"),
            ("status", self.status.value),
            ("objective", self.objective),
            ("bound", self.bound),
            ("seconds", f"{self.seconds:.4g}"),
            ("verified", "yes" if self.verified else "no"),
        )
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows)
        return f"<table>{cells}</table>"
