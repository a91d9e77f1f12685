"""Feasibility prefilter of jobs that may start now, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.threshold_allocation._penalties import Timeline

Integers = NDArray[np.int64]


@kernel
def can_start_now(
    events: Timeline,
    processors: int,
    capacity: Integers,
    scale: Integers,
    asked: Integers,
    walltime: Integers,
    demand: Integers,
    limit: Integers,
) -> NDArray[np.bool_]:
    """Return a flag for each job that can start now within its limit, shape (jobs,).

    A job can start if the nodes together hold all of its processes, each node at most as many as
    keep the penalized time within the limit; see
    `optsched.solvers.threshold_allocation.bottleneck_search`.

    Parameters
    ----------
    events : Timeline
        Allocations of the nodes.
    processors : int
        Processors of each node.
    capacity, scale : int64 array, shape (resources,)
        As in the threshold-allocation problem.
    asked, walltime, limit : int64 array, shape (jobs,)
        Processes, walltime in seconds, and largest penalized time in units.
    demand : int64 array, shape (jobs, resources)
        Demand of one process.
    """
    first, time, processes, demands = events
    nodes, resources = len(first) - 1, len(capacity)
    level = np.empty(resources, dtype=np.int64)
    lost = np.empty(processors, dtype=np.int64)
    found = np.zeros(len(asked), dtype=np.bool_)
    for i in range(len(asked)):
        missing, end = asked[i], walltime[i]
        for node in range(nodes):
            level[:] = 0
            lost[:] = 0
            active = at = 0
            most = processors
            event, last = first[node], first[node + 1]
            while at < end and most > 0:
                while event < last and time[event] <= at:
                    active += processes[event]
                    for r in range(resources):
                        level[r] += demands[event, r]
                    event += 1
                until = end
                if event < last and time[event] < end:
                    until = time[event]
                most = min(most, processors - active)
                for r in range(resources):
                    for k in range(most, 0, -1):
                        over = level[r] + k * demand[i, r] - capacity[r]
                        if over <= 0:
                            break
                        lost[k - 1] += (until - at) * scale[r] * over
                while most > 0 and lost[most - 1] > limit[i]:
                    most -= 1
                at = until
            missing -= most
            if missing <= 0:
                found[i] = True
                break
    return found
