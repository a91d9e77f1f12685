"""The contract of a solver."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, ClassVar

from optsched.models.problem import Problem
from optsched.solvers.result import Budget, Incumbent, Result

OnIncumbent = Callable[[Incumbent], None]


class Solver(ABC):
    """Answers problems, and knows nothing of the simulation.

    A subclass is a frozen dataclass whose fields are its options, registered with
    ``@solvers.register(name)``. Heavy packages are imported inside `solve`.

    Attributes
    ----------
    name : str
        The registered name.
    models : frozenset of str or None
        The kinds of problem it answers; none stands for every problem that can be formulated.
    exact : bool
        Whether it proves optimality when it is given enough budget.
    is_rule : bool
        Whether it is a rule to be followed, for what it brings in the long run: its answer counts
        although a fallback's may have the better objective.
    work_unit : str
        What one unit of ``Budget.work`` and ``Result.work`` is.
    seconds_per_solve, seconds_per_work : float
        Nominal seconds on a present-day core of a small solve as such, the building of the
        solver's model included, and of one unit of work: the price of thinking when a simulation
        charges decisions.
    default_work : float
        The budget of one decision inside a simulation.
    requires : str or None
        The distribution that must be installed; none for solvers without one.
    """

    name: ClassVar[str]
    models: ClassVar[frozenset[str] | None] = None
    exact: ClassVar[bool] = True
    is_rule: ClassVar[bool] = False
    work_unit: ClassVar[str] = "nodes"
    seconds_per_solve: ClassVar[float] = 1e-5
    seconds_per_work: ClassVar[float] = 1e-6
    default_work: ClassVar[float] = 1e6
    requires: ClassVar[str | None] = None

    @abstractmethod
    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Answer `problem` within `budget`, warm-started by the solution `hint` if there is one."""

    def prepare(self, problem: Problem[Any] | None = None) -> None:  # noqa: B027
        """Import and compile what `solve` needs, so that no solve is charged for it.

        Parameters
        ----------
        problem : Problem, optional
            What will be answered, for solvers that need more for some problems than for others.
        """

    @property
    def threads(self) -> int:
        """How many threads a solve keeps busy; whoever runs several at once has to know."""
        return 1

    @classmethod
    def supports(cls, problem: Problem[Any]) -> bool:
        """Return whether the solver answers problems of this kind."""
        return cls.models is None or problem.name in cls.models

    @classmethod
    def installed_version(cls) -> str | None:
        """Return the version of what answers; none when it is not installed."""
        from optsched.version import __version__

        return __version__ if cls.requires is None else _distribution_version(cls.requires)

    @classmethod
    def install_command(cls) -> str:
        """Return the command that installs what the solver requires, as an extra if it is one."""
        wanted = (cls.requires or "optsched").lower()
        for requirement in requires("optsched") or ():
            extra = re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)", requirement)
            if extra and extra[1].lower() == wanted:
                return f"pip install 'optsched[{extra[2]}]'"
        return f"pip install {wanted}"


@cache
def _distribution_version(distribution: str) -> str | None:
    # cached: every solve asks, and looking it up takes as long as solving a small problem
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
