"""Verification and load times of plans, compiled: what the problem's methods state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.by_reference import by_reference
from optsched.compiled import kernel

NOWHERE = -1

PROCESSORS, WALLTIME, FILE, LOAD = range(4)
"""Columns of `Arrays.jobs`."""


@by_reference
class Arrays(NamedTuple):
    """The fields of a data-placement problem that kernels read."""

    available: Ints
    reserved: Ints  # 0 without holes
    occupied: Flags
    jobs: Ints  # shape (jobs, 4)
    resident: Ints
    started: Flags
    until_next: bool  # whether files stay until the next start on their node
    partial: bool
    capacity: int


@kernel
def by_start(node: Ints, start: Ints) -> Ints:
    """Return the jobs with a place, by start, then in order. They are few of a long queue."""
    jobs = np.empty(len(node), dtype=np.int64)
    starts = np.empty(len(node), dtype=np.int64)
    count = 0
    for job in range(len(node)):
        if node[job] != NOWHERE:
            jobs[count], starts[count] = job, start[job]
            count += 1
    order = np.argsort(starts[:count], kind="mergesort")
    for place in range(count):
        order[place] = jobs[order[place]]
    return order


@kernel
def is_sound(arrays: Arrays, latest: int, plan: Ints) -> bool:
    """Return whether a plan, in which jobs start by `latest`, keeps equations (2) to (5).

    The plan is an array of node, start and cores of each job, shape (3, jobs).
    """
    available, reserved, jobs = arrays.available, arrays.reserved, arrays.jobs
    nodes, width = available.shape
    node, start, cores = plan[0], plan[1], plan[2]
    busy_until = np.zeros((nodes, width), dtype=np.int64)
    for job in range(len(node)):
        if node[job] == NOWHERE and (not arrays.partial or start[job] != 0 or cores[job] != 0):
            return False
    for job in by_start(node, start):
        at, begin, mask = node[job], start[job], cores[job]
        if not (0 <= at < nodes and 0 <= begin <= latest and 0 <= mask < 1 << width):
            return False
        end, held = begin + jobs[job, WALLTIME], 0
        for core in range(width):
            if not mask >> core & 1:
                continue
            held += 1
            if begin < available[at, core] and end > reserved[at, core]:
                return False
            if begin < busy_until[at, core]:
                return False
            busy_until[at, core] = end
        if held != jobs[job, PROCESSORS]:
            return False
    return True


@kernel
def load_times(arrays: Arrays, plan: Ints) -> Ints:
    """Return the load times of a sound plan, shape (jobs,).

    A file of a node is an entry: the file, the last end of its users, the time at which it is
    loaded, and the next entry of the node.
    """
    jobs, resident, started = arrays.jobs, arrays.resident, arrays.started
    nodes = len(started)
    node, start = plan[0], plan[1]
    times = np.empty(len(jobs), dtype=np.int64)
    for job in range(len(jobs)):
        times[job] = jobs[job, LOAD]
    first = np.full(nodes, NOWHERE)
    latest_start = np.full(nodes, NOWHERE)
    start_before = np.full(nodes, NOWHERE)  # the latest before that
    for at in range(nodes):
        if started[at]:
            latest_start[at] = 0
    entries = np.empty((len(resident) + len(jobs), 4), dtype=np.int64)
    used = 0
    for row in range(len(resident)):
        at = resident[row, 0]
        entries[used, 0], entries[used, 1] = resident[row, 1], resident[row, 4]
        entries[used, 2], entries[used, 3] = resident[row, 3], first[at]
        first[at] = used
        used += 1
    for job in by_start(node, start):
        at, file, begin = node[job], jobs[job, FILE], start[job]
        if begin > latest_start[at]:
            start_before[at] = latest_start[at]
            latest_start[at] = begin
        if file < 0:
            continue
        entry = first[at]
        while entry != NOWHERE and entries[entry, 0] != file:
            entry = entries[entry, 3]
        if entry == NOWHERE:
            entry = used
            entries[entry, 0], entries[entry, 1] = file, NOWHERE
            entries[entry, 2], entries[entry, 3] = 0, first[at]
            first[at] = entry
            used += 1
        last_end = entries[entry, 1]
        if begin > last_end and not (arrays.until_next and start_before[at] < last_end):
            entries[entry, 2] = begin + jobs[job, LOAD]
        times[job] = max(entries[entry, 2] - begin, 0)
        entries[entry, 1] = max(last_end, begin + jobs[job, WALLTIME])
    return times


@kernel(allocates=False)
def weighed(arrays: Arrays, plan: Ints, times: Ints, priorities: Ints, load_weight: int) -> int:
    """Return the weighted sum of waiting and loading, equation (1), with the load times of a plan.

    A job that is left out waits until the horizon.
    """
    available, jobs = arrays.available, arrays.jobs
    horizon = longest = total = 0
    for node in range(available.shape[0]):
        for core in range(available.shape[1]):
            horizon = max(horizon, available[node, core])
    for job in range(len(jobs)):
        longest = max(longest, jobs[job, WALLTIME])
    horizon += longest
    for job in range(len(jobs)):
        start = horizon if plan[0, job] == NOWHERE else plan[1, job]
        total += priorities[job] * (start + load_weight * times[job])
    return int(total)
