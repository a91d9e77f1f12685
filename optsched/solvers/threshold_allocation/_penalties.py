"""Penalties of nodes for a job at a start time, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.threshold_allocation.timeline import NEVER, Job, Timeline

Integers = NDArray[np.int64]


@kernel(allocates=False)
def penalize(events: Timeline, job: Job, start: int, node: int, lost: Integers) -> int:
    """Write the penalized time with 1, 2, ... processes on a node; return the room for processes.

    Times are in units, by equation (4) of the model's page; `NEVER` for processors that are not
    free for all of the walltime.
    """
    first, last, end = events.first[node], events.last[node], start + job.walltime
    active = most = 0
    for event in range(first, last):
        if events.time[event] >= end:
            break
        active += events.processes[event]
        if events.time[event] <= start or active > most:
            most = active
    room = job.processors - most
    for k in range(job.processors):
        lost[k] = 0 if k < room else NEVER
    for r in range(len(job.demand)):
        level, at, event = 0, start, first
        while at < end and room > 0:
            while event < last and events.time[event] <= at:
                level += events.demand[event, r]
                event += 1
            until = end
            if event < last and events.time[event] < end:
                until = events.time[event]
            for k in range(room, 0, -1):
                over = level + k * job.demand[r] - job.capacity[r]
                if over <= 0:
                    break
                lost[k - 1] += (until - at) * job.scale[r] * over
            at = until
    return room


@kernel
def penalized_times(events: Timeline, job: Job, start: int) -> Integers:
    """Return the penalized times of `penalize` on all nodes, shape (nodes, processors)."""
    lost = np.empty((len(events.last), job.processors), dtype=np.int64)
    for node in range(len(lost)):
        penalize(events, job, start, node, lost[node])
    return lost


@kernel
def added_penalties(events: Timeline, job: Job, start: int, lost: Integers) -> Integers:
    """Return the penalty that each further process adds for all jobs, shape (nodes, processors).

    Penalties are in units, by equation (6) of the model's page. Of `lost`, see `penalized_times`.
    """
    added = np.full(lost.shape, NEVER)
    end = start + job.walltime
    for node in range(len(lost)):
        room = 0
        while room < job.processors and lost[node, room] < NEVER:
            added[node, room] = 0
            room += 1
        last = events.last[node]
        for r in range(len(job.demand)):
            active, level, at, event = 0, 0, start, events.first[node]
            while at < end and room > 0:
                while event < last and events.time[event] <= at:
                    active += events.processes[event]
                    level += events.demand[event, r]
                    event += 1
                until = end
                if event < last and events.time[event] < end:
                    until = events.time[event]
                over = level - job.capacity[r]
                before = active * max(0, over)
                for k in range(1, room + 1):
                    now = (active + k) * max(0, over + k * job.demand[r])
                    added[node, k - 1] += (until - at) * job.scale[r] * (now - before)
                    before = now
                at = until
    return added


@kernel(allocates=False)
def smallest(values: Integers, rank: int) -> int:
    """Return the value of a rank, from 0, in ascending order; reorders the values.

    This is Hoare's quickselect: `np.partition` takes longer to compile than all else here.
    """
    low, high = 0, len(values) - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            break
    return int(values[rank])


@kernel
def take_cheapest(costs: Integers, asked: int) -> tuple[Integers, int]:
    """Return the cheapest placement of `asked` processes, and the largest cost of one of them.

    Costs are those of each further process on a node, shape (nodes, processors), nondecreasing, and
    `NEVER` for an impossible one, also as the largest if there are too few. Of equal costs, nodes
    of lower number come first.
    """
    nodes, processors = costs.shape
    processes = np.zeros(nodes, dtype=np.int64)
    last = smallest(costs.copy().ravel(), asked - 1)
    if last == NEVER:
        return processes, last
    missing = asked
    for node in range(nodes):
        while processes[node] < processors and costs[node, processes[node]] < last:
            processes[node] += 1
            missing -= 1
    for node in range(nodes):
        while missing > 0 and processes[node] < processors and costs[node, processes[node]] == last:
            processes[node] += 1
            missing -= 1
    return processes, last
