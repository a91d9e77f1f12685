"""Penalized time of a job on shared nodes: timeline, limits and verification, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Ints
from optsched.compiled import kernel
from optsched.models.fields import cache_last


class Timeline(NamedTuple):
    """Starts and ends of allocations by node and time; of equal times, ends come first.

    What a node holds now is one event. Those of node n are ``first[n]:last[n]`` of the other
    arrays. Each event has its time in seconds, the change of the number of processes, and that of
    the demand, shape (events, resources).
    """

    first: Ints
    last: Ints
    time: Ints
    processes: Ints
    demand: Ints


class Job(NamedTuple):
    """A job and the identical nodes that it may use, as in the threshold-allocation problem."""

    processors: int
    asked: int
    walltime: int
    demand: Ints
    capacity: Ints
    scale: Ints


class Space(NamedTuple):
    """Space for a number of each resource, of each processor of a node, and of each limit."""

    level: Ints
    lost: Ints
    room: Ints


@kernel
def timeline(held: Ints, nodes: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
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
def add_event(events: Timeline, first: int, place: int, at: int, count: int, demand: Ints) -> None:
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
    events: Timeline, start: int, free: int, job: Job, limits: Ints, space: Space
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


NEVER = 2**63 - 1
"""Penalized time of forbidden processes, a constant of the kernels."""

NO_LIMIT = NEVER - 1
"""Largest penalized time without a threshold, a constant of the kernels."""


def penalty_within(threshold: int | None, requested: int) -> int:
    """Return the largest penalized time within a threshold, in units.

    The threshold is in thousandths, None for no limit; `requested` is the walltime in units.
    """
    if threshold is None:
        return NO_LIMIT
    return min((threshold - 1000) * requested // 1000, NO_LIMIT - 1)


@cache_last
def timeline_of(held: Ints, nodes: int) -> Timeline:
    """Return the timeline of the allocations `held`."""
    return Timeline(*timeline(held, nodes))


START, PENALTY, RESPONSE, EVERYBODY = range(4)
"""Goals in the order of `optsched.models.threshold_allocation.problem.GOALS`."""

BROKEN = -1
"""Penalized time of a placement that is not feasible, whatever the threshold."""


@kernel
def events_within(held: Ints, start: int, end: int, processes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the starts and ends of allocations from `start` to `end` on the nodes of a job.

    Those of node n are ``events[first[n]:until[n]]``, by time, each with its time and the number of
    its row from 1, negative at its end.
    """
    first = np.zeros(len(processes) + 1, dtype=np.int64)
    for row in range(len(held)):
        node = held[row, 0]
        if processes[node] > 0 and held[row, 2] < end and held[row, 3] > start:
            first[node + 1] += 2
    for node in range(len(processes)):
        first[node + 1] += first[node]
    until = first[:-1].copy()
    events = np.empty((first[-1], 2), dtype=np.int64)
    for row in range(len(held)):
        node = held[row, 0]
        if processes[node] > 0 and held[row, 2] < end and held[row, 3] > start:
            for sign in (1, -1):
                at = max(held[row, 2], start) if sign == 1 else min(held[row, 3], end)
                place = until[node]
                while place > first[node] and events[place - 1, 0] > at:
                    events[place, 0], events[place, 1] = events[place - 1, 0], events[place - 1, 1]
                    place -= 1
                events[place, 0], events[place, 1] = at, sign * (row + 1)
                until[node] += 1
    return first, until, events


@kernel
def checked_penalty(held: Ints, job: Job, start: int, processes: Ints, any_start: bool) -> int:
    """Return the penalized time of a placement in units, equation (4), or `BROKEN`.

    A placement is broken if it violates equations (2) or (3) or, unless `any_start`, (1).
    """
    total = 0
    for count in processes:
        if not 0 <= count <= job.processors:
            return BROKEN
        total += count
    if total != job.asked:
        return BROKEN
    if start != 0 and not any_start:
        ends = False
        for row in range(len(held)):
            ends |= held[row, 3] == start
        if not ends:
            return BROKEN
    capacity, scale, demand = job.capacity, job.scale, job.demand
    end = start + job.walltime
    first, until, events = events_within(held, start, end, processes)
    worst = 0
    level = np.empty(len(capacity), dtype=np.int64)
    for node in range(len(processes)):
        own = processes[node]
        if own == 0:
            continue
        for r in range(len(capacity)):
            level[r] = own * demand[r]
        active, lost, at = own, 0, start
        for event in range(first[node], until[node] + 1):
            now = events[event, 0] if event < until[node] else end
            if now > at:
                if active > job.processors:
                    return BROKEN
                for r in range(len(capacity)):
                    lost += (now - at) * scale[r] * max(level[r] - capacity[r], 0)
                at = now
            if event < until[node]:
                change = events[event, 1]
                row = abs(change) - 1
                count = held[row, 1] if change > 0 else -held[row, 1]
                active += count
                for r in range(len(capacity)):
                    level[r] += count * held[row, 4 + r]
        worst = max(worst, lost)
    return worst


@kernel
def added_penalty(held: Ints, job: Job, start: int, processes: Ints) -> int:
    """Return the penalized processor time that a job adds for all jobs in units, equation (6)."""
    capacity, scale, demand = job.capacity, job.scale, job.demand
    end = start + job.walltime
    first, until, events = events_within(held, start, end, processes)
    level = np.empty(len(capacity), dtype=np.int64)
    added = 0
    for node in range(len(processes)):
        own = processes[node]
        if own == 0:
            continue
        level[:] = 0
        others, at = 0, start
        for event in range(first[node], until[node] + 1):
            now = events[event, 0] if event < until[node] else end
            for r in range(len(capacity)):
                without = max(level[r] - capacity[r], 0)
                together = max(level[r] + own * demand[r] - capacity[r], 0)
                more = (others + own) * together - others * without
                added += (now - at) * scale[r] * more
            at = now
            if event < until[node]:
                change = events[event, 1]
                row = abs(change) - 1
                count = held[row, 1] if change > 0 else -held[row, 1]
                others += count
                for r in range(len(capacity)):
                    level[r] += count * held[row, 4 + r]
    return added


@kernel
def value(
    held: Ints, job: Job, goal: int, unit: int, start: int, processes: Ints, lost: int
) -> int:
    """Return the objective of a placement with a penalized time of `lost` units, equations (6)."""
    if goal == START:
        return start
    if goal == EVERYBODY:
        return int(added_penalty(held, job, start, processes))
    return start * unit + lost if goal == RESPONSE else lost
