"""Published selection rules: first fit, and moves of processes to nodes with a lower penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.problem import Problem
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.problem import most_penalized
from optsched.models.threshold_allocation.timeline import NEVER, NO_LIMIT, Job, Timeline
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.threshold_allocation._penalties import penalize
from optsched.solvers.threshold_allocation.kernel_input import kernel_input

Integers = NDArray[np.int64]

FIRST_FIT, LESS_CONSUME, LESS_CONSUME_THRESHOLD = range(3)
"""The rules of `optsched.solvers.threshold_allocation.moving_rules`."""


@kernel(allocates=False)
def first_fit(
    events: Timeline, job: Job, start: int, lost: Integers, processes: Integers
) -> tuple[int, int]:
    """Fill nodes in order; return the last one, and the processes for which it has room then.

    Writes the processes on each node, and the penalized times of `penalize` up to the last one,
    which is -1 if the nodes together have too little room.
    """
    missing, last, spare = job.asked, -1, 0
    for node in range(len(processes)):
        processes[node] = 0
        if missing > 0:
            room = penalize(events, job, start, node, lost[node])
            processes[node] = min(room, missing)
            missing -= processes[node]
            last, spare = node, room - processes[node]
    return last if missing == 0 else -1, spare


@kernel(allocates=False)
def worst_node(lost: Integers, processes: Integers, most: int, first: int) -> tuple[int, int]:
    """Return the penalized time of the job and the first node that causes it.

    It is at most `most`, and below that on the nodes before `first`.
    """
    worst, found = 0, -1
    for node in range(first, len(processes)):
        if processes[node] > 0 and lost[node, processes[node] - 1] == most:
            return most, node
    for node in range(len(processes)):
        if processes[node] > 0 and lost[node, processes[node] - 1] > found:
            worst, found = node, lost[node, processes[node] - 1]
    return found, worst


@kernel
def place_by_rule(
    rule: int,
    events: Timeline,
    job: Job,
    limit: int,  # largest penalized time in units, `NO_LIMIT` without a threshold
    starts: Integers,  # candidate start times in seconds, ascending, shape (times,)
    processes: Integers,  # processes on each node, overwritten, shape (nodes,)
) -> int:
    """Place a job by first fit, and move its processes to nodes with a lower penalty.

    Each unused free processor is offered once, in the order of nodes. The first node with the
    largest penalty gives a process to it if the penalty of the receiving node stays below that.
    Only less-consume-threshold ends the moves within the limit, and tries the next start after a
    placement beyond it.

    Result: start of the placement, -1 without one.
    """
    tries_later = rule == LESS_CONSUME_THRESHOLD
    enough = limit if tries_later and limit != NO_LIMIT else 0
    lost = np.empty((len(processes), job.processors), dtype=np.int64)
    for start in starts:
        node, spare = first_fit(events, job, start, lost, processes)
        if node < 0:
            continue
        most, worst = worst_node(lost, processes, NEVER, len(processes))
        while rule != FIRST_FIT and most > enough:
            if spare > 0:
                spare -= 1
                if lost[node, processes[node]] < most:
                    processes[worst] -= 1
                    processes[node] += 1
                    most, worst = worst_node(lost, processes, most, worst)
                continue
            node += 1
            if node == len(processes):
                break
            spare = penalize(events, job, start, node, lost[node])
        if most <= limit:
            return int(start)
        if not tries_later:
            break
    return -1


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
