"""LessConsume Threshold: the first start at which moving processes brings the job below it."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import most_penalised
from optsched.registry import solvers
from optsched.solvers.threshold_allocation.moving import MovingRule, placed_by_moving


@solvers.register("less-consume-threshold")
@dataclass(frozen=True)
class LessConsumeThreshold(MovingRule):
    """Move processes as LessConsume does until the factor is at most the threshold.

    If all processors were offered in vain, first fit and moving begin anew at the next time. Of a
    problem without a threshold this is LessConsume.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 4.

    Examples
    --------
    Two processes on node 0 lose a third of 100 s, which is too much, but not for twice the factor:

    >>> given = (2, 4, [6000], [[0, 2, 0, 300, 2000]])
    >>> asked = {"asked": 2, "walltime": 100, "demand": [2000]}
    >>> rule = LessConsumeThreshold()
    >>> rule.place(ThresholdAllocation(*given, **asked, threshold=1150)).processes
    array([1, 1])
    >>> rule.place(ThresholdAllocation(*given, **asked, threshold=2000)).processes
    array([2, 0])
    """

    def place(self, problem: ThresholdAllocation) -> Placement | None:
        """Return the placement; none if no time is within the threshold."""
        enough = 0 if problem.threshold is None else most_penalised(problem)
        return placed_by_moving(problem, enough, later=True)
