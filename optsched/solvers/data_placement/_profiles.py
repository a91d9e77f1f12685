"""Which cores of which node are held when, gaps included: compiled.

Every node has a list of holdings: (start, end, cores as bits, next), in seconds from now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]
START, END, BITS, NEXT = range(4)
NONE = -1


class Profiles(NamedTuple):
    """What is held on each node, by running jobs and by planned ones.

    Parameters
    ----------
    head : int64 array, shape (nodes,)
        The first holding of each node.
    held : int64 array, shape (holdings, 4)
        Start, end, cores, next holding of the node.
    used : int64 array, shape (1,)
        How many holdings there are.
    earliest : int64 array, shape (nodes, cores + 1)
        When so many cores of a node are free at once for the first time, for however short.
    """

    head: Integers
    held: Integers
    used: Integers
    earliest: Integers


@kernel
def profiles_of(available: Integers, reserved: Integers, jobs: int) -> Profiles:
    """Return what is held before anything is planned, with room for so many jobs."""
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
        notice_earliest(profiles, node)
    return profiles


@kernel
def put(profiles: Profiles, node: int, start: int, end: int, bits: int) -> None:
    """Let cores be held; with those that are held for the very same time, if there are any."""
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


@kernel
def free_during(profiles: Profiles, node: int, start: int, end: int) -> int:
    """Return the cores that nobody holds from a time until before another, as bits."""
    width = profiles.earliest.shape[1] - 1
    bits: int = (1 << width) - 1
    row = profiles.head[node]
    while row != NONE:
        if profiles.held[row, START] < end and start < profiles.held[row, END]:
            bits &= ~profiles.held[row, BITS]
        row = profiles.held[row, NEXT]
    return bits


@kernel
def bits_in(bits: int) -> int:
    """Return how many bits are set."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@kernel
def first_window(profiles: Profiles, node: int, processors: int, walltime: int) -> int:
    """Return the first time from which so many cores are free for a walltime."""
    if bits_in(free_during(profiles, node, 0, walltime)) >= processors:
        return 0
    best: int = np.iinfo(np.int64).max
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


@kernel
def notice_earliest(profiles: Profiles, node: int) -> None:
    """Set when so many cores of a node are free at once for the first time."""
    earliest = profiles.earliest[node]
    earliest[:] = np.iinfo(np.int64).max
    count = bits_in(free_during(profiles, node, 0, 1))
    earliest[: count + 1] = 0
    row = profiles.head[node]
    while row != NONE:
        at = profiles.held[row, END]
        count = bits_in(free_during(profiles, node, at, at + 1))
        for cores in range(count, 0, -1):
            if earliest[cores] <= at:
                break
            earliest[cores] = at
        row = profiles.held[row, NEXT]


@kernel
def lowest_bits(bits: int, count: int) -> int:
    """Return the lowest bits of a number that has as many."""
    taken = 0
    for _ in range(count):
        lowest = bits & -bits
        taken |= lowest
        bits &= ~lowest
    return taken
