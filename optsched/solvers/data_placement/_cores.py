"""Times from which the cores of a node are free in a partial plan, and its holes, compiled.

A core is the key ``free from * 64 + core``, so that sorting the keys of a node sorts its cores by
time, then by number. A hole is made of cores that are free now and reserved for a later job.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]


@kernel(allocates=False)
def sort_cores(keys: Integers, available: Integers) -> None:
    """Update the keys of each node, and sort them; past times count as now.

    That is fastest if the cores are in nearly the right order already.
    """
    nodes, cores = available.shape
    for node in range(nodes):
        for i in range(cores):
            core = keys[node, i] & 63
            keys[node, i] = max(available[node, core], 0) * 64 + core
        sort(keys[node])


@kernel(allocates=False)
def sort(keys: Integers) -> None:
    """Sort the nearly sorted keys of a node by insertion."""
    for i in range(1, len(keys)):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@kernel(allocates=False)
def free_now(keys: Integers) -> int:
    """Return the number of cores of a node that are free now."""
    count = 0
    for key in keys:
        if key >= 64:
            break
        count += 1
    return count


@kernel(allocates=False)
def take_first(keys: Integers, count: int, until: int) -> int:
    """Allocate the first cores of a node until a time, and return a bit mask of them."""
    bits = 0
    for i in range(count):
        core = keys[i] & 63
        bits |= 1 << core
        keys[i] = until * 64 + core
    sort(keys)
    return bits


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
