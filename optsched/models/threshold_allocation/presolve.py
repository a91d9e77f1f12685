"""Reductions: the most that a job may lose, and which of many jobs have room now at all.

The program, the solvers and the policies that pose problems build on them; the verification does
not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.read_only import once
from optsched.models.threshold_allocation.problem import ThresholdAllocation

if TYPE_CHECKING:
    from optsched.models.threshold_allocation._timeline import Timeline

Integers = NDArray[np.int64]

NEVER = 2**63 - 1
"""The penalised time of processes that are not allowed, as each ``@kernel`` has it compiled in."""


def most_penalised(problem: ThresholdAllocation) -> int:
    """Return the most units of penalised time within the threshold, equation (5)."""
    return penalty_within(problem.threshold, problem.walltime * problem.unit)


def penalty_within(threshold: int | None, requested: int) -> int:
    """Return the most penalised time within a threshold, in units.

    Parameters
    ----------
    threshold : int or None
        Most penalty factor in thousandths; None for any.
    requested : int
        Walltime of the job in units.
    """
    if threshold is None:
        return NEVER - 1
    return min((threshold - 1000) * requested // 1000, NEVER - 1)


@once
def timeline_of(held: Integers, nodes: int) -> Timeline:
    """Return the starts and ends of holdings as events."""
    from optsched.models.threshold_allocation._timeline import timeline

    events: Timeline = timeline(held, nodes)
    return events


def have_room_now(
    held: Integers,
    nodes: int,
    processors: int,
    capacity: Integers,
    asked: Integers,
    walltime: Integers,
    demand: Integers,
    limit: Integers,
) -> NDArray[np.bool_]:
    """Return which of some jobs have a place now where they lose no more than they may.

    That is so if the nodes together take as many processes as a job asks for, each node as many as
    lose no more, see `optsched.solvers.threshold_allocation.bottleneck_search`. For the other jobs
    no problem with ``latest=0`` needs to be solved.

    Parameters
    ----------
    held, nodes, processors, capacity
        As in the problem.
    asked, walltime, limit : int64 array, shape (jobs,)
        Processes, seconds, and the most penalised time in units.
    demand : int64 array, shape (jobs, resources)
        Of one process.
    """
    from optsched.models.threshold_allocation._timeline import have_room

    scale = math.lcm(*capacity.tolist()) // capacity
    events, job = timeline_of(held, nodes), (asked, walltime, demand, limit)
    found: NDArray[np.bool_] = have_room(events, processors, capacity, scale, *job)
    return found
