"""LessConsume: first fit, then moves of processes until the job has no penalty."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.registry import solvers
from optsched.solvers.threshold_allocation.moving import MovingRule, placed_by_moving


@solvers.register("less-consume")
@dataclass(frozen=True)
class LessConsume(MovingRule):
    """First fit, followed by moves of processes away from the node with the largest penalty.

    Each processor that is free for the walltime and unused by first fit is offered once, in the
    order of nodes. The first node with the largest penalty gives a process to it if the penalty of
    the receiving node stays below that. Moves end when the job has no penalty or all processors
    were offered. There is no solution if the penalty factor then exceeds the threshold.

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
        """Return the placement, or None if its penalty factor exceeds the threshold."""
        return placed_by_moving(problem, enough=0)
