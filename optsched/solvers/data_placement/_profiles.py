"""Availability profiles of the cores of nodes, compiled.

Each node has a list of allocations: (start, end, bit mask of cores, next), in seconds from now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]
START, END, BITS, NEXT = range(4)
NONE = -1
FOREVER = np.iinfo(np.int64).max


class Profiles(NamedTuple):
    """Allocations of running and planned jobs on each node."""

    head: Integers  # first allocation of each node, shape (nodes,)
    held: Integers  # start, end, cores and next allocation of the node, shape (allocations, 4)
    used: Integers
    # First time at which a number of cores is free at once on a node, for any duration, shape
    # (nodes, cores + 1)
    earliest: Integers


@kernel
def profiles_of(available: Integers, reserved: Integers, jobs: int) -> Profiles:
    """Return the allocations of running jobs, with space for `jobs` more."""
    nodes, width = available.shape
    profiles = Profiles(
        np.full(nodes, NONE, dtype=np.int64),
        np.empty((nodes * width + jobs, 4), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros((nodes, width + 1), dtype=np.int64),
    )
    for node in range(nodes):
        for core in range(width):
            if available[node, core] > 0:
                put(profiles, node, reserved[node, core], available[node, core], 1 << core)
        update_earliest(profiles, node)
    return profiles


@kernel(allocates=False)
def put(profiles: Profiles, node: int, start: int, end: int, bits: int) -> None:
    """Add an allocation, merged into one with the same start and end if possible."""
    row = profiles.head[node]
    while row != NONE:
        if profiles.held[row, START] == start and profiles.held[row, END] == end:
            profiles.held[row, BITS] |= bits
            return
        row = profiles.held[row, NEXT]
    row = profiles.used[0]
    profiles.used[0] += 1
    profiles.held[row] = (start, end, bits, profiles.head[node])
    profiles.head[node] = row


@kernel(allocates=False)
def free_during(profiles: Profiles, node: int, start: int, end: int) -> int:
    """Return a bit mask of the cores that are free from `start` to before `end`."""
    width = profiles.earliest.shape[1] - 1
    bits: int = (1 << width) - 1
    row = profiles.head[node]
    while row != NONE:
        if profiles.held[row, START] < end and start < profiles.held[row, END]:
            bits &= ~profiles.held[row, BITS]
        row = profiles.held[row, NEXT]
    return bits


@kernel(allocates=False)
def bits_in(bits: int) -> int:
    """Return the number of set bits."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@kernel(allocates=False)
def first_window(profiles: Profiles, node: int, processors: int, walltime: int, limit: int) -> int:
    """Return the first time from which enough cores are free for a walltime, or `limit` if later.

    A time of 0 is found in any case.
    """
    if bits_in(free_during(profiles, node, 0, walltime)) >= processors:
        return 0
    best: int = limit
    row = profiles.head[node]
    while row != NONE:
        at = profiles.held[row, END]
        if (
            profiles.earliest[node, processors] <= at < best
            and bits_in(free_during(profiles, node, at, at + walltime)) >= processors
        ):
            best = at
        row = profiles.held[row, NEXT]
    return best


@kernel(allocates=False)
def update_earliest(profiles: Profiles, node: int) -> None:
    """Recompute the first time at which each number of cores of a node is free at once."""
    earliest = profiles.earliest[node]
    count = bits_in(free_during(profiles, node, 0, 1))
    for cores in range(len(earliest)):
        earliest[cores] = 0 if cores <= count else FOREVER
    row = profiles.head[node]
    while row != NONE:
        at = profiles.held[row, END]
        count = bits_in(free_during(profiles, node, at, at + 1))
        for cores in range(count, 0, -1):
            if earliest[cores] <= at:
                break
            earliest[cores] = at
        row = profiles.held[row, NEXT]


@kernel(allocates=False)
def lowest_bits(bits: int, count: int) -> int:
    """Return the `count` lowest set bits."""
    taken = 0
    for _ in range(count):
        lowest = bits & -bits
        taken |= lowest
        bits &= ~lowest
    return taken
