"""Budget and incumbents of a search."""

from __future__ import annotations

import math
from typing import Any, Literal

from optsched.compilation import clock
from optsched.solvers import interruption
from optsched.solvers.result import Budget, Incumbent, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent


class Progress:
    """The budget and the incumbents of a search, which starts when the object is built.

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
    incumbents : list of Incumbent
        Improving solutions so far, in order of time.
    """

    def __init__(
        self,
        budget: Budget,
        on_incumbent: OnIncumbent | None,
        sense: Literal["max", "min"] = "max",
    ) -> None:
        self.incumbents: list[Incumbent] = []
        self.budget = budget
        self._on_incumbent = on_incumbent
        self._sign = 1 if sense == "max" else -1
        self._reported: int | None = None
        self._began = clock()

    def seconds(self) -> float:
        """Return the seconds since the search began."""
        return clock() - self._began

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
        found = Incumbent(self.seconds(), objective, bound)
        gain = self._sign * (objective - self.incumbents[-1].objective) if self.incumbents else 1
        if gain > 0:
            self.incumbents.append(found)
        elif gain < 0 or not self._is_tighter(bound):
            return
        self._reported = bound
        if self._on_incumbent is not None:
            self._on_incumbent(found)

    def _is_tighter(self, bound: int | None) -> bool:
        if bound is None or self._reported is None:
            return bound is not None
        return self._sign * (self._reported - bound) > 0

    def left(self, work: float, seconds_per_work: float) -> float:
        """Return the work that may still be done before a limit is reached.

        Parameters
        ----------
        work : float
            Work done so far, in the solver's unit.
        seconds_per_work : float
            Wall-clock seconds of one unit of work, which turn the time limit into work.

        Returns
        -------
        float
            Work in the solver's unit: 0 at a limit, infinite without limits.
        """
        if interruption.requested():
            return 0.0
        left = math.inf
        if self.budget.work is not None:
            left = self.budget.work - work
        if self.budget.seconds is not None:
            left = min(left, (self.budget.seconds - self.seconds()) / seconds_per_work)
        return max(0.0, left)

    def exhausted(self, work: float) -> Limit | None:
        """Return the limit that has been reached, or None.

        Parameters
        ----------
        work : float
            Work done so far, in the solver's unit.

        Returns
        -------
        Limit or None
            `Limit.WORK` if both limits have been reached.
        """
        if interruption.requested():
            return Limit.INTERRUPT
        if self.budget.work is not None and work >= self.budget.work:
            return Limit.WORK
        if self.budget.seconds is not None and self.seconds() >= self.budget.seconds:
            return Limit.TIME
        return None

    def result(
        self,
        solver: str,
        solution: Any,
        value: int | None,
        bound: int | None,
        limit: Limit | None,
        *,
        work: float,
        seed: int,
    ) -> Result:
        """Return the result of an exact search.

        Parameters
        ----------
        solver : str
            Name of the solver.
        solution : object or None
            Best solution found.
        value : int or None
            Objective of the solution.
        bound : int or None
            Proven bound.
        limit : Limit or None
            Limit that stopped the search; None if the search is complete.
        work : float
            Work done, in the solver's unit.
        seed : int
            Seed of random choices.

        Returns
        -------
        Result
            The status is `OPTIMAL`, without a limit, if `value` equals `bound`; `INFEASIBLE`
            without solution and limit.
        """
        if solution is None:
            status = Status.INFEASIBLE if limit is None else Status.NO_SOLUTION
        else:
            status = Status.OPTIMAL if value == bound else Status.FEASIBLE
        return Result(
            solver=solver,
            status=status,
            solution=solution,
            objective=None if solution is None else value,
            bound=None if status is Status.INFEASIBLE else bound,
            limit=None if status is Status.OPTIMAL else limit,
            seconds=self.seconds(),
            work=work,
            incumbents=tuple(self.incumbents),
            seed=seed,
        )
