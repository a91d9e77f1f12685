"""The published selection rules: first fit, and processes moved from where the job loses most."""

from __future__ import annotations

from functools import cache
from typing import Any

from optsched.models.problem import Problem
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import most_penalised
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.threshold_allocation.posing import posed, starts_in_turn


class MovingRule(Heuristic):
    """A selection rule of the published kind. Work is counted in nodes."""

    models = frozenset({"threshold-allocation"})
    is_rule = True
    work_unit = "nodes"
    seconds_per_work = 1e-7

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, or load them where they have been compiled before."""
        compile_kernels()

    def effort(self, problem: ThresholdAllocation) -> int:
        """Return the number of nodes."""
        return problem.nodes


def placed_by_moving(
    problem: ThresholdAllocation, enough: int | None, *, later: bool = False
) -> Placement | None:
    """Return the placement at the first time with enough free processors; none if it loses more.

    Parameters
    ----------
    problem : ThresholdAllocation
        The problem.
    enough : int or None
        The units of penalised time at which processes are no longer moved; none: never moved.
    later : bool
        Whether the next time is tried when the job loses more than it may.
    """
    from optsched.solvers.threshold_allocation._moving import place_by_moving

    events, job = posed(problem)
    limit = most_penalised(problem)
    for starts in starts_in_turn(problem):
        rule = (-1 if enough is None else enough, limit, later)
        start, has_room, processes = place_by_moving(events, job, starts, *rule)
        if start >= 0:
            processes.flags.writeable = False
            return Placement(start, processes)
        if has_room and not later:
            break
    return None


@cache
def compile_kernels() -> None:
    """Compile the kernels, or load them where they have been compiled before."""
    placed_by_moving(ThresholdAllocation(1, 1, [1], [], 1, 1, [1]), enough=0)
