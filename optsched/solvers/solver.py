"""The contract of a solver, and the base class of heuristics."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, ClassVar

from optsched.compilation import clock
from optsched.models.problem import Problem
from optsched.solvers.result import Budget, Incumbent, Result, Status

OnIncumbent = Callable[[Incumbent], None]


class Solver(ABC):
    """A solver of problems, independent of the simulation.

    A subclass is a frozen dataclass whose fields are its options, registered with
    ``@solvers.register(name)``. Heavy packages are imported inside `solve`.

    Attributes
    ----------
    name : str
        The registered name, or the name of the class if the solver is not registered.
    models : frozenset of str or None
        Models of the problems that the solver accepts; None for every problem with a formulation.
    exact : bool
        Whether the solver proves optimality if its budget suffices.
    is_rule : bool
        Whether the solver is a published rule: its solution counts even if the fallback's has the
        better objective.
    work_unit : str
        Unit of ``Budget.work`` and ``Result.work``.
    seconds_per_solve, seconds_per_work : float
        Nominal seconds of a small solve, model building included, and of one unit of work. A
        simulation that charges decisions adds these to simulated time.
    default_work : float
        Work limit of one decision inside a simulation.
    requires : str or None
        Distribution that must be installed, if any.
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

    def __init_subclass__(cls) -> None:
        """Name a solver after its class until it is registered."""
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = cls.__name__

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
        """Solve a problem.

        Parameters
        ----------
        problem : Problem
            A problem of one of `models`. It must not be changed.
        budget : Budget
            The time limit in wall-clock seconds, and the work limit in `work_unit`. The search
            ends at the first limit that it reaches; a limit of None never ends it.
        hint : object, optional
            A feasible solution to start from, in the terms of the problem's model. An exact solver
            must return a solution that is at least as good.
        seed : int
            Seed of all random choices.
        on_incumbent : callable, optional
            To be called with each `Incumbent`, in order of time, and again when its bound becomes
            tighter; its exceptions must be passed on.

        Returns
        -------
        Result
            The result; its `limit` is the limit that ended the search, if any.

        Raises
        ------
        InputError
            If the solver refuses the problem, as too large for instance. `optsched.solve` returns
            the refusal as the status ``no-solution``, with the message.
        """

    def prepare(self, problem: Problem[Any] | None = None) -> None:  # noqa: B027
        """Import and compile the dependencies of `solve`, whose time then includes neither.

        Some solvers compile more kernels for some problems.
        """

    @property
    def threads(self) -> int:
        """Number of threads that one solve keeps busy."""
        return 1

    @classmethod
    def supports(cls, model: str) -> bool:
        """Return whether the solver accepts problems of a model; by default, of one of `models`."""
        return cls.models is None or model in cls.models

    @classmethod
    def installed_version(cls) -> str | None:
        """Return the version of the solver, or None if it is not installed."""
        from optsched.version import __version__

        return __version__ if cls.requires is None else _distribution_version(cls.requires)

    @classmethod
    def install_command(cls) -> str:
        """Return the command that installs the solver's distribution, as an extra if possible."""
        wanted = (cls.requires or "optsched").lower()
        for requirement in requires("optsched") or ():
            extra = re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)", requirement)
            if extra and extra[1].lower() == wanted:
                return f"pip install 'optsched[{extra[2]}]'"
        return f"pip install {wanted}"


@cache
def _distribution_version(distribution: str) -> str | None:
    # cached, because a look-up takes as long as solving a small problem
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


class Heuristic(Solver):
    """A heuristic: a feasible solution without a bound, within microseconds.

    Budgets are ignored. A hint with a better objective is returned instead of the heuristic's
    solution. A subclass implements `place` and `effort`.
    """

    exact = False

    @abstractmethod
    def place(self, problem: Any) -> Any:
        """Return a feasible solution, or None if the heuristic finds no solution."""

    @abstractmethod
    def effort(self, problem: Any) -> int:
        """Return the work of `place` in units of ``work_unit``."""

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels that `problem` needs, by solving a copy of it."""
        if problem is not None:
            copy = problem.copy()
            solution = self.place(copy)
            if solution is not None:
                copy.objective(solution)

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Solve a problem; `seed` has no effect."""
        began = clock()
        solution = self.place(problem)
        if solution is None:
            solution = hint
        elif hint is not None:
            best = max if problem.sense == "max" else min
            solution = best(solution, hint, key=problem.objective)
        objective: int | None = None
        incumbents: tuple[Incumbent, ...] = ()
        if solution is not None:
            objective = problem.objective(solution)
            incumbents = (Incumbent(clock() - began, objective, None),)
            if on_incumbent is not None:
                on_incumbent(incumbents[0])
        return Result(
            solver=self.name,
            status=Status.NO_SOLUTION if solution is None else Status.FEASIBLE,
            solution=solution,
            objective=objective,
            seconds=clock() - began,
            work=self.effort(problem),
            incumbents=incumbents,
            seed=seed,
        )
