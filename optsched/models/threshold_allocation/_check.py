"""Verification of placements, compiled: what the problem's `violations` states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.threshold_allocation._timeline import Job

Integers = NDArray[np.int64]

START, PENALTY, RESPONSE, EVERYBODY = range(4)
"""Goals in the order of `optsched.models.threshold_allocation.problem.GOALS`."""

BROKEN = -1
"""Penalized time of a placement that is not feasible, whatever the threshold."""


@kernel
def events_within(
    held: Integers, start: int, end: int, processes: Integers
) -> tuple[Integers, Integers, Integers]:
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
def checked_penalty(
    held: Integers, job: Job, start: int, processes: Integers, any_start: bool
) -> int:
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
def added_penalty(held: Integers, job: Job, start: int, processes: Integers) -> int:
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
    held: Integers, job: Job, goal: int, unit: int, start: int, processes: Integers, lost: int
) -> int:
    """Return the objective of a placement with a penalized time of `lost` units, equations (6)."""
    if goal == START:
        return start
    if goal == EVERYBODY:
        return int(added_penalty(held, job, start, processes))
    return start * unit + lost if goal == RESPONSE else lost
