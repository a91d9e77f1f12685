"""Holes: cores that are free now and reserved for a later job, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.data_placement._cores import sort, take_first

Integers = NDArray[np.int64]


@kernel(allocates=False)
def in_holes(reserved: Integers, walltime: int) -> int:
    """Return the number of cores of a node in holes that last at least a walltime."""
    count = 0
    for until in reserved:
        if until > 0 and until >= walltime:
            count += 1
    return count


@kernel(allocates=False)
def from_holes(keys: Integers, reserved: Integers, processors: int, walltime: int) -> int:
    """Return the number of cores from holes that a job uses now; -1 if the job does not fit.

    A job prefers cores from holes, and takes the others from unreserved cores.
    """
    count: int = min(processors, in_holes(reserved, walltime))
    missing = processors - count
    if missing and keys[missing - 1] >= 64:
        return -1
    return count


@kernel(allocates=False)
def update_widest(reserved: Integers, widest: Integers) -> None:
    """Update the core count and the first node of the widest hole."""
    widest[0] = -1
    for node in range(len(reserved)):
        count = 0
        for until in reserved[node]:
            if until > 0:
                count += 1
        if count > widest[0]:
            widest[0], widest[1] = count, node


@kernel(allocates=False)
def take_from_holes(
    keys: Integers, reserved: Integers, processors: int, holes: int, walltime: int
) -> int:
    """Start a job now on the holes that end first, and return a bit mask of its cores."""
    bits = 0
    for _ in range(holes):
        chosen = -1
        for core in range(len(reserved)):
            if reserved[core] >= walltime and (chosen < 0 or reserved[core] < reserved[chosen]):
                chosen = core
        bits |= 1 << chosen
        reserved[chosen] = 0
    if processors > holes:
        bits |= take_first(keys, processors - holes, walltime)
    return bits


@kernel(allocates=False)
def take_by_number(
    keys: Integers, reserved: Integers, at: Integers, processors: int, start: int, walltime: int
) -> int:
    """Allocate the lowest cores that are free at a start, and return a bit mask of them.

    Allocated cores that are free now become holes until the start. `at` has space for the cores.
    """
    width = len(keys)
    for i in range(width):
        at[keys[i] & 63] = i
    bits = 0
    taken = 0
    for core in range(width):
        i = at[core]
        free_from = keys[i] >> 6
        if free_from <= start:
            bits |= 1 << core
            if free_from == 0 and start > 0:
                reserved[core] = start
            keys[i] = (start + walltime) * 64 + core
            taken += 1
            if taken == processors:
                break
    sort(keys)
    return bits
