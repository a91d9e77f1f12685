"""Searches that improve a solution and a bound until they meet, within a budget."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Literal

from optsched.compilation import clock
from optsched.models.problem import Problem
from optsched.solvers import interruption
from optsched.solvers.result import Budget, Incumbent, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver

LEAST = 1e-6
"""Limit of a solver when none is left."""


class StoppedError(Exception):
    """Signal that a limit is reached."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self.limit = limit


class Progress:
    """Solution, bound and work of a search, and what is left of its budget.

    The search starts when the object is built.

    Parameters
    ----------
    budget : Budget
        Limits of the search.
    on_incumbent : callable or None
        Called with each incumbent, and again when its bound becomes tighter.
    sense : {"max", "min"}
        Direction of the objective.

    Attributes
    ----------
    budget : Budget
        Limits of the search.
    solution : object or None
        Best solution so far.
    value : int or None
        Its objective.
    bound : int or None
        Bound of all objectives.
    work : float
        Work done, in the solver's unit; the search adds to it.
    incumbents : list of Incumbent
        Improving solutions so far, in order of time.
    """

    def __init__(
        self, budget: Budget, on_incumbent: OnIncumbent | None, sense: Literal["max", "min"] = "max"
    ) -> None:
        self.incumbents: list[Incumbent] = []
        self.budget = budget
        self.solution: Any = None
        self.value: int | None = None
        self.bound: int | None = None
        self.work: float = 0
        self._on_incumbent = on_incumbent
        self._sign = 1 if sense == "max" else -1
        self._reported: int | None = None
        self._began = clock()

    def offer(self, solution: Any, value: int, bound: float | None = None) -> None:
        """Keep a solution if it is better than the best so far, and a bound if it is tighter."""
        if self.value is None or self._sign * (value - self.value) > 0:
            self.solution, self.value = solution, value
        self.prove(bound)

    def prove(self, bound: float | None) -> None:
        """Keep a bound if it is tighter than the last one; it is a whole number."""
        self._tighten(bound)
        if self.value is not None:
            self.note(self.value, self.bound)

    def follow(self, found: Incumbent) -> None:
        """Note an incumbent of a solver that goes on from the best solution."""
        self._tighten(found.bound)
        self.note(found.objective, self.bound)

    def go_on(
        self,
        solver: Solver,
        problem: Problem[Any],
        seed: int,
        *,
        hint: Any = None,
        price: float = 1.0,
    ) -> None:
        """Let another solver of the problem go on, from the best solution or a hint.

        `price` is that of its unit of work.

        Raises
        ------
        StoppedError
            If a limit ends it.
        ArithmeticError
            If it fails.
        """
        answer = solver.solve(
            problem,
            budget=self.rest(price=price),
            hint=self.solution if hint is None else hint,
            seed=seed,
            on_incumbent=self.follow,
        )
        self.work += answer.work * price
        if answer.status is Status.ERROR:
            raise ArithmeticError(answer.message)
        if answer.objective is not None:
            self.offer(answer.solution, answer.objective, answer.bound)
        if answer.limit is not None:
            raise StoppedError(answer.limit)

    def _tighten(self, bound: float | None) -> None:
        if _is_tighter(bound, self.bound, self._sign):
            assert bound is not None
            self.bound = round(bound)

    def note(self, objective: int, bound: int | None) -> None:
        """Note an incumbent if its objective is better than that of the last one.

        A tighter bound of the last one is reported, but is no incumbent of its own.

        Parameters
        ----------
        objective : int
            Objective of the solution.
        bound : int or None
            Bound proven so far; None without any.
        """
        gain = self._sign * (objective - self.incumbents[-1].objective) if self.incumbents else 1
        if gain < 0 or (gain == 0 and not _is_tighter(bound, self._reported, self._sign)):
            return
        found = Incumbent(self.seconds(), objective, bound)
        if gain > 0:
            self.incumbents.append(found)
        self._reported = bound
        if self._on_incumbent is not None:
            self._on_incumbent(found)

    @property
    def is_proven(self) -> bool:
        """Whether the best solution meets the bound."""
        return self.value is not None and self.value == self.bound

    def seconds(self) -> float:
        """Return the seconds since the search began."""
        return clock() - self._began

    def exhausted(self) -> Limit | None:
        """Return the limit that is reached, that of work if both are; None if none is."""
        if interruption.requested():
            return Limit.INTERRUPT
        if self.budget.work is not None and self.work >= self.budget.work:
            return Limit.WORK
        if self.budget.seconds is not None and self.seconds() >= self.budget.seconds:
            return Limit.TIME
        return None

    def check(self) -> None:
        """Raise `StoppedError` if a limit is reached."""
        if (limit := self.exhausted()) is not None:
            raise StoppedError(limit)

    def spent(self) -> float:
        """Return the larger share that is spent of a limit, 0 without limits; 1 after Ctrl-C."""
        if interruption.requested():
            return 1.0
        of_work = self.work / self.budget.work if self.budget.work else 0.0
        seconds = self.budget.seconds
        return max(of_work, self.seconds() / seconds if seconds else 0.0)

    def after(self, share: float) -> float:
        """Return the share of the budget that is spent after a share of what is left."""
        spent = self.spent()
        return spent + share * (1 - spent)

    def seconds_left(self, until: float = 1.0) -> float:
        """Return the seconds until that share of the time limit, infinite without a limit."""
        if interruption.requested():
            return 0.0
        if self.budget.seconds is None:
            return math.inf
        return max(0.0, until * self.budget.seconds - self.seconds())

    def work_left(self, until: float = 1.0) -> float:
        """Return the work until that share of the work limit, infinite without a limit."""
        if self.budget.work is None:
            return math.inf
        return max(0.0, until * self.budget.work - self.work)

    def left(self, seconds_per_work: float) -> float:
        """Return the work that may still be done before a limit is reached.

        `seconds_per_work` are the seconds of one unit of work, which turn the time limit into work.
        """
        return min(self.work_left(), self.seconds_left() / seconds_per_work)

    def rest(self, share: float = 1.0, price: float = 1.0) -> Budget:
        """Return a share of what is left, for a solver whose unit of work has a price."""
        seconds, work = share * self.seconds_left(), share * self.work_left() / price
        return Budget(
            None if math.isinf(seconds) else max(LEAST, seconds),
            None if math.isinf(work) else max(LEAST, work),
        )

    def result(self, solver: str, limit: Limit | None, seed: int) -> Result:
        """Return the result of the search of a solver, that a limit has stopped or none.

        The status is `OPTIMAL`, without a limit, if the solution meets the bound; `INFEASIBLE`
        without solution and limit.
        """
        if self.value is None:
            status = Status.INFEASIBLE if limit is None else Status.NO_SOLUTION
        else:
            status = Status.OPTIMAL if self.is_proven else Status.FEASIBLE
        return Result(
            solver=solver,
            status=status,
            solution=self.solution,
            objective=self.value,
            bound=None if status is Status.INFEASIBLE else self.bound,
            limit=None if status is Status.OPTIMAL else limit,
            seconds=self.seconds(),
            work=self.work,
            incumbents=tuple(self.incumbents),
            seed=seed,
        )


def _is_tighter(bound: float | None, other: float | None, sign: int) -> bool:
    if bound is None or other is None:
        return bound is not None
    return sign * (other - bound) > 0


class AnytimeSolver(Solver):
    """Base class of solvers that improve a solution and a bound until they meet.

    A subclass implements `search`. What concerns incumbents, limits and the result is stated here.
    """

    @abstractmethod
    def search(self, problem: Any, progress: Progress, hint: Any, seed: int) -> None:
        """Search until nothing is left to find, with the parameters of `Solver.solve`.

        Solutions and bounds go to ``progress.offer`` and ``progress.prove``, and work to
        ``progress.work``. Without a solution, the problem is infeasible.

        Raises
        ------
        StoppedError
            If a limit ends the search, from ``progress.check`` for instance.
        """

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Solve a problem, see `Solver.solve`."""
        return self.answer(problem, Progress(budget, on_incumbent, problem.sense), hint, seed)

    def answer(
        self, problem: Problem[Any], progress: Progress, hint: Any = None, seed: int = 0
    ) -> Result:
        """Solve a problem with what `progress` keeps."""
        limit = None
        try:
            self.search(problem, progress, hint, seed)
        except StoppedError as stopped:
            limit = stopped.limit
        return progress.result(self.name, limit, seed)
