"""Best-first branch and bound for the window knapsack."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.problem import Problem
from optsched.models.window_mkp import WindowMKP
from optsched.registry import solvers
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Limit, Result
from optsched.solvers.solver import OnIncumbent, Solver

LARGEST_TREE = 1 << 22
"""Largest number of search nodes, of 48 bytes each and 8 in the heap."""

PIECE = 20_000
"""Search nodes between two checks of the budget."""


@solvers.register("best-first")
@dataclass(frozen=True)
class BestFirst(Solver):
    """Best-first branch and bound (Algorithms 1 and 2 of Yang et al. 2014).

    The children of a node put the next job into each slot, by increasing number, or leave the job
    waiting. Jobs are numbered by decreasing profit per weight, slots by increasing capacity, after
    the reductions (7) and (8). The approximate cost of a child is its profit plus the surrogate
    bound of the remaining jobs: the linear relaxation of one knapsack of all slots. Of equal bounds
    the deepest node is taken. GREEDY gives the first incumbent; children that cannot beat the
    incumbent are not inserted.

    The search ends at four million nodes, as if that were its work limit.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    Examples
    --------
    >>> from optsched.models import WindowMKP
    >>> problem = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    >>> BestFirst().solve(problem, budget=Budget()).objective
    15
    """

    models = frozenset({"window-mkp"})
    seconds_per_work = 2e-7

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Solve a window knapsack; `seed` has no effect."""
        from optsched.solvers.window_mkp._best_first import BOUND, FINISHED, FULL, best_first
        from optsched.solvers.window_mkp._greedy import greedy
        from optsched.solvers.window_mkp._reduction import reduce

        assert isinstance(problem, WindowMKP)
        progress = Progress(budget, on_incumbent)
        given = problem.weights, problem.profits, problem.capacities
        solution = tuple(greedy(*given).tolist())
        value = problem.objective(solution)
        if hint is not None and problem.objective(hint) > value:
            solution, value = hint, problem.objective(hint)
        jobs, slots, weights, profits, residual, unit = reduce(*given)
        bound = int(profits.sum()) * unit
        progress.note(value, bound)

        nodes, heap = np.zeros((1024, 5), np.int64), np.zeros(1024, np.int64)
        nodes[0, BOUND] = profits.sum()
        state = np.array([1, min(1, len(jobs)), value // unit, bound // unit])
        placement = np.empty(len(jobs), np.int64)
        limit = None
        while True:
            pause = int(state[0]) + PIECE
            if budget.work is not None:
                pause = min(pause, math.ceil(budget.work))
            outcome = best_first(weights, profits, residual, nodes, heap, state, placement, pause)
            bound = int(state[3]) * unit
            if state[2] * unit > value:
                value = int(state[2]) * unit
                placed = np.full(len(problem.weights), -1)
                placed[jobs] = np.append(slots, -1)[placement]
                solution = tuple(placed.tolist())
            progress.note(value, bound)
            if outcome == FINISHED:
                break
            limit = progress.exhausted(state[0])
            if outcome == FULL and limit is None:
                try:
                    nodes, heap = _twice(nodes), _twice(heap)
                except MemoryError:
                    limit = Limit.MEMORY
            if limit is not None:
                break
        work = int(state[0])
        return progress.result(self.name, solution, value, bound, limit, work=work, seed=seed)

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, or load them from the cache."""
        self.solve(WindowMKP(weights=[1, 2], capacities=[2]), budget=Budget())


def _twice(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows with space for as many more."""
    if len(rows) >= LARGEST_TREE:
        raise MemoryError
    return np.concatenate((rows, np.zeros_like(rows)))
