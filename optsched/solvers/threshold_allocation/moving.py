"""Published selection rules: first fit, and moves of processes to nodes with a lower penalty."""

from __future__ import annotations

from typing import Any

from optsched.models.problem import Problem
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import most_penalized
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.threshold_allocation.kernel_input import kernel_input, start_batches


class MovingRule(Heuristic):
    """Base class of the published selection rules, whose work is counted in nodes."""

    models = frozenset({"threshold-allocation"})
    is_rule = True
    work_unit = "nodes"
    seconds_per_work = 1e-7

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, or load them from the cache."""
        self.place(ThresholdAllocation(1, 1, [1], [], 1, 1, [1]))

    def effort(self, problem: ThresholdAllocation) -> int:
        """Return the number of nodes."""
        return problem.nodes


def placed_by_moving(
    problem: ThresholdAllocation, enough: int, *, later: bool = False
) -> Placement | None:
    """Return the placement at the first start with enough free processors, if within the threshold.

    Moves end at the penalized time `enough` in units, -1 for no moves. With `later`, a
    placement beyond the threshold is followed by an attempt at the next start time.
    """
    from optsched.solvers.threshold_allocation._moving import first_fit_with_moves

    events, job = kernel_input(problem)
    limit = most_penalized(problem)
    for starts in start_batches(problem):
        start, fits, processes = first_fit_with_moves(events, job, starts, enough, limit, later)
        if start >= 0:
            processes.flags.writeable = False
            return Placement(start, processes)
        if fits and not later:
            break
    return None
