"""Limits of penalized time that follow from a threshold."""

from __future__ import annotations

from optsched.models.threshold_allocation import ThresholdAllocation

NEVER = 2**63 - 1
"""Penalized time of forbidden processes, a constant of the kernels."""


def most_penalized(problem: ThresholdAllocation) -> int:
    """Return the largest penalized time within the threshold in units, equation (5)."""
    return penalty_within(problem.threshold, problem.walltime * problem.unit)


def penalty_within(threshold: int | None, requested: int) -> int:
    """Return the largest penalized time within a threshold, in units.

    Parameters
    ----------
    threshold : int or None
        Largest penalty factor in thousandths; None for no limit.
    requested : int
        Walltime of the job in units.
    """
    if threshold is None:
        return NEVER - 1
    return min((threshold - 1000) * requested // 1000, NEVER - 1)
