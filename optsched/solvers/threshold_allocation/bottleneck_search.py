"""Exact threshold allocation by a scan of start times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from optsched.models.problem import Problem
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import NEVER, most_penalized
from optsched.models.threshold_allocation.problem import GOALS
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress, StoppedError
from optsched.solvers.result import Budget
from optsched.solvers.threshold_allocation.kernel_input import kernel_input, start_batches


@solvers.register("bottleneck-search")
@dataclass(frozen=True)
class BottleneckSearch(AnytimeSolver):
    """Scan of start times, with the best placement at each of them by sorting.

    At a given start, nodes are independent: the penalized time A_n(k) with k processes on node n is
    nondecreasing in k. A placement has a penalized time of at most P if and only if each node n has
    at most as many processes as there are k with A_n(k) <= P. So the least P for q processes is the
    q-th smallest of all A_n(k). The threshold limits the processes of each node in the same way.

    The penalty of k processes for all jobs on a node is a sum of (m + k) max(0, D + k b - c) over
    windows and resources, less a constant. Both factors are convex, nondecreasing and nonnegative,
    hence their product is convex, and each further process costs at least as much as the one before
    it. So the q smallest of these increments form an optimal placement.

    For the earliest start, the scan ends at the first start within the threshold; for the least
    response, at the first start that alone is no better than the incumbent. Ties go to the earliest
    start and to the nodes of lowest number. Work is counted in start times.

    >>> held, job = [[0, 2, 0, 300, 2000]], {"asked": 4, "walltime": 100, "demand": [2000]}
    >>> problem = ThresholdAllocation(2, 4, [6000], held, **job, goal="penalty")
    >>> result = BottleneckSearch().solve(problem, budget=Budget())
    >>> result.status.value, result.objective, result.solution
    ('optimal', 0, Placement(start=0, processes=array([1, 3])))
    """

    models = frozenset({"threshold-allocation"})
    work_unit = "times to start"
    seconds_per_work = 2e-5
    default_work = 10_000

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, or load them from the cache."""
        _compile()

    def search(
        self, problem: ThresholdAllocation, progress: Progress, hint: Placement | None, seed: int
    ) -> None:
        """Try starts in order; `seed` has no effect."""
        from optsched.solvers.threshold_allocation._bottleneck import best_placement

        events, job = kernel_input(problem)
        goal = (GOALS.index(problem.goal), problem.unit, most_penalized(problem))
        objective, progress.bound = NEVER, 0
        if hint is not None:
            objective = problem.objective(hint)
            progress.offer(hint, objective)
        for starts in start_batches(problem):
            if progress.work and (limit := progress.exhausted()):
                progress.bound = min(objective, _least_from(problem, int(starts[0])))
                raise StoppedError(limit)
            processes = np.empty(problem.nodes, dtype=np.int64)
            objective, start, tried, done = best_placement(
                events, job, *goal, starts, objective, processes
            )
            progress.work += tried
            if start >= 0:
                processes.flags.writeable = False
                progress.offer(Placement(start, processes), objective)
            if done:
                break
        progress.bound = objective


def _least_from(problem: ThresholdAllocation, start: int) -> int:
    """Return a lower bound of the objective for starts from `start` on."""
    if problem.goal == "start":
        return start
    return start * problem.unit if problem.goal == "response" else 0


@cache
def _compile() -> None:
    problem = ThresholdAllocation(1, 1, [1], [], 1, 1, [1])
    BottleneckSearch().solve(problem, budget=Budget())
