"""LessConsume: first fit, then processes moved until the job loses nothing."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.registry import solvers
from optsched.solvers.threshold_allocation.moving import MovingRule, placed_by_moving


@solvers.register("less-consume")
@dataclass(frozen=True)
class LessConsume(MovingRule):
    """Start with first fit, and move processes from where the job loses most.

    Each processor that is free for the walltime and that first fit leaves unused is offered once,
    in the order of the nodes. It takes a process of the node where the job loses most (of equal
    ones the first) if the processor's node then loses less than that. This ends when nothing is
    lost, or all were offered. Exceeds the factor the threshold then, there is no answer.

    References
    ----------
    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 4.

    Examples
    --------
    >>> problem = ThresholdAllocation(
    ...     2, 4, [6000], [[0, 2, 0, 300, 2000]], asked=2, walltime=100, demand=[2000]
    ... )
    >>> LessConsume().place(problem).processes
    array([1, 1])
    """

    def place(self, problem: ThresholdAllocation) -> Placement | None:
        """Return the placement, if it is within the threshold."""
        return placed_by_moving(problem, enough=0)
