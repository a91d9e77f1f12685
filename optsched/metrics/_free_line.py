"""Compiled kernels that follow the free slots of a line of nodes through a schedule.

They are loops over scalars: an expression of arrays takes numba seconds to compile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@kernel(allocates=False)
def slot_after(starts: Ints, count: int, start: int) -> int:
    """Return the first of `count` slots in order that begins after `start`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if starts[middle] <= start:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False)
def release(starts: Ints, stops: Ints, count: int, start: int, stop: int) -> int:
    """Free a run of nodes, merged with adjacent slots; return the new number of slots."""
    after = slot_after(starts, count, start)
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
    slot = slot_after(starts, count, start) - 1
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
def free_line(
    starts: Ints,
    stops: Ints,
    instants: Floats,
    events: Ints,
    kinds: Ints,
    jobs: Ints,
    rank: Ints,
    sizes: Ints,
    first: Ints,
    last: Ints,
    runs: Ints,
    waiting: Ints,
    by_class: Ints,
    table: Ints,
    in_class: Floats,
) -> None:
    """Follow the free nodes from instant to instant.

    Parameters
    ----------
    starts, stops : int64 array, shape (runs + 2,)
        First node and end of each free slot; at first, one slot is free.
    instants : float64 array, shape (instants,)
        Times, in order.
    events : int64 array, shape (instants + 1,)
        The events of instant i are those from ``events[i]`` up to ``events[i + 1]``.
    kinds, jobs : int64 array, shape (events,)
        Kind of each event (0 an end, 1 a submission, 2 a start), and its job.
    rank : int64 array, shape (jobs,)
        Position of the size of each job in `sizes`.
    sizes : int64 array, shape (sizes,)
        The sizes of jobs, smallest first.
    first, last : int64 array, shape (jobs,)
        ``runs[first[j]:last[j]]`` are the nodes of job j.
    runs : int64 array, shape (runs, 2)
        First node and end of each run of nodes.
    waiting : int64 array, shape (sizes,)
        Number of waiting jobs of each size; 0 at first.
    by_class : int64 array, shape (classes,)
        Nodes in free slots of each class.
    table : int64 array, shape (instants, 5)
        Output, the state from each instant on: free nodes, number of slots, nodes of the largest
        slot, size of the smallest waiting job (0 if no job waits), and the free nodes in slots too
        small for that job, if enough nodes are free for it in all slots together.
    in_class : float64 array, shape (stretches, classes)
        Output, 0 before: for stretches of equal length from the first to the last instant,
        node-seconds free in slots of 2^k to 2^(k+1) - 1 nodes.
    """
    if len(instants) == 0:  # all jobs were rejected
        return
    stretches, classes = in_class.shape
    count, smallest = 1, 0
    begin = instants[0]
    width = (instants[-1] - begin) / stretches
    for instant in range(len(instants)):
        for event in range(events[instant], events[instant + 1]):
            job = jobs[event]
            if kinds[event] == 0:
                for run in range(first[job], last[job]):
                    count = release(starts, stops, count, runs[run, 0], runs[run, 1])
            elif kinds[event] == 1:
                waiting[rank[job]] += 1
                smallest = min(smallest, rank[job])
            else:
                waiting[rank[job]] -= 1
                for run in range(first[job], last[job]):
                    count = take(starts, stops, count, runs[run, 0], runs[run, 1])
        while smallest < len(sizes) and waiting[smallest] == 0:
            smallest += 1
        wanted = sizes[smallest] if smallest < len(sizes) else 0
        free, largest, useless = 0, 0, 0
        for kind in range(classes):
            by_class[kind] = 0
        for slot in range(count):
            length = stops[slot] - starts[slot]
            free += length
            largest = max(largest, length)
            if length < wanted:
                useless += length
            kind = 0
            while length >> (kind + 1) > 0:
                kind += 1
            by_class[kind] += length
        if instant + 1 < len(instants):
            now, until = instants[instant], instants[instant + 1]
            stretch = min(stretches - 1, int((now - begin) / width))
            while stretch < stretches:
                end = until if stretch == stretches - 1 else begin + (stretch + 1) * width
                if end > now:
                    for kind in range(classes):
                        in_class[stretch, kind] += (min(end, until) - now) * by_class[kind]
                    now = end
                if now >= until:
                    break
                stretch += 1
        table[instant, 0], table[instant, 1], table[instant, 2] = free, count, largest
        table[instant, 3], table[instant, 4] = wanted, useless if wanted <= free else 0
