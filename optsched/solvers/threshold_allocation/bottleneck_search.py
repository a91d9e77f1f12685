"""Exact threshold allocation by a scan of start times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.problem import Problem
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.problem import GOALS, most_penalized
from optsched.models.threshold_allocation.timeline import (
    EVERYBODY,
    NEVER,
    RESPONSE,
    START,
    Job,
    Timeline,
)
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress, StoppedError
from optsched.solvers.result import Budget
from optsched.solvers.threshold_allocation._penalties import (
    added_penalties,
    penalized_times,
    take_cheapest,
)
from optsched.solvers.threshold_allocation.kernel_input import kernel_input, start_batches

Integers = NDArray[np.int64]


@kernel
def best_placement(
    events: Timeline,
    job: Job,
    # Goal, units of a second, and largest penalized time in units
    goal: int,
    unit: int,
    limit: int,
    starts: Integers,  # candidate start times in seconds, ascending, shape (times,)
    best: int,
    # Processes on each node, overwritten if there is such a placement, shape (nodes,)
    processes: Integers,
) -> tuple[int, int, int, bool]:
    """Find the first best placement at `starts`, if its objective is below `best`.

    Results: `objective`, `start`: objective and start of the placement; `best` and -1 without one;
    `tried`: number of start times tried; `done`: whether no later start time can be better.
    """
    chosen = -1
    for tried in range(len(starts)):
        start = starts[tried]
        if (goal == RESPONSE and start * unit >= best) or (goal == START and start >= best):
            return best, chosen, tried, True
        lost = penalized_times(events, job, start)
        if goal == EVERYBODY:
            costs = added_penalties(events, job, start, lost)
            for node in range(len(lost)):
                for k in range(job.processors):
                    if lost[node, k] > limit:
                        costs[node, k] = NEVER
            taken, last = take_cheapest(costs, job.asked)
        else:
            taken, last = take_cheapest(lost, job.asked)
            if last > limit:
                continue
        if last == NEVER:
            continue
        objective = last
        if goal == START:
            objective = start
        elif goal == RESPONSE:
            objective = start * unit + last
        elif goal == EVERYBODY:
            objective = 0
            for node in range(len(taken)):
                for k in range(taken[node]):
                    objective += costs[node, k]
        if objective < best:
            best, chosen = objective, start
            for node in range(len(taken)):
                processes[node] = taken[node]
        if goal == START or (goal != RESPONSE and best == 0):
            return best, chosen, tried + 1, True
    return best, chosen, len(starts), False


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
