"""First fit, and local moves of processes to nodes with a lower penalty, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.threshold_allocation._timeline import (
    Job,
    Timeline,
    next_end,
    processors_free,
)
from optsched.models.threshold_allocation.presolve import NO_LIMIT
from optsched.solvers.threshold_allocation._penalties import (
    free_processors,
    penalized_times,
)

Integers = NDArray[np.int64]

FIRST_FIT, LESS_CONSUME, LESS_CONSUME_THRESHOLD = range(3)
"""The rules of `optsched.solvers.threshold_allocation.moving_rules`."""


@kernel(allocates=False)
def first_fit(free: Integers, asked: int, processes: Integers) -> None:
    """Write the processes on each node when nodes are filled in order."""
    for node in range(len(free)):
        processes[node] = min(free[node], asked)
        asked -= processes[node]


@kernel
def worst_node(lost: Integers, processes: Integers) -> tuple[int, int]:
    """Return the penalized time of the job and the first node that causes it."""
    worst, most = 0, -1
    for node in range(len(processes)):
        if processes[node] > 0 and lost[node, processes[node] - 1] > most:
            worst, most = node, lost[node, processes[node] - 1]
    return most, worst


@kernel
def move(lost: Integers, free: Integers, processes: Integers, enough: int) -> int:
    """Move processes one by one to nodes with a lower penalty; return the penalized time.

    Each unused free processor is offered once, in the order of nodes. The first node with the
    largest penalty gives a process to it if the penalty of the receiving node stays below that.
    Moves end at a penalized time of `enough`. Of `lost`, see `penalized_times`; `free` and
    `processes` are per node, and `processes` is overwritten.
    """
    spare = free.copy()
    for node in range(len(free)):
        spare[node] -= processes[node]
    most: int
    most, worst = worst_node(lost, processes)
    for node in range(len(free)):
        for _ in range(spare[node]):
            if most <= enough:
                return most
            if lost[node, processes[node]] < most:
                processes[worst] -= 1
                processes[node] += 1
                most, worst = worst_node(lost, processes)
    return most


@kernel
def place_by_rule(
    rule: int,
    events: Timeline,
    job: Job,
    limit: int,  # largest penalized time in units, `NO_LIMIT` without a threshold
    # Start in seconds before which no placement is within the limit, and latest start
    earliest: int,
    latest: int,
    processes: Integers,  # processes on each node, overwritten, shape (nodes,)
) -> int:
    """Place a job by first fit, and move its processes to nodes with a lower penalty.

    Candidates are now and later ends of allocations. Only less-consume-threshold tries the next one
    after a placement beyond the limit, and ends the moves within it.

    Result: start of the placement, -1 without one.
    """
    tries_later = rule == LESS_CONSUME_THRESHOLD
    enough = limit if tries_later and limit != NO_LIMIT else 0
    start = earliest if tries_later else 0
    while 0 <= start <= latest:
        if processors_free(events, job.processors, start) >= job.asked:
            free = free_processors(events, job.processors, start, start + job.walltime)
            if free.sum() >= job.asked:
                first_fit(free, job.asked, processes)
                lost = penalized_times(events, job, start, free)
                if rule == FIRST_FIT:
                    most, _ = worst_node(lost, processes)
                else:
                    most = move(lost, free, processes, enough)
                if most <= limit:
                    return start
                if not tries_later:
                    break
        start = next_end(events, start)
    return -1
