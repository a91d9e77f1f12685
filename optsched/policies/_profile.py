"""Free processors over time, as a step function, compiled.

There are ``free[i]`` from ``times[i]`` to ``times[i + 1]``, and the last entry holds indefinitely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines._ascending import Numbers, Times, position

HEAD, STOP = 0, 1
"""Entries of `Profile.ends`: the profile is in the entries from `HEAD` to before `STOP`. Those
before it are earlier times, ascending too."""

SHORT = 1024
"""Number of dropped entries from which the profile moves to the front of its arrays."""


@by_reference
class Profile(NamedTuple):
    """Free processors over time."""

    times: Times
    free: Numbers
    ends: Numbers


def new_profile(free: int, jobs: int) -> Profile:
    """Return the profile of an idle machine, with room for that many jobs."""
    room = 4 * jobs + 2 * SHORT  # untouched pages of zeros take no memory
    times, level = np.zeros(room), np.zeros(room, dtype=np.int64)
    times[0], level[0] = -np.inf, free
    return Profile(times, level, np.array([0, 1]))


@kernel(allocates=False)
def entry_at(profile: Profile, at: float) -> int:
    """Return the last entry whose time is at most `at`, which is not before the profile."""
    return position(profile.times, profile.ends[STOP], at)


@kernel(allocates=False)
def entry_from(profile: Profile, entry: int, at: float) -> int:
    """Return the last entry whose time is at most `at`, which is `entry` or a later one."""
    times, stop = profile.times, profile.ends[STOP]
    step = 1
    while entry + step < stop and times[entry + step] <= at:
        entry += step
        step *= 2
    high = min(stop, entry + step)
    return entry + position(times[entry:high], high - entry, at)


@kernel(allocates=False)
def change(profile: Profile, start: float, end: float, processors: int, entry: int) -> int:
    """Add `processors` (negative to reserve) from `start`, which lies in `entry`, to `end`.

    Equal neighbors are merged. The entries behind move only if the number of entries changes.
    Returns the entry that holds at `start` now.
    """
    times, free, stop = profile.times, profile.free, profile.ends[STOP]
    last = entry_from(profile, entry, end)
    level, before = free[last], free[entry]
    inner, tail = entry, last
    first_grows, last_grows = 0, 0
    if times[entry] < start:
        first_grows = 1
        inner = entry + 1
    elif entry > profile.ends[HEAD] and before + processors == free[entry - 1]:
        first_grows = -1
    if times[last] != end:
        last_grows = 1
        tail = last + 1
    elif (free[last - 1] if last > entry else before) + processors == level:
        last_grows = -1
    grows = first_grows + last_grows
    if grows > 0:
        for e in range(stop - 1, tail - 1, -1):
            times[e + grows] = times[e]
            free[e + grows] = free[e]
    if first_grows > 0:
        for e in range(tail - 1, inner - 1, -1):
            times[e + 1] = times[e]
            free[e + 1] = free[e] + processors
        times[inner] = start
        free[inner] = before + processors
        changed = inner
    elif first_grows < 0:
        for e in range(inner + 1, tail):
            times[e - 1] = times[e]
            free[e - 1] = free[e] + processors
        changed = entry - 1
    else:
        for e in range(inner, tail):
            free[e] += processors
        changed = entry
    if last_grows > 0:
        times[tail + first_grows] = end
        free[tail + first_grows] = level
    if grows < 0:
        for e in range(tail + (last_grows < 0), stop):
            times[e + grows] = times[e]
            free[e + grows] = free[e]
    profile.ends[STOP] = stop + grows
    return changed


@kernel(allocates=False)
def first_window(
    profile: Profile, since: float, processors: int, duration: float
) -> tuple[float, int]:
    """Return the earliest start from `since` of a free window, and its entry."""
    times, free, stop = profile.times, profile.free, profile.ends[STOP]
    entry = entry_at(profile, since)
    start = since
    while True:
        while free[entry] < processors:
            entry += 1
            start = times[entry]
        first = entry
        # a sum, not a difference: a reservation ends at this very sum, so its old hole fits
        end = start + duration
        entry += 1
        while entry < stop and times[entry] < end and free[entry] >= processors:
            entry += 1
        if entry == stop or times[entry] >= end:
            return start, first


@kernel(allocates=False)
def forget(profile: Profile, now: float) -> None:
    """Drop the entries before `now`."""
    here = entry_at(profile, now)
    profile.times[here] = now
    profile.ends[HEAD] = here
    count = profile.ends[STOP] - here
    if here > SHORT and here > count:
        for e in range(count):
            profile.times[e] = profile.times[here + e]
            profile.free[e] = profile.free[here + e]
        profile.ends[HEAD], profile.ends[STOP] = 0, count


@kernel(allocates=False)
def place_again(
    profile: Profile, now: float, jobs: Numbers, processors: Numbers, duration: Times, start: Times
) -> bool:
    """Give each of some jobs the earliest reservation, in place of an earlier one if any.

    A job finds at least its old place, so no reservation is ever delayed. Returns whether any start
    has changed, infinite without a reservation: if not, another call changes nothing until further
    processors are freed.
    """
    moved = False
    for job in jobs:
        width, since, end = processors[job], max(start[job], now), start[job] + duration[job]
        if since < end < np.inf:
            change(profile, since, end, width, entry_at(profile, since))
        at, entry = first_window(profile, now, width, duration[job])
        change(profile, at, at + duration[job], -width, entry)
        moved |= at != start[job]
        start[job] = at
    return moved
