"""Timeline of allocations, and the least threshold of a job at a start, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]


class Timeline(NamedTuple):
    """Starts and ends of allocations by node and time; of equal times, ends come first.

    What a node holds now is one event. Those of node n are ``first[n]:last[n]`` of the other
    arrays. Each event has its time in seconds, the change of the number of processes, and that of
    the demand, shape (events, resources).
    """

    first: Integers
    last: Integers
    time: Integers
    processes: Integers
    demand: Integers


class Job(NamedTuple):
    """A job and the identical nodes that it may use, as in the threshold-allocation problem."""

    processors: int
    asked: int
    walltime: int
    demand: Integers
    capacity: Integers
    scale: Integers


class Space(NamedTuple):
    """Space for a number of each resource, of each processor of a node, and of each limit."""

    level: Integers
    lost: Integers
    room: Integers


@kernel
def timeline(held: Integers, nodes: int) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    """Return the parts of the `Timeline` of the allocations `held`."""
    resources = held.shape[1] - 4
    first = np.zeros(nodes + 1, dtype=np.int64)
    last = np.zeros(nodes, dtype=np.int64)
    for row in range(len(held)):
        node, begins = held[row, 0], held[row, 2] > 0
        first[node + 1] += 1 + (begins or last[node] == 0)
        last[node] += not begins
    for node in range(nodes):
        first[node + 1] += first[node]
        last[node] = first[node] + (last[node] > 0)
    time = np.zeros(first[nodes], dtype=np.int64)
    processes = np.zeros(first[nodes], dtype=np.int64)
    demand = np.zeros((first[nodes], resources), dtype=np.int64)
    events = Timeline(first, last, time, processes, demand)
    for end in range(1, -1, -1):
        for row in range(len(held)):
            node, at = held[row, 0], held[row, 2 + end]
            change = -held[row, 1] if end == 1 else held[row, 1]
            if at > 0:
                add_event(events, first[node], last[node], at, change, held[row, 4:])
                last[node] += 1
                continue
            processes[first[node]] += change
            for r in range(resources):
                demand[first[node], r] += change * held[row, 4 + r]
    return first, last, time, processes, demand


@kernel(allocates=False)
def add_event(
    events: Timeline, first: int, place: int, at: int, count: int, demand: Integers
) -> None:
    """Insert a change of the processes of a node behind its events that are not later.

    `first` is the first event of the node, and `place` the one behind its last.
    """
    while place > first and events.time[place - 1] > at:
        events.time[place] = events.time[place - 1]
        events.processes[place] = events.processes[place - 1]
        for r in range(len(demand)):
            events.demand[place, r] = events.demand[place - 1, r]
        place -= 1
    events.time[place], events.processes[place] = at, count
    for r in range(len(demand)):
        events.demand[place, r] = count * demand[r]


@kernel(allocates=False)
def least_limit(
    events: Timeline, start: int, free: int, job: Job, limits: Integers, space: Space
) -> int:
    """Return the number of the least limit within which a job can start at a time.

    A job can start if the nodes together hold all of its processes, each node at most as many as
    keep the penalized time within the limit; see
    `optsched.solvers.threshold_allocation`. `free` is the number of processors
    that are free then. `limits` has the largest penalized times in units, ascending; their number
    means none.
    """
    first, last, time, processes, demands = events
    processors, asked, walltime, demand, capacity, scale = job
    level, lost, room = space
    least, end = len(limits), start + walltime
    for i in range(least):
        room[i] = 0
    for node in range(len(last)):
        for r in range(len(level)):
            level[r] = 0
        for k in range(processors):
            lost[k] = 0
        at, active, most = start, 0, processors
        event, stop = first[node], last[node]
        while at < end and most > 0:
            while event < stop and time[event] <= at:
                active += processes[event]
                for r in range(len(level)):
                    level[r] += demands[event, r]
                event += 1
            until = end
            if event < stop and time[event] < end:
                until = time[event]
            most = min(most, processors - active)
            if at == start:
                free -= most
            for r in range(len(level)):
                for k in range(most, 0, -1):
                    over = level[r] + k * demand[r] - capacity[r]
                    if over <= 0:
                        break
                    lost[k - 1] += (until - at) * scale[r] * over
            while most > 0 and lost[most - 1] > limits[least - 1]:
                most -= 1
            at = until
        for i in range(least - 1, -1, -1):
            while most > 0 and lost[most - 1] > limits[i]:
                most -= 1
            room[i] += most
        while least > 0 and room[least - 1] >= asked:
            least -= 1
        if least == 0 or room[least - 1] + free < asked:
            break
    return least
