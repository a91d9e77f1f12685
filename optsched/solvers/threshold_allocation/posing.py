"""What all solvers are told of a threshold allocation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.read_only import kept, once
from optsched.models.threshold_allocation import ThresholdAllocation

if TYPE_CHECKING:
    from optsched.solvers.threshold_allocation._penalties import Job, Timeline


NEVER = 2**63 - 1
"""The penalised time of processes that are not allowed, as each ``@kernel`` has it compiled in."""

NOW = kept(np.zeros(1, dtype=np.int64))
"""The time at which most jobs are to start."""


def posed(problem: ThresholdAllocation) -> tuple[Timeline, Job]:
    """Return what the nodes hold, and what is asked of them."""
    from optsched.solvers.threshold_allocation._penalties import Job

    job = Job(
        problem.processors,
        problem.asked,
        problem.walltime,
        problem.demand,
        problem.capacity,
        problem.scale,
    )
    return timeline_of(problem.held, problem.nodes), job


@once
def timeline_of(held: NDArray[np.int64], nodes: int) -> Timeline:
    """Return the events of holdings."""
    from optsched.solvers.threshold_allocation._penalties import timeline

    events: Timeline = timeline(held, nodes)
    return events


def most_penalised(problem: ThresholdAllocation) -> int:
    """Return the most units of penalised time within the threshold, equation (5)."""
    return penalty_within(problem.threshold, problem.walltime * problem.unit)


def penalty_within(threshold: int | None, requested: int) -> int:
    """Return the most units of penalised time within a threshold, of so many that are asked for."""
    if threshold is None:
        return NEVER - 1
    return min((threshold - 1000) * requested // 1000, NEVER - 1)


def starts_in_turn(problem: ThresholdAllocation) -> Iterator[NDArray[np.int64]]:
    """Yield the times at which the job may start, in parts: now, for that is often the answer."""
    yield NOW
    if problem.latest != 0 and len(problem.starts) > 1:
        yield problem.starts[1:]
