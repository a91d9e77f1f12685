"""Timeline of allocations, and the feasibility prefilter of jobs that may start now, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]


class Timeline(NamedTuple):
    """Starts and ends of allocations by node and time; of equal times, ends come first.

    `first` is the index of the first event of each node, shape (nodes + 1,). Each event has its
    time in seconds, the change of the number of processes, and that of the demand, shape (events,
    resources).
    """

    first: Integers
    time: Integers
    processes: Integers
    demand: Integers


@kernel
def timeline(held: Integers, nodes: int) -> Timeline:
    """Return the timeline of the allocations `held`."""
    rows, resources = len(held), held.shape[1] - 4
    first = np.zeros(nodes + 1, dtype=np.int64)
    for row in range(rows):
        first[held[row, 0] + 1] += 2
    for node in range(nodes):
        first[node + 1] += first[node]
    count = first[:-1].copy()
    order = np.empty(2 * rows, dtype=np.int64)
    time = np.empty(2 * rows, dtype=np.int64)
    for end in range(1, -1, -1):
        for row in range(rows):
            node, at = held[row, 0], held[row, 2 + end]
            place = count[node]
            while place > first[node] and time[place - 1] > at:
                time[place], order[place] = time[place - 1], order[place - 1]
                place -= 1
            time[place], order[place] = at, 2 * row + end
            count[node] += 1
    processes = np.empty(2 * rows, dtype=np.int64)
    demand = np.empty((2 * rows, resources), dtype=np.int64)
    for event in range(2 * rows):
        row, end = order[event] // 2, order[event] % 2
        change = held[row, 1] * (1 - 2 * end)
        processes[event] = change
        for r in range(resources):
            demand[event, r] = change * held[row, 4 + r]
    return Timeline(first, time, processes, demand)


@kernel
def can_start(
    events: Timeline,
    processors: int,
    capacity: Integers,
    scale: Integers,
    asked: Integers,
    walltime: Integers,
    demand: Integers,
    limit: Integers,
) -> NDArray[np.bool_]:
    """Return a flag for each job that can start now; see `can_start_now` of the presolve."""
    first, time, processes, demands = events
    nodes, resources = len(first) - 1, len(capacity)
    level = np.empty(resources, dtype=np.int64)
    lost = np.empty(processors, dtype=np.int64)
    found = np.zeros(len(asked), dtype=np.bool_)
    for i in range(len(asked)):
        missing, end = asked[i], walltime[i]
        for node in range(nodes):
            level[:] = 0
            lost[:] = 0
            active = at = 0
            most = processors
            event, last = first[node], first[node + 1]
            while at < end and most > 0:
                while event < last and time[event] <= at:
                    active += processes[event]
                    for r in range(resources):
                        level[r] += demands[event, r]
                    event += 1
                until = end
                if event < last and time[event] < end:
                    until = time[event]
                most = min(most, processors - active)
                for r in range(resources):
                    for k in range(most, 0, -1):
                        over = level[r] + k * demand[i, r] - capacity[r]
                        if over <= 0:
                            break
                        lost[k - 1] += (until - at) * scale[r] * over
                while most > 0 and lost[most - 1] > limit[i]:
                    most -= 1
                at = until
            missing -= most
            if missing <= 0:
                found[i] = True
                break
    return found
