"""Threshold allocations as input of the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import read_only
from optsched.models.threshold_allocation import ThresholdAllocation
from optsched.models.threshold_allocation.timeline import timeline_of

if TYPE_CHECKING:
    from optsched.models.threshold_allocation.timeline import Job, Timeline

BATCH = 64
"""Start times between two checks of a budget."""

NOW = read_only(np.zeros(1, dtype=np.int64))
"""Start time that is tried first, since most jobs are to start now."""


def kernel_input(problem: ThresholdAllocation) -> tuple[Timeline, Job]:
    """Return the timeline of the nodes, and the job."""
    return timeline_of(problem.held, problem.nodes), problem.in_kernels


def start_batches(problem: ThresholdAllocation) -> Iterator[NDArray[np.int64]]:
    """Yield the possible start times: now, which often suffices, and batches of later ones."""
    yield NOW
    if problem.latest != 0:
        for first in range(1, len(problem.starts), BATCH):
            yield problem.starts[first : first + BATCH]
