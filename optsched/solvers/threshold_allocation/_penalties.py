"""Free processors and penalties of nodes for a job at a start time, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.threshold_allocation._timeline import Job, Timeline
from optsched.models.threshold_allocation.presolve import NEVER

Integers = NDArray[np.int64]


@kernel
def free_processors(events: Timeline, processors: int, start: int, end: int) -> Integers:
    """Return the number of processors of each node that are free throughout, shape (nodes,)."""
    nodes = len(events.first) - 1
    free = np.empty(nodes, dtype=np.int64)
    for node in range(nodes):
        active = most = 0
        for event in range(events.first[node], events.first[node + 1]):
            if events.time[event] >= end:
                break
            active += events.processes[event]
            if events.time[event] <= start or active > most:
                most = active
        free[node] = processors - most
    return free


@kernel
def penalized_times(events: Timeline, job: Job, start: int, free: Integers) -> Integers:
    """Return the penalized time with 1, 2, ... processes on a node, shape (nodes, processors).

    Times are in units, by equation (4) of the model's page; `NEVER` beyond the free processors.
    """
    lost: Integers = _costs(events, job, start, free, False)[0]
    return lost


@kernel
def added_penalties(events: Timeline, job: Job, start: int, free: Integers) -> Integers:
    """Return the penalty that each further process adds for all jobs, shape (nodes, processors).

    Penalties are in units, by equation (6) of the model's page.
    """
    added: Integers = _costs(events, job, start, free, True)[1]
    return added


@kernel
def _costs(
    events: Timeline, job: Job, start: int, free: Integers, everybody: bool
) -> tuple[Integers, Integers]:
    nodes, resources = len(free), len(job.demand)
    end = start + job.walltime
    lost = np.full((nodes, job.processors), NEVER)
    added = np.full((nodes, job.processors) if everybody else (0, 0), NEVER)
    level = np.empty(resources, dtype=np.int64)
    for node in range(nodes):
        most = free[node]
        if most == 0:
            continue
        lost[node, :most] = 0
        if everybody:
            added[node, :most] = 0
        level[:] = 0
        active = 0
        event, last = events.first[node], events.first[node + 1]
        at = start
        while at < end:
            while event < last and events.time[event] <= at:
                active += events.processes[event]
                for r in range(resources):
                    level[r] += events.demand[event, r]
                event += 1
            until = end
            if event < last and events.time[event] < end:
                until = events.time[event]
            length = until - at
            at = until
            for r in range(resources):
                free_capacity = job.capacity[r] - level[r]
                if most * job.demand[r] <= free_capacity:
                    continue
                weight = length * job.scale[r]
                for k in range(1, most + 1):
                    over = k * job.demand[r] - free_capacity
                    if over > 0:
                        lost[node, k - 1] += weight * over
                if everybody:
                    before = active * max(0, -free_capacity)
                    for k in range(1, most + 1):
                        now = (active + k) * max(0, k * job.demand[r] - free_capacity)
                        added[node, k - 1] += weight * (now - before)
                        before = now
    return lost, added


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
