"""Booking of the cores of a plan, compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.data_placement.holes import update_widest

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@kernel
def from_now(times: Floats, now: float) -> Integers:
    """Return times as whole seconds from now, at least 0, shape (nodes, cores)."""
    seconds = np.empty(times.shape, dtype=np.int64)
    for node in range(times.shape[0]):
        for core in range(times.shape[1]):
            seconds[node, core] = math.ceil(max(times[node, core] - now, 0.0))
    return seconds


@kernel
def book(
    available: Floats,
    reserved: Floats,
    widest: Integers,
    now: float,
    node: Integers,
    start: Integers,
    cores: Integers,
    walltimes: Integers,
) -> None:
    """Book the cores of the jobs of a plan, in order, except for jobs without a place.

    The arrays of `PlannedCores` are updated. The plan is that of `Plan`, from the time `now` on,
    with walltimes in seconds.
    """
    for job in range(len(node)):
        if node[job] < 0:
            continue
        begins = now + start[job]
        ends = begins + walltimes[job]
        for core in range(available.shape[1]):
            if not cores[job] >> core & 1:
                continue
            if begins < available[node[job], core]:  # in a hole, which the job uses up
                reserved[node[job], core] = 0.0
                continue
            if start[job] > 0 and available[node[job], core] <= now:
                reserved[node[job], core] = begins
            available[node[job], core] = ends
        if node[job] == widest[1]:
            update_widest(reserved, widest)
