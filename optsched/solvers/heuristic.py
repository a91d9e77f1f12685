"""Base class of heuristics."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from optsched.compilation import clock
from optsched.models.problem import Problem
from optsched.solvers.result import Budget, Incumbent, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver


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
        if solution is None or (hint is not None and _is_better(problem, hint, solution)):
            solution = hint
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


def _is_better(problem: Problem[Any], one: Any, other: Any) -> bool:
    first, second = problem.objective(one), problem.objective(other)
    return first > second if problem.sense == "max" else first < second
