"""First fit, and its processes moved to where they lose less: compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.threshold_allocation._timeline import Timeline
from optsched.solvers.threshold_allocation._penalties import (
    Job,
    free_processors,
    penalised_times,
)

Integers = NDArray[np.int64]


@kernel
def first_fit(free: Integers, asked: int) -> Integers:
    """Return the processes on each node when they fill the free processors in order."""
    processes = np.zeros_like(free)
    for node in range(len(free)):
        processes[node] = min(free[node], asked)
        asked -= processes[node]
    return processes


@kernel
def worst_node(lost: Integers, processes: Integers) -> tuple[int, int]:
    """Return what the job loses, and the first node where it loses that."""
    worst, most = 0, -1
    for node in range(len(processes)):
        if processes[node] > 0 and lost[node, processes[node] - 1] > most:
            worst, most = node, lost[node, processes[node] - 1]
    return most, worst


@kernel
def move(lost: Integers, free: Integers, processes: Integers, enough: int) -> int:
    """Move processes, one by one, to where they lose less; return what the job loses then.

    Each processor that is free and not used is offered once, in order of the nodes. It takes a
    process of the first node that loses most if its own node then loses less than that.

    Parameters
    ----------
    lost : int64 array, shape (nodes, processors)
        What the job loses with 1, 2, ... processes on a node.
    free, processes : int64 array, shape (nodes,)
        Free processors, and the processes to begin with; these are moved.
    enough : int
        The units at which the job has lost little enough.
    """
    spare = free - processes
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
def place_by_moving(
    events: Timeline, job: Job, starts: Integers, enough: int, limit: int, later: bool
) -> tuple[int, bool, Integers]:
    """Return the start, or -1, whether there was room at all, and the processes on each node.

    Parameters
    ----------
    events : Timeline
        What the nodes hold.
    job : Job
        What is placed.
    starts : int64 array, shape (times,)
        The times to look at, ascending.
    enough : int
        The units at which processes are no longer moved; -1: they are not moved at all.
    limit : int
        The most penalised time in units.
    later : bool
        Whether the next time is tried when it is exceeded.
    """
    processes = np.zeros(len(events.first) - 1, dtype=np.int64)
    has_room = False
    for start in starts:
        free = free_processors(events, job.processors, start, start + job.walltime)
        if free.sum() < job.asked:
            continue
        has_room = True
        processes = first_fit(free, job.asked)
        lost = penalised_times(events, job, start, free)
        most, _ = worst_node(lost, processes)
        if enough >= 0:
            most = move(lost, free, processes, enough)
        if most <= limit:
            return start, has_room, processes
        if not later:
            break
    return -1, has_room, processes
