"""Verification and load times of plans, compiled: what the problem's methods state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]
NOWHERE = -1


@kernel
def by_start(node: Integers, start: Integers) -> Integers:
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
def is_sound(
    available: Integers,
    reserved: Integers,
    processors: Integers,
    walltimes: Integers,
    partial: bool,
    latest: int,
    plan: Integers,
) -> bool:
    """Return whether a plan, in which jobs start by `latest`, keeps equations (2) to (5).

    The plan is an array of node, start and cores of each job, shape (3, jobs). The other arguments
    are fields of the problem, where `reserved` is 0 without holes.
    """
    nodes, width = available.shape
    node, start, cores = plan[0], plan[1], plan[2]
    busy_until = np.zeros((nodes, width), dtype=np.int64)
    for job in range(len(node)):
        if node[job] == NOWHERE and (not partial or start[job] != 0 or cores[job] != 0):
            return False
    for job in by_start(node, start):
        at, begin, mask = node[job], start[job], cores[job]
        if not (0 <= at < nodes and 0 <= begin <= latest and 0 <= mask < 1 << width):
            return False
        end, held = begin + walltimes[job], 0
        for core in range(width):
            if not mask >> core & 1:
                continue
            held += 1
            if begin < available[at, core] and end > reserved[at, core]:
                return False
            if begin < busy_until[at, core]:
                return False
            busy_until[at, core] = end
        if held != processors[job]:
            return False
    return True


@kernel
def load_times(
    nodes: int,
    walltimes: Integers,
    files: Integers,
    loads: Integers,
    resident: Integers,
    until_next: bool,
    started: NDArray[np.bool_],
    plan: Integers,
) -> Integers:
    """Return the load times of a sound plan, shape (jobs,).

    With `until_next`, files stay until the next start on their node; `started` are the nodes with a
    start in this second. A file of a node is an entry: the file, the last end of its users, the
    time at which it is loaded, and the next entry of the node.
    """
    node, start = plan[0], plan[1]
    times = loads.copy()
    first = np.full(nodes, NOWHERE)
    latest_start = np.full(nodes, NOWHERE)
    start_before = np.full(nodes, NOWHERE)  # the latest before that
    for at in range(nodes):
        if started[at]:
            latest_start[at] = 0
    entries = np.empty((len(resident) + len(files), 4), dtype=np.int64)
    used = 0
    for row in range(len(resident)):
        at = resident[row, 0]
        entries[used, 0], entries[used, 1] = resident[row, 1], resident[row, 4]
        entries[used, 2], entries[used, 3] = resident[row, 3], first[at]
        first[at] = used
        used += 1
    for job in by_start(node, start):
        at, file, begin = node[job], files[job], start[job]
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
        if begin > last_end and not (until_next and start_before[at] < last_end):
            entries[entry, 2] = begin + loads[job]
        times[job] = max(entries[entry, 2] - begin, 0)
        entries[entry, 1] = max(last_end, begin + walltimes[job])
    return times
