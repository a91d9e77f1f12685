"""What the heuristics of the window knapsack share."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, cast

from optsched.models.problem import Problem
from optsched.solvers.result import Budget, Incumbent, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver

if TYPE_CHECKING:
    from optsched.models.window_mkp import Assignment, WindowMKP


class Heuristic(Solver):
    """Answers a window knapsack without a bound, in microseconds; no budget applies.

    A hint is the answer if it has more profit. Work is counted in jobs times slots.
    """

    models = frozenset({"window-mkp"})
    exact = False
    work_unit = "jobs times slots"

    @abstractmethod
    def place(self, problem: WindowMKP) -> Assignment:
        """Return a feasible assignment."""

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Answer a window knapsack; nothing is drawn by `seed`."""
        began = time.perf_counter()
        window = cast("WindowMKP", problem)
        solution = self.place(window)
        objective = window.objective(solution)
        if hint is not None and window.objective(hint) > objective:
            solution, objective = hint, window.objective(hint)
        incumbent = Incumbent(time.perf_counter() - began, objective, None)
        if on_incumbent is not None:
            on_incumbent(incumbent)
        return Result(
            solver=self.name,
            status=Status.FEASIBLE,
            solution=solution,
            objective=objective,
            seconds=time.perf_counter() - began,
            work=len(window.weights) * len(window.capacities),
            incumbents=(incumbent,),
            seed=seed,
        )

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernel, or load it where it has been compiled before."""
        from optsched.models.window_mkp import WindowMKP

        self.place(WindowMKP(weights=[1], capacities=[1]))
