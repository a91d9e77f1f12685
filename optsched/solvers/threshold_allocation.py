"""Threshold allocation: the published rules, and an exact scan of start times; compiled.

The rules are first fit, and moves of processes to nodes with a lower penalty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from optsched.arrays import Ints
from optsched.compiled import kernel
from optsched.models.fields import read_only
from optsched.models.problem import Problem
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.problem import GOALS, most_penalized
from optsched.models.threshold_allocation.timeline import (
    EVERYBODY,
    NEVER,
    NO_LIMIT,
    RESPONSE,
    START,
    Job,
    Timeline,
    timeline_of,
)
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress, StoppedError
from optsched.solvers.result import Budget
from optsched.solvers.solver import Heuristic, Solver

BATCH = 64
"""Start times between two checks of a budget."""

NOW = read_only(np.zeros(1, dtype=np.int64))
"""Start time that is tried first, since most jobs are to start now."""


def kernel_input(problem: ThresholdAllocation) -> tuple[Timeline, Job]:
    """Return the timeline of the nodes, and the job."""
    return timeline_of(problem.held, problem.nodes), problem.in_kernels


def start_batches(problem: ThresholdAllocation) -> Iterator[Ints]:
    """Yield the possible start times: now, which often suffices, and batches of later ones."""
    yield NOW
    if problem.latest != 0:
        for first in range(1, len(problem.starts), BATCH):
            yield problem.starts[first : first + BATCH]


@kernel(allocates=False)
def penalize(events: Timeline, job: Job, start: int, node: int, lost: Ints) -> int:
    """Write the penalized time with 1, 2, ... processes on a node; return the room for processes.

    Times are in units, by equation (4) of the model's page; `NEVER` for processors that are not
    free for all of the walltime.
    """
    first, last, end = events.first[node], events.last[node], start + job.walltime
    active = most = 0
    for event in range(first, last):
        if events.time[event] >= end:
            break
        active += events.processes[event]
        if events.time[event] <= start or active > most:
            most = active
    room = job.processors - most
    for k in range(job.processors):
        lost[k] = 0 if k < room else NEVER
    for r in range(len(job.demand)):
        level, at, event = 0, start, first
        while at < end and room > 0:
            while event < last and events.time[event] <= at:
                level += events.demand[event, r]
                event += 1
            until = end
            if event < last and events.time[event] < end:
                until = events.time[event]
            for k in range(room, 0, -1):
                over = level + k * job.demand[r] - job.capacity[r]
                if over <= 0:
                    break
                lost[k - 1] += (until - at) * job.scale[r] * over
            at = until
    return room


@kernel
def penalized_times(events: Timeline, job: Job, start: int) -> Ints:
    """Return the penalized times of `penalize` on all nodes, shape (nodes, processors)."""
    lost = np.empty((len(events.last), job.processors), dtype=np.int64)
    for node in range(len(lost)):
        penalize(events, job, start, node, lost[node])
    return lost


@kernel
def added_penalties(events: Timeline, job: Job, start: int, lost: Ints) -> Ints:
    """Return the penalty that each further process adds for all jobs, shape (nodes, processors).

    Penalties are in units, by equation (6) of the model's page. Of `lost`, see `penalized_times`.
    """
    added = np.full(lost.shape, NEVER)
    end = start + job.walltime
    for node in range(len(lost)):
        room = 0
        while room < job.processors and lost[node, room] < NEVER:
            added[node, room] = 0
            room += 1
        last = events.last[node]
        for r in range(len(job.demand)):
            active, level, at, event = 0, 0, start, events.first[node]
            while at < end and room > 0:
                while event < last and events.time[event] <= at:
                    active += events.processes[event]
                    level += events.demand[event, r]
                    event += 1
                until = end
                if event < last and events.time[event] < end:
                    until = events.time[event]
                over = level - job.capacity[r]
                before = active * max(0, over)
                for k in range(1, room + 1):
                    now = (active + k) * max(0, over + k * job.demand[r])
                    added[node, k - 1] += (until - at) * job.scale[r] * (now - before)
                    before = now
                at = until
    return added


@kernel(allocates=False)
def smallest(values: Ints, rank: int) -> int:
    """Return the value of a rank, from 0, in ascending order; reorders the values.

    This is Hoare's quickselect: `np.partition` takes longer to compile than all else here.
    """
    low, high = 0, len(values) - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            break
    return int(values[rank])


@kernel
def take_cheapest(costs: Ints, asked: int) -> tuple[Ints, int]:
    """Return the cheapest placement of `asked` processes, and the largest cost of one of them.

    Costs are those of each further process on a node, shape (nodes, processors), nondecreasing, and
    `NEVER` for an impossible one, also as the largest if there are too few. Of equal costs, nodes
    of lower number come first.
    """
    nodes, processors = costs.shape
    processes = np.zeros(nodes, dtype=np.int64)
    last = smallest(costs.copy().ravel(), asked - 1)
    if last == NEVER:
        return processes, last
    missing = asked
    for node in range(nodes):
        while processes[node] < processors and costs[node, processes[node]] < last:
            processes[node] += 1
            missing -= 1
    for node in range(nodes):
        while missing > 0 and processes[node] < processors and costs[node, processes[node]] == last:
            processes[node] += 1
            missing -= 1
    return processes, last


FIRST_FIT, LESS_CONSUME, LESS_CONSUME_THRESHOLD = range(3)
"""Numbers of the rules in kernels."""


@kernel(allocates=False)
def first_fit(
    events: Timeline, job: Job, start: int, lost: Ints, processes: Ints
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
def worst_node(lost: Ints, processes: Ints, most: int, first: int) -> tuple[int, int]:
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
    starts: Ints,  # candidate start times in seconds, ascending, shape (times,)
    processes: Ints,  # processes on each node, overwritten, shape (nodes,)
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
        _compile(LessConsume())

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

    number = FIRST_FIT


@solvers.register("less-consume")
@dataclass(frozen=True)
class LessConsume(MovingRule):
    """First fit, followed by moves of processes away from the node with the largest penalty.

    Each processor that is free for the walltime and unused by first fit is offered once, in the
    order of nodes. The first node with the largest penalty gives a process to it if the penalty of
    the receiving node stays below that. Moves end when the job has no penalty or all processors
    were offered. There is no solution if the penalty factor then exceeds the threshold.
    """

    number = LESS_CONSUME


@solvers.register("less-consume-threshold")
@dataclass(frozen=True)
class LessConsumeThreshold(MovingRule):
    """LessConsume whose moves end as soon as the penalty factor is within the threshold.

    If all processors were offered in vain, first fit and moves are repeated at the next start time.
    Without a threshold, this rule is LessConsume.
    """

    number = LESS_CONSUME_THRESHOLD


@kernel
def best_placement(
    events: Timeline,
    job: Job,
    # Goal, units of a second, and largest penalized time in units
    goal: int,
    unit: int,
    limit: int,
    starts: Ints,  # candidate start times in seconds, ascending, shape (times,)
    best: int,
    # Processes on each node, overwritten if there is such a placement, shape (nodes,)
    processes: Ints,
) -> tuple[int, int, int, bool]:
    """Find the first best placement at `starts`, if its objective is below `best`.

    Results: `objective`, `start`: objective and start of the placement; `best` and -1 without one;
    `tried`: number of start times tried; `done`: whether no later start time can be better.
    """
    chosen = -1
    for tried in range(len(starts)):
        start = starts[tried]
        if (goal == RESPONSE and start * unit >= best) or (goal == START and start >= best):
            return best, chosen, tried, True
        lost = penalized_times(events, job, start)
        if goal == EVERYBODY:
            costs = added_penalties(events, job, start, lost)
            for node in range(len(lost)):
                for k in range(job.processors):
                    if lost[node, k] > limit:
                        costs[node, k] = NEVER
            taken, last = take_cheapest(costs, job.asked)
        else:
            taken, last = take_cheapest(lost, job.asked)
            if last > limit:
                continue
        if last == NEVER:
            continue
        objective = last
        if goal == START:
            objective = start
        elif goal == RESPONSE:
            objective = start * unit + last
        elif goal == EVERYBODY:
            objective = 0
            for node in range(len(taken)):
                for k in range(taken[node]):
                    objective += costs[node, k]
        if objective < best:
            best, chosen = objective, start
            for node in range(len(taken)):
                processes[node] = taken[node]
        if goal == START or (goal != RESPONSE and best == 0):
            return best, chosen, tried + 1, True
    return best, chosen, len(starts), False


@solvers.register("bottleneck-search")
@dataclass(frozen=True)
class BottleneckSearch(AnytimeSolver):
    """Scan of start times, with the best placement at each of them by sorting.

    At a given start, nodes are independent: the penalized time A_n(k) with k processes on node n is
    nondecreasing in k. A placement has a penalized time of at most P if and only if each node n has
    at most as many processes as there are k with A_n(k) <= P. So the least P for q processes is the
    q-th smallest of all A_n(k). The threshold limits the processes of each node in the same way.

    The penalty of k processes for all jobs on a node is a sum of (m + k) max(0, D + k b - c) over
    windows and resources, less a constant. Both factors are convex, nondecreasing and nonnegative,
    hence their product is convex, and each further process costs at least as much as the one before
    it. So the q smallest of these increments form an optimal placement.

    For the earliest start, the scan ends at the first start within the threshold; for the least
    response, at the first start that alone is no better than the incumbent. Ties go to the earliest
    start and to the nodes of lowest number. Work is counted in start times.

    >>> held, job = [[0, 2, 0, 300, 2000]], {"asked": 4, "walltime": 100, "demand": [2000]}
    >>> problem = ThresholdAllocation(2, 4, [6000], held, **job, goal="penalty")
    >>> result = BottleneckSearch().solve(problem, budget=Budget())
    >>> result.status.value, result.objective, result.solution
    ('optimal', 0, Placement(start=0, processes=array([1, 3])))
    """

    models = frozenset({"threshold-allocation"})
    work_unit = "times to start"
    seconds_per_work = 2e-5
    default_work = 10_000

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, or load them from the cache."""
        _compile(self)

    def search(
        self, problem: ThresholdAllocation, progress: Progress, hint: Placement | None, seed: int
    ) -> None:
        """Try starts in order; `seed` has no effect."""
        events, job = kernel_input(problem)
        goal = (GOALS.index(problem.goal), problem.unit, most_penalized(problem))
        objective, progress.bound = NEVER, 0
        if hint is not None:
            objective = problem.objective(hint)
            progress.offer(hint, objective)
        for starts in start_batches(problem):
            if progress.work and (limit := progress.exhausted()):
                progress.bound = min(objective, _least_from(problem, int(starts[0])))
                raise StoppedError(limit)
            processes = np.empty(problem.nodes, dtype=np.int64)
            objective, start, tried, done = best_placement(
                events, job, *goal, starts, objective, processes
            )
            progress.work += tried
            if start >= 0:
                processes.flags.writeable = False
                progress.offer(Placement(start, processes), objective)
            if done:
                break
        progress.bound = objective


def _least_from(problem: ThresholdAllocation, start: int) -> int:
    """Return a lower bound of the objective for starts from `start` on."""
    if problem.goal == "start":
        return start
    return start * problem.unit if problem.goal == "response" else 0


@cache
def _compile(solver: Solver) -> None:
    problem = ThresholdAllocation(1, 1, [1], [], 1, 1, [1])
    placement = solver.solve(problem, budget=Budget()).solution
    problem.penalised_time(placement)
