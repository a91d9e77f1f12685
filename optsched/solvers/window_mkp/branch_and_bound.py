"""Depth-first branch and bound for the window knapsack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.result import Budget, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver

UNLIMITED = 2**62


@solvers.register("branch-and-bound")
@dataclass(frozen=True)
class BranchAndBound(Solver):
    """Depth-first search with bounds."""

    models = frozenset({"window-mkp"})

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        from optsched.solvers.window_mkp._depth_first import depth_first

        if hint is None:
            placement, value = np.full(len(problem.weights), -1), 0
        else:
            placement, value = np.array(hint), problem.objective(hint)
        limit = UNLIMITED if budget.work is None else max(1, int(budget.work))
        value, bound, nodes = depth_first(
            problem.weights, problem.profits, problem.capacities, placement, value, limit
        )
        closed = value == bound
        return Result(
            solver=self.name,
            status=Status.OPTIMAL if closed else Status.FEASIBLE,
            solution=tuple(placement.tolist()),
            objective=value,
            bound=bound,
            limit=None if closed else Limit.WORK,
            work=nodes,
        )

    def prepare(self) -> None:
        self.solve(_tiny(), budget=Budget())


def _tiny() -> Any:
    from optsched.models.window_mkp import WindowMKP

    return WindowMKP(weights=[1], capacities=[1])
