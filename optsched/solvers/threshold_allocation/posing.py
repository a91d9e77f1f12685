"""Threshold allocations in the form that the kernels of solvers take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.read_only import kept
from optsched.models.threshold_allocation import ThresholdAllocation
from optsched.models.threshold_allocation.presolve import timeline_of

if TYPE_CHECKING:
    from optsched.models.threshold_allocation._timeline import Timeline
    from optsched.solvers.threshold_allocation._penalties import Job

NOW = kept(np.zeros(1, dtype=np.int64))
"""The time at which most jobs are to start."""


def posed(problem: ThresholdAllocation) -> tuple[Timeline, Job]:
    """Return the timeline of the nodes, and the job."""
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


def starts_in_turn(problem: ThresholdAllocation) -> Iterator[NDArray[np.int64]]:
    """Yield the times at which the job may start, in parts: now, for that is often the answer."""
    yield NOW
    if problem.latest != 0 and len(problem.starts) > 1:
        yield problem.starts[1:]
