"""Limits of penalised time that a threshold sets."""

from __future__ import annotations

from optsched.models.threshold_allocation import ThresholdAllocation

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
