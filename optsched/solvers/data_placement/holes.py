"""Cores that are free now, but reserved for a job that is planned for later: compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.data_placement._cores import sort, take_first

Integers = NDArray[np.int64]


@kernel
def in_holes(reserved: Integers, walltime: int) -> int:
    """Return how many cores of a node are reserved, and free for a walltime until then."""
    count = 0
    for until in reserved:
        if until > 0 and until >= walltime:
            count += 1
    return count


@kernel
def from_holes(keys: Integers, reserved: Integers, processors: int, walltime: int) -> int:
    """Return how many cores from holes a job uses that starts now; -1 if it cannot.

    As many as there are for so long; the rest is from cores that are not reserved.
    """
    count: int = min(processors, in_holes(reserved, walltime))
    missing = processors - count
    if missing and keys[missing - 1] >= 64:
        return -1
    return count


@kernel
def notice_widest(reserved: Integers, widest: Integers) -> None:
    """Set the widest hole: its cores, and the first node that has it."""
    widest[0] = -1
    for node in range(len(reserved)):
        count = 0
        for until in reserved[node]:
            if until > 0:
                count += 1
        if count > widest[0]:
            widest[0], widest[1] = count, node


@kernel
def take_from_holes(
    keys: Integers, reserved: Integers, processors: int, holes: int, walltime: int
) -> int:
    """Let a job start now on cores of the holes that end first; return its cores as bits."""
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


@kernel
def take_by_number(
    keys: Integers, reserved: Integers, processors: int, start: int, walltime: int
) -> int:
    """Let a job have the cores of least number that are free at its start; return them as bits.

    Those that are free now are reserved from then on, and a hole until then.
    """
    width = len(keys)
    at = np.empty(width, dtype=np.int64)
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
