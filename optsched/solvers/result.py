"""Budgets and results of solvers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.errors import InputError
from optsched.numbers import LARGEST
from optsched.registry import display_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.problem import Problem, Violation


INFINITE = 1e20
"""Smallest number that solvers report for "no bound"; all numbers of a result are below it."""


class Status(StrEnum):
    """Status of a result."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NO_SOLUTION = "no-solution"
    ERROR = "error"


class Limit(StrEnum):
    """Limit that stopped a solve early; the user's patience, after Ctrl-C, is one too."""

    TIME = "time"
    WORK = "work"
    MEMORY = "memory"
    INTERRUPT = "interrupted"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a solve: wall-clock seconds, deterministic work, both, or neither.

    Parameters
    ----------
    seconds : float, optional
        Wall-clock seconds. A result under this limit depends on the machine.
    work : float, optional
        Work in the deterministic unit of the solver (its ``work_unit``): deterministic seconds for
        CP-SAT, nodes for branch and bound. A result under this limit is the same on every machine.

    Raises
    ------
    InputError
        If a limit is not positive, or exceeds 2^53.
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

    def __str__(self) -> str:
        seconds = [] if self.seconds is None else [f"{self.seconds:g} s"]
        work = [] if self.work is None else [f"work of {self.work:g}"]
        return " and ".join(seconds + work) or "no limit"


class Incumbent(NamedTuple):
    """Objective and bound at the moment when a solve improves its best solution.

    Parameters
    ----------
    seconds : float
        Wall-clock seconds since the start of the solve.
    objective : int
        Objective of the new best solution.
    bound : float or None
        Bound proven so far; None without any.
    """

    seconds: float
    objective: int
    bound: float | None


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """Return ``|bound - objective| / max(1, |objective|)``, or None without both."""
    if objective is None or bound is None:
        return None
    return abs(bound - objective) / max(1.0, abs(objective))


@dataclass(frozen=True, slots=True)
class Conflict:
    """Requirements that no solution meets together; bounds of decisions always hold.

    Parameters
    ----------
    names : tuple of str
        Names of rows of the program, ``once_job2`` for instance, in its order.
    families : tuple of str
        The requirement of each, ``once_job`` for instance.
    is_least : bool
        Whether all but any one of them can be met; otherwise time ran out, and some of them may
        have no part in the conflict.
    """

    names: tuple[str, ...]
    families: tuple[str, ...]
    is_least: bool

    def __str__(self) -> str:
        counts = Counter(self.families)
        parts = dict.fromkeys(
            name if counts[family] <= 3 else f"{family} ({counts[family]:,} rows)"
            for name, family in zip(self.names, self.families)
        )
        unsure = "" if self.is_least else "; time did not suffice to leave out what has no part"
        return f"together impossible: {', '.join(parts) or 'the bounds of decisions'}{unsure}"


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """Result of a solve.

    Parameters
    ----------
    solver : str
        Name of the solver or profile.
    status : Status
        `OPTIMAL` and `INFEASIBLE` are claims of a proof. `FEASIBLE` comes with a solution.
        `NO_SOLUTION` means that the budget ran out before a solution was found, or that the solver
        refuses the problem. `ERROR` means a failure or a wrong answer.
    solution : object or None
        Solution in the terms of the problem's model.
    objective : int or None
        Objective as the problem computes it, which may differ from the solver's report.
    bound : float or None
        Proven bound: no solution has a better objective.
    limit : Limit or None
        Limit that stopped the solve.
    seconds : float
        Wall-clock seconds, model building included.
    work : float
        Deterministic work spent, in the solver's unit.
    incumbents : tuple of Incumbent
        Improving solutions in order of time.
    version : str
        Version of the solver.
    seed : int
        Seed of random choices.
    violations : tuple of Violation
        Constraints that the solution breaks.
    verified : bool
        Whether the solution passed verification; also True if there is no solution.
    message : str
        Cause of an `ERROR`; reason of a refusal, for `NO_SOLUTION`.
    wrong : bool
        Whether the status is `ERROR` because verification or another solver's solution refutes
        the result, and not because the solver failed.
    problem : Problem or None
        The problem, in a result of `optsched.solve`.
    conflict : Conflict or None
        Requirements that no solution meets together, of an `INFEASIBLE` result of `optsched.solve`.
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
    problem: Problem[Any] | None = field(default=None, compare=False)
    conflict: Conflict | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        answer = f"objective {self.objective}, bound {self.bound}"
        return f"<Result {self.solver}: {self.status}, {answer}>"

    @property
    def gap(self) -> float | None:
        """Relative gap ``|bound - objective| / max(1, |objective|)``, or None without both."""
        return relative_gap(self.objective, self.bound)

    def plot(self, *, size: tuple[float, float] | None = None, title: bool = True) -> Figure:
        """Draw the solution of a result of `optsched.solve`, as a figure of matplotlib.

        Parameters
        ----------
        size : (float, float), optional
            Width and height in inches; letters are smaller in less than 6 inches.
        title : bool
            Whether to write the title and the line below it.

        Raises
        ------
        InputError
            If there is no verified solution, solutions of the model have no picture, or the size
            is wrong.
        """
        figure: Figure = display_of("figure")(self, size, title)
        return figure

    def _repr_html_(self) -> str:
        html: str = display_of("result")(self)
        return html
