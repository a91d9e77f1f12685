"""Compiled kernels that follow the free slots of a line of nodes through a schedule.

They are loops over scalars: an expression of arrays takes numba seconds to compile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.machines._interval_text import read_run

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
State = NDArray[np.int32]


@kernel(allocates=False)
def up_to(values: Ints, count: int, most: int) -> int:
    """Return how many of the first `count` ascending values are at most `most`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= most:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False)
def release(starts: Ints, stops: Ints, count: int, start: int, stop: int) -> int:
    """Free a run of nodes, merged with adjacent slots; return the new number of slots."""
    after = up_to(starts, count, start)
    joins_before = after > 0 and stops[after - 1] == start
    joins_after = after < count and starts[after] == stop
    if joins_before and joins_after:
        stops[after - 1] = stops[after]
        for k in range(after, count - 1):
            starts[k], stops[k] = starts[k + 1], stops[k + 1]
        return count - 1
    if joins_before:
        stops[after - 1] = stop
        return count
    if joins_after:
        starts[after] = start
        return count
    for k in range(count, after, -1):
        starts[k], stops[k] = starts[k - 1], stops[k - 1]
    starts[after], stops[after] = start, stop
    return count + 1


@kernel(allocates=False)
def take(starts: Ints, stops: Ints, count: int, start: int, stop: int) -> int:
    """Remove a run of nodes from the slot that contains it; return the new number of slots."""
    slot = up_to(starts, count, start) - 1
    left, right = starts[slot] < start, stop < stops[slot]
    if left and right:
        for k in range(count, slot, -1):
            starts[k], stops[k] = starts[k - 1], stops[k - 1]
        stops[slot], starts[slot + 1] = start, stop
        return count + 1
    if left:
        stops[slot] = start
        return count
    if right:
        starts[slot] = stop
        return count
    for k in range(slot, count - 1):
        starts[k], stops[k] = starts[k + 1], stops[k + 1]
    return count - 1


@kernel(allocates=False)
def spread(
    in_class: Floats, by_class: Ints, begin: float, width: float, now: float, until: float
) -> None:
    """Add the node-seconds from `now` to `until` of the free nodes of each class."""
    stretches = len(in_class)
    stretch = min(stretches - 1, int((now - begin) / width))
    while stretch < stretches:
        end = until if stretch == stretches - 1 else begin + (stretch + 1) * width
        if end > now:
            seconds = min(end, until) - now
            for kind in range(len(by_class)):
                in_class[stretch, kind] += seconds * by_class[kind]
            now = end
        if now >= until:
            break
        stretch += 1


@kernel(allocates=False)
def free_line(
    size: int,  # nodes of the line
    # Jobs that ended, were submitted and started, by time
    ends: Ints,
    submissions: Ints,
    begins: Ints,
    end: Floats,
    submit: Floats,
    start: Floats,
    processors: Ints,  # size of each job, shape (jobs,)
    sizes: Ints,  # the different sizes, smallest first, shape (sizes,)
    text: NDArray[np.uint8],  # nodes of the jobs as interval sets
    offset: Ints,  # ``text[offset[j]:offset[j + 1]]`` are the nodes of job j, shape (jobs + 1,)
    # Room for the free slots, shape (most slots,)
    starts: Ints,
    stops: Ints,
    waiting: Ints,  # room for the number of waiting jobs of each size, all 0, shape (sizes,)
    by_class: Ints,  # room for the free nodes in slots of each class, shape (classes,)
    time: Floats,  # output, times in order, shape (most instants,)
    # Output, the state from each instant on: free nodes, number of slots, nodes of the
    # largest slot, size of the smallest waiting job (0 if no job waits), and the free nodes
    # in slots too small for that job, if enough nodes are free for it in all slots together,
    # shape (most instants,)
    free: State,
    slots: State,
    largest_slot: State,
    smallest_waiting: State,
    useless: State,
    # Output, all 0 before, for stretches of equal length from the first to the last instant:
    # node-seconds free in slots of 2^k to 2^(k+1) - 1 nodes, shape (stretches, classes)
    in_class: Floats,
    # Time of the first instant, and length of a stretch
    first: float,
    width: float,
) -> int:
    """Follow the free nodes from instant to instant; return the number of instants."""
    starts[0], stops[0], count = 0, size, 1
    smallest = instants = ended = submitted = begun = 0
    while True:
        now = np.inf
        if ended < len(ends):
            now = min(now, end[ends[ended]])
        if submitted < len(submissions):
            now = min(now, submit[submissions[submitted]])
        if begun < len(begins):
            now = min(now, start[begins[begun]])
        if now == np.inf:
            return instants
        if instants > 0:
            spread(in_class, by_class, first, width, time[instants - 1], now)
        while ended < len(ends) and end[ends[ended]] == now:
            job = ends[ended]
            at, behind = offset[job], offset[job + 1]
            while at < behind:
                node, stop, at = read_run(text, at, behind)
                count = release(starts, stops, count, node, stop)
            ended += 1
        while submitted < len(submissions) and submit[submissions[submitted]] == now:
            rank = up_to(sizes, len(sizes), processors[submissions[submitted]]) - 1
            waiting[rank] += 1
            smallest = min(smallest, rank)
            submitted += 1
        while begun < len(begins) and start[begins[begun]] == now:
            job = begins[begun]
            waiting[up_to(sizes, len(sizes), processors[job]) - 1] -= 1
            at, behind = offset[job], offset[job + 1]
            while at < behind:
                node, stop, at = read_run(text, at, behind)
                count = take(starts, stops, count, node, stop)
            begun += 1
        while smallest < len(sizes) and waiting[smallest] == 0:
            smallest += 1
        wanted = sizes[smallest] if smallest < len(sizes) else 0
        total, largest, too_small = 0, 0, 0
        for kind in range(len(by_class)):
            by_class[kind] = 0
        for slot in range(count):
            length = stops[slot] - starts[slot]
            total += length
            largest = max(largest, length)
            if length < wanted:
                too_small += length
            kind = 0
            while length >> (kind + 1) > 0:
                kind += 1
            by_class[kind] += length
        time[instants], free[instants], slots[instants] = now, total, count
        largest_slot[instants], smallest_waiting[instants] = largest, wanted
        useless[instants] = too_small if wanted <= total else 0
        instants += 1
