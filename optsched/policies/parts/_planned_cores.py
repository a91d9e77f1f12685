"""What a plan does to the cores of nodes: compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.data_placement.holes import notice_widest

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    """Let the jobs of a plan have their cores, in their order; jobs that are left out have none.

    Parameters
    ----------
    available : float64 array, shape (nodes, cores)
        When each core is free for good; changed.
    reserved : float64 array, shape (nodes, cores)
        Until when a core that is free now is free, if it is reserved for later; changed.
    now : float
        The time of the plan.
    node, start, cores, walltimes : int64 array, shape (jobs,)
        The plan: see `Plan`; walltimes in seconds.
    """
    for job in range(len(node)):
        if node[job] < 0:
            continue
        begins = now + start[job]
        ends = begins + walltimes[job]
        for core in range(available.shape[1]):
            if not cores[job] >> core & 1:
                continue
            if begins < available[node[job], core]:  # in a hole, which it uses up
                reserved[node[job], core] = 0.0
                continue
            if start[job] > 0 and available[node[job], core] <= now:
                reserved[node[job], core] = begins
            available[node[job], core] = ends
        if node[job] == widest[1]:
            notice_widest(reserved, widest)
