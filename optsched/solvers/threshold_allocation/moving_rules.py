"""Published selection rules: first fit, and moves of processes to nodes with a lower penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from optsched.models.problem import Problem
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import most_penalized
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.threshold_allocation.kernel_input import kernel_input


class MovingRule(Heuristic):
    """Base class of the published selection rules, whose work is counted in nodes.

    F. Guim, I. Rodero, J. Corbalan, "The resource usage aware backfilling", JSSPP 2009, section 4.

    Two processes on node 0 have a penalty of a third of 100 s, which only a threshold of 2 allows:

    >>> given = (2, 4, [6000], [[0, 2, 0, 300, 2000]])
    >>> job = {"asked": 2, "walltime": 100, "demand": [2000]}
    >>> low, high = (ThresholdAllocation(*given, **job, threshold=most) for most in (1150, 2000))
    >>> FirstFit().place(low), FirstFit().place(high).processes
    (None, array([2, 0]))
    >>> LessConsume().place(low).processes, LessConsume().place(high).processes
    (array([1, 1]), array([1, 1]))
    >>> rule = LessConsumeThreshold()
    >>> rule.place(low).processes, rule.place(high).processes
    (array([1, 1]), array([2, 0]))
    """

    models = frozenset({"threshold-allocation"})
    is_rule = True
    work_unit = "nodes"
    seconds_per_work = 1e-7

    number: ClassVar[int]  # number of the rule in the kernels

    def place(self, problem: ThresholdAllocation) -> Placement | None:
        """Return the placement, or None if the rule finds none within the threshold."""
        from optsched.solvers.threshold_allocation._moving import place_by_rule

        processes = np.empty(problem.nodes, dtype=np.int64)
        asking = (*kernel_input(problem), most_penalized(problem), problem.starts)
        start = place_by_rule(self.number, *asking, processes)
        if start < 0:
            return None
        processes.flags.writeable = False
        return Placement(start, processes)

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, or load them from the cache."""
        _compile()

    def effort(self, problem: ThresholdAllocation) -> int:
        """Return the number of nodes."""
        return problem.nodes


@solvers.register("first-fit")
@dataclass(frozen=True)
class FirstFit(MovingRule):
    """Start the job as soon as enough processors are free, on the first nodes that have some.

    The processors have to be free for all of the walltime. The penalized time is ignored; if it
    exceeds the threshold, there is no solution.
    """

    number = 0


@solvers.register("less-consume")
@dataclass(frozen=True)
class LessConsume(MovingRule):
    """First fit, followed by moves of processes away from the node with the largest penalty.

    Each processor that is free for the walltime and unused by first fit is offered once, in the
    order of nodes. The first node with the largest penalty gives a process to it if the penalty of
    the receiving node stays below that. Moves end when the job has no penalty or all processors
    were offered. There is no solution if the penalty factor then exceeds the threshold.
    """

    number = 1


@solvers.register("less-consume-threshold")
@dataclass(frozen=True)
class LessConsumeThreshold(MovingRule):
    """LessConsume whose moves end as soon as the penalty factor is within the threshold.

    If all processors were offered in vain, first fit and moves are repeated at the next start time.
    Without a threshold, this rule is LessConsume.
    """

    number = 2


@cache
def _compile() -> None:
    problem = ThresholdAllocation(1, 1, [1], [], 1, 1, [1])
    LessConsume().place(problem)
    problem.penalised_time(Placement(0, np.array([1])))
