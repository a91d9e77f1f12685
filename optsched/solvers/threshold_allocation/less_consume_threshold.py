"""LessConsume Threshold: the first start at which moves bring the job within the threshold."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import most_penalized
from optsched.registry import solvers
from optsched.solvers.threshold_allocation.moving import MovingRule, placed_by_moving


@solvers.register("less-consume-threshold")
@dataclass(frozen=True)
class LessConsumeThreshold(MovingRule):
    """LessConsume whose moves end as soon as the penalty factor is within the threshold.

    If all processors were offered in vain, first fit and moves are repeated at the next start time.
    Without a threshold, this rule is LessConsume.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 4.

    Examples
    --------
    Two processes on node 0 have a penalty of a third of 100 s, which only a threshold of 2 allows:

    >>> given = (2, 4, [6000], [[0, 2, 0, 300, 2000]])
    >>> asked = {"asked": 2, "walltime": 100, "demand": [2000]}
    >>> rule = LessConsumeThreshold()
    >>> rule.place(ThresholdAllocation(*given, **asked, threshold=1150)).processes
    array([1, 1])
    >>> rule.place(ThresholdAllocation(*given, **asked, threshold=2000)).processes
    array([2, 0])
    """

    def place(self, problem: ThresholdAllocation) -> Placement | None:
        """Return the placement, or None if no start time is within the threshold."""
        enough = 0 if problem.threshold is None else most_penalized(problem)
        return placed_by_moving(problem, enough, later=True)
