"""First fit, and local moves of processes to nodes with a lower penalty, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.threshold_allocation._timeline import Job, Timeline
from optsched.models.threshold_allocation.presolve import NEVER, NO_LIMIT
from optsched.solvers.threshold_allocation._penalties import penalize

Integers = NDArray[np.int64]

FIRST_FIT, LESS_CONSUME, LESS_CONSUME_THRESHOLD = range(3)
"""The rules of `optsched.solvers.threshold_allocation.moving_rules`."""


@kernel(allocates=False)
def first_fit(
    events: Timeline, job: Job, start: int, lost: Integers, processes: Integers
) -> tuple[int, int]:
    """Fill nodes in order; return the last one, and the processes for which it has room then.

    Writes the processes on each node, and the penalized times of `penalize` up to the last one,
    which is -1 if the nodes together have too little room.
    """
    missing, last, spare = job.asked, -1, 0
    for node in range(len(processes)):
        processes[node] = 0
        if missing > 0:
            room = penalize(events, job, start, node, lost[node])
            processes[node] = min(room, missing)
            missing -= processes[node]
            last, spare = node, room - processes[node]
    return last if missing == 0 else -1, spare


@kernel(allocates=False)
def worst_node(lost: Integers, processes: Integers, most: int, first: int) -> tuple[int, int]:
    """Return the penalized time of the job and the first node that causes it.

    It is at most `most`, and below that on the nodes before `first`.
    """
    worst, found = 0, -1
    for node in range(first, len(processes)):
        if processes[node] > 0 and lost[node, processes[node] - 1] == most:
            return most, node
    for node in range(len(processes)):
        if processes[node] > 0 and lost[node, processes[node] - 1] > found:
            worst, found = node, lost[node, processes[node] - 1]
    return found, worst


@kernel
def place_by_rule(
    rule: int,
    events: Timeline,
    job: Job,
    limit: int,  # largest penalized time in units, `NO_LIMIT` without a threshold
    starts: Integers,  # candidate start times in seconds, ascending, shape (times,)
    processes: Integers,  # processes on each node, overwritten, shape (nodes,)
) -> int:
    """Place a job by first fit, and move its processes to nodes with a lower penalty.

    Each unused free processor is offered once, in the order of nodes. The first node with the
    largest penalty gives a process to it if the penalty of the receiving node stays below that.
    Only less-consume-threshold ends the moves within the limit, and tries the next start after a
    placement beyond it.

    Result: start of the placement, -1 without one.
    """
    tries_later = rule == LESS_CONSUME_THRESHOLD
    enough = limit if tries_later and limit != NO_LIMIT else 0
    lost = np.empty((len(processes), job.processors), dtype=np.int64)
    for start in starts:
        node, spare = first_fit(events, job, start, lost, processes)
        if node < 0:
            continue
        most, worst = worst_node(lost, processes, NEVER, len(processes))
        while rule != FIRST_FIT and most > enough:
            if spare > 0:
                spare -= 1
                if lost[node, processes[node]] < most:
                    processes[worst] -= 1
                    processes[node] += 1
                    most, worst = worst_node(lost, processes, most, worst)
                continue
            node += 1
            if node == len(processes):
                break
            spare = penalize(events, job, start, node, lost[node])
        if most <= limit:
            return int(start)
        if not tries_later:
            break
    return -1
