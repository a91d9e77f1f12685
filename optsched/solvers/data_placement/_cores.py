"""Times from which the cores of a node are free in a partial plan, compiled.

A core is the key ``free from * 64 + core``, so that sorting the keys of a node sorts its cores by
time, then by number.
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
