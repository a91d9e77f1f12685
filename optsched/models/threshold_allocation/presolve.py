"""Presolve: limits of penalized time, and the feasibility prefilter of jobs that may start now.

The program, the solvers and the policies that state problems use it; the verification does not.
Constants of it stand in functions with ``@kernel``, whose cache therefore covers this file.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.read_only import cache_last
from optsched.models.threshold_allocation.problem import ThresholdAllocation

if TYPE_CHECKING:
    from optsched.models.threshold_allocation._timeline import Timeline

Integers = NDArray[np.int64]

NEVER = 2**63 - 1
"""Penalized time of forbidden processes, a constant of the kernels."""


def most_penalized(problem: ThresholdAllocation) -> int:
    """Return the largest penalized time within the threshold in units, equation (5)."""
    return penalty_within(problem.threshold, problem.walltime * problem.unit)


def penalty_within(threshold: int | None, requested: int) -> int:
    """Return the largest penalized time within a threshold, in units.

    The threshold is in thousandths, None for no limit; `requested` is the walltime in units.
    """
    if threshold is None:
        return NEVER - 1
    return min((threshold - 1000) * requested // 1000, NEVER - 1)


@cache_last
def timeline_of(held: Integers, nodes: int) -> Timeline:
    """Return the timeline of the allocations `held`."""
    from optsched.models.threshold_allocation._timeline import timeline

    events: Timeline = timeline(held, nodes)
    return events


def can_start_now(
    held: Integers,
    nodes: int,
    processors: int,
    capacity: Integers,
    asked: Integers,
    walltime: Integers,
    demand: Integers,
    limit: Integers,
) -> NDArray[np.bool_]:
    """Return a flag for each job that can start now within its limit, shape (jobs,).

    A job can start if the nodes together hold all of its processes, each node at most as many as
    keep the penalized time within the limit; see
    `optsched.solvers.threshold_allocation.bottleneck_search`. For the other jobs, no problem with
    ``latest=0`` needs to be solved.

    The nodes are those of the threshold-allocation problem. Each job has its processes, its
    walltime in seconds, the demand of one process for each resource, shape (jobs, resources), and
    its largest penalized time in units.
    """
    from optsched.models.threshold_allocation._timeline import can_start

    scale = math.lcm(*capacity.tolist()) // capacity
    events, job = timeline_of(held, nodes), (asked, walltime, demand, limit)
    found: NDArray[np.bool_] = can_start(events, processors, capacity, scale, *job)
    return found
