"""Presolve: limits of penalized time, and the timeline of the nodes.

The program, the solvers and the policies that state problems use it; the verification does not.
Constants of it stand in functions with ``@kernel``, whose cache therefore covers this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import cache_last
from optsched.models.threshold_allocation.problem import ThresholdAllocation

if TYPE_CHECKING:
    from optsched.models.threshold_allocation._timeline import Timeline

Integers = NDArray[np.int64]

NEVER = 2**63 - 1
"""Penalized time of forbidden processes, a constant of the kernels."""

NO_LIMIT = NEVER - 1
"""Largest penalized time without a threshold, a constant of the kernels."""


def most_penalized(problem: ThresholdAllocation) -> int:
    """Return the largest penalized time within the threshold in units, equation (5)."""
    return penalty_within(problem.threshold, problem.walltime * problem.unit)


def penalty_within(threshold: int | None, requested: int) -> int:
    """Return the largest penalized time within a threshold, in units.

    The threshold is in thousandths, None for no limit; `requested` is the walltime in units.
    """
    if threshold is None:
        return NO_LIMIT
    return min((threshold - 1000) * requested // 1000, NO_LIMIT - 1)


@cache_last
def timeline_of(held: Integers, nodes: int) -> Timeline:
    """Return the timeline of the allocations `held`."""
    from optsched.models.threshold_allocation._timeline import Timeline, timeline

    return Timeline(*timeline(held, nodes))
