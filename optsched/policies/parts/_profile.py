"""Availability profile: free processors over time, compiled.

A profile is two arrays, shape (capacity,), of which the first `count` entries are used: from
``times[i]`` to ``times[i + 1]`` there are ``free[i]`` free processors, and the last entry holds
indefinitely. The reference in plain Python is in ``tests/policies/test_profile.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Times = NDArray[np.float64]
Levels = NDArray[np.int64]


@kernel(allocates=False)
def position(times: Times, count: int, at: float, after: float = 0.0) -> int:
    """Return the index of the last entry whose time, or some seconds after, is at most `at`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if times[middle] + after <= at:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel(allocates=False)
def split(times: Times, free: Levels, count: int, at: float) -> tuple[int, int]:
    """Ensure an entry at the time `at`; return its index and the new count."""
    here = position(times, count, at)
    if times[here] == at:
        return here, count
    for entry in range(count, here + 1, -1):
        times[entry] = times[entry - 1]
        free[entry] = free[entry - 1]
    times[here + 1] = at
    free[here + 1] = free[here]
    return here + 1, count + 1


@kernel(allocates=False)
def change(
    times: Times, free: Levels, count: int, start: float, end: float, processors: int
) -> int:
    """Add `processors` (negative to reserve) from `start` to `end`; return the new count.

    Entries at both ends that equal the previous one are removed.
    """
    first, count = split(times, free, count, start)
    last, count = split(times, free, count, end)
    for entry in range(first, last):
        free[entry] += processors
    if free[last] == free[last - 1]:
        count = _drop(times, free, count, last)
    if first > 0 and free[first] == free[first - 1]:
        count = _drop(times, free, count, first)
    return count


@kernel(allocates=False)
def _drop(times: Times, free: Levels, count: int, entry: int) -> int:
    for later in range(entry, count - 1):
        times[later] = times[later + 1]
        free[later] = free[later + 1]
    return count - 1


@kernel(allocates=False)
def earliest(
    times: Times, free: Levels, count: int, now: float, processors: int, duration: float
) -> float:
    """Return the earliest time from `now` at which `processors` are free for `duration`."""
    entry = position(times, count, now)
    start = now
    while entry < count:
        if free[entry] < processors:
            entry += 1
            start = times[entry]
            continue
        # a sum, not a difference: a reservation ends at this very sum, so its old hole fits
        if entry + 1 == count or times[entry + 1] >= start + duration:
            return start
        entry += 1
    return start


@kernel(allocates=False)
def forget(times: Times, free: Levels, count: int, now: float) -> int:
    """Drop the entries before `now`; return the new count."""
    here = position(times, count, now)
    if here > 0:
        for entry in range(here, count):
            times[entry - here] = times[entry]
            free[entry - here] = free[entry]
        count -= here
    times[0] = now
    return count


@kernel(allocates=False)
def place(
    times: Times,
    free: Levels,
    count: int,
    now: float,
    jobs: Levels,
    processors: Levels,
    durations: Times,
    starts: Times,
) -> tuple[int, bool]:
    """Give each of `jobs`, in order, the earliest reservation, in place of an earlier one if any.

    A job finds at least its old place, so no reservation is ever delayed.

    Returns
    -------
    count : int
        The new count.
    moved : bool
        Whether any of `starts`, inf without a reservation, has changed. If not, another call
        changes nothing until further processors are freed.
    """
    moved = False
    for job in jobs:
        if starts[job] < np.inf:
            held_until = starts[job] + durations[job]
            count = change(times, free, count, starts[job], held_until, processors[job])
        start = earliest(times, free, count, now, processors[job], durations[job])
        count = change(times, free, count, start, start + durations[job], -processors[job])
        moved |= start != starts[job]
        starts[job] = start
    return count, moved


def new_profile(now: float, free: int, capacity: int) -> tuple[Times, Levels, int]:
    """Return arrays and count of a profile with `free` processors from `now` on."""
    times = np.zeros(capacity)
    levels = np.zeros(capacity, dtype=np.int64)
    times[0], levels[0] = now, free
    return times, levels, 1
