"""Time and work spent by a search, and its incumbents."""

from __future__ import annotations

import math
import time
from typing import Any, Literal

from optsched.solvers.result import Budget, Incumbent, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent


class Progress:
    """Watches the budget of a search, and notes its incumbents."""

    def __init__(
        self,
        budget: Budget,
        on_incumbent: OnIncumbent | None,
        sense: Literal["max", "min"] = "max",
    ) -> None:
        self.incumbents: list[Incumbent] = []
        self._budget = budget
        self._on_incumbent = on_incumbent
        self._sign = 1 if sense == "max" else -1
        self._began = time.perf_counter()

    def seconds(self) -> float:
        """Return the seconds since the search began."""
        return time.perf_counter() - self._began

    def note(self, objective: int, bound: int | None) -> None:
        """Note an incumbent if it is better than the last."""
        if self.incumbents:
            gain = self._sign * (objective - self.incumbents[-1].objective)
            if gain <= 0:
                return
        incumbent = Incumbent(self.seconds(), objective, bound)
        self.incumbents.append(incumbent)
        if self._on_incumbent is not None:
            self._on_incumbent(incumbent)

    def left(self, work: float, seconds_per_work: float) -> float:
        """Return the work that remains before a limit is reached."""
        left = math.inf
        if self._budget.work is not None:
            left = self._budget.work - work
        if self._budget.seconds is not None:
            left = min(left, (self._budget.seconds - self.seconds()) / seconds_per_work)
        return max(0.0, left)

    def exhausted(self, work: float) -> Limit | None:
        """Return the limit that has been reached, if any."""
        if self._budget.work is not None and work >= self._budget.work:
            return Limit.WORK
        if self._budget.seconds is not None and self.seconds() >= self._budget.seconds:
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
        """Return the result of an exact search from its best solution, the objective and the bound.

        The solution is optimal if `value` and `bound` meet; `limit`, which stopped the search, is
        then left out. Without solution and limit, the problem is infeasible.
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
