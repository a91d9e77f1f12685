"""What heuristics without a bound share."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

from optsched.models.problem import Problem
from optsched.solvers.result import Budget, Incumbent, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver


class Heuristic(Solver):
    """Answers without a bound, in microseconds; no budget applies.

    A hint is the answer if it is better. A subclass says how to place, and what that costs in its
    ``work_unit``.
    """

    exact = False

    @abstractmethod
    def place(self, problem: Any) -> Any:
        """Return a feasible solution; none where none is found."""

    @abstractmethod
    def effort(self, problem: Any) -> int:
        """Return the work that `place` is counted as."""

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels that `problem` needs, by answering a copy of it."""
        if problem is not None:
            self.place(problem.copy())

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Answer a problem; nothing is drawn by `seed`."""
        began = time.perf_counter()
        solution = self.place(problem)
        if solution is None or (hint is not None and _better(problem, hint, solution)):
            solution = hint
        if solution is None:
            return Result(
                solver=self.name,
                status=Status.NO_SOLUTION,
                seconds=time.perf_counter() - began,
                work=self.effort(problem),
                seed=seed,
            )
        objective = problem.objective(solution)
        incumbent = Incumbent(time.perf_counter() - began, objective, None)
        if on_incumbent is not None:
            on_incumbent(incumbent)
        return Result(
            solver=self.name,
            status=Status.FEASIBLE,
            solution=solution,
            objective=objective,
            seconds=time.perf_counter() - began,
            work=self.effort(problem),
            incumbents=(incumbent,),
            seed=seed,
        )


def _better(problem: Problem[Any], one: Any, other: Any) -> bool:
    value, than = problem.objective(one), problem.objective(other)
    return value > than if problem.sense == "max" else value < than
