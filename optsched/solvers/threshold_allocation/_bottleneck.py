"""Best placement of a job over given start times, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.threshold_allocation._check import EVERYBODY, RESPONSE, START
from optsched.models.threshold_allocation._timeline import Job, Timeline
from optsched.models.threshold_allocation.presolve import NEVER
from optsched.solvers.threshold_allocation._penalties import (
    added_penalties,
    penalized_times,
    take_cheapest,
)

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
