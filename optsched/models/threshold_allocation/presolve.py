"""Presolve: limits of penalized time, and the first starts of jobs within thresholds.

The program, the solvers and the policies that state problems use it; the verification does not.
Constants of it stand in functions with ``@kernel``, whose cache therefore covers this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import cache_last
from optsched.models.threshold_allocation.problem import ThresholdAllocation, units

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
    from optsched.models.threshold_allocation._timeline import Timeline, timeline

    return Timeline(*timeline(held, nodes))


def least_thresholds(
    held: Integers,
    nodes: int,
    processors: int,
    capacity: Integers,
    asked: Integers,
    walltime: Integers,
    demand: Integers,
    limits: Integers,
) -> Integers:
    """Return the number of the least threshold within which each job can start now, shape (jobs,).

    A job can start if the nodes together hold all of its processes, each node at most as many as
    keep the penalized time within the limit; see
    `optsched.solvers.threshold_allocation.bottleneck_search`. For the other thresholds, no problem
    with ``latest=0`` needs to be solved.

    The nodes are those of the threshold-allocation problem. Each job has its processes, its
    walltime in seconds, the demand of one process for each resource, shape (jobs, resources), and
    the largest penalized time in units for each of its thresholds, ascending, shape (jobs,
    thresholds). A job that cannot start now has the number of thresholds.
    """
    from optsched.models.threshold_allocation._timeline import least_limits

    least = np.empty(len(asked), dtype=np.int64)
    jobs, space = (asked, walltime, demand, limits), _space(capacity, processors, limits)
    least_limits(timeline_of(held, nodes), capacity, units(capacity)[1], *jobs, *space, least)
    return least


def first_starts(
    held: Integers,
    nodes: int,
    processors: int,
    capacity: Integers,
    asked: int,
    walltime: int,
    demand: Integers,
    limits: Integers,
) -> list[int]:
    """Return the first start of a job within each of its thresholds, -1 without one.

    The arguments are those of `least_thresholds`, for one job.
    """
    from optsched.models.threshold_allocation._timeline import starts_within

    starts = np.empty(len(limits), dtype=np.int64)
    job, space = (asked, walltime, demand, limits), _space(capacity, processors, limits)
    starts_within(timeline_of(held, nodes), capacity, units(capacity)[1], *job, *space, starts)
    found: list[int] = starts.tolist()
    return found


def _space(
    capacity: Integers, processors: int, limits: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return space for a number of each resource, of each processor, and of each threshold."""
    space = np.empty(len(capacity) + processors + limits.shape[-1], dtype=np.int64)
    level, rest = space[: len(capacity)], space[len(capacity) :]
    return level, rest[:processors], rest[processors:]
