"""First fit: the first processors that are free for all of the walltime."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.registry import solvers
from optsched.solvers.threshold_allocation.moving import MovingRule, placed_by_moving


@solvers.register("first-fit")
@dataclass(frozen=True)
class FirstFit(MovingRule):
    """Start the job as soon as enough processors are free, on the first nodes that have some.

    The processors have to be free for all of the walltime. The penalized time is ignored; if it
    exceeds the threshold, there is no solution.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 4.

    Examples
    --------
    >>> problem = ThresholdAllocation(
    ...     2, 4, [6000], [[0, 2, 0, 300, 2000]], asked=2, walltime=100, demand=[2000]
    ... )
    >>> FirstFit().place(problem).processes
    array([2, 0])
    """

    def place(self, problem: ThresholdAllocation) -> Placement | None:
        """Return the placement, if it is within the threshold."""
        return placed_by_moving(problem, enough=-1)
