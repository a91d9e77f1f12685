"""GREEDY of Yang et al. (2014), alone (Algorithm 3) and with exchanges (section III.B.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.arrays import Ints
from optsched.compiled import kernel
from optsched.models.problem import Problem
from optsched.models.window_mkp import Assignment, WindowMKP
from optsched.registry import solvers
from optsched.solvers.solver import Heuristic
from optsched.solvers.window_mkp._reduction import by_efficiency, by_size


@kernel
def greedy(weights: Ints, profits: Ints, capacities: Ints) -> Ints:
    """Return the slot of each job, -1 if not placed, by Algorithm 3 called for each slot."""
    jobs = np.arange(len(weights))
    by_efficiency(jobs, weights, profits)
    return fill_slots(jobs, weights, capacities)


@kernel
def fill_slots(jobs: Ints, weights: Ints, capacities: Ints) -> Ints:
    """Fill the slots, smallest first, with the unplaced `jobs` that fit, in order."""
    slots = np.arange(len(capacities))
    by_size(slots, capacities)
    placement = np.full(len(weights), -1, np.int64)
    for slot in slots:
        residual = capacities[slot]
        for job in jobs:
            if placement[job] < 0 and weights[job] <= residual:
                placement[job] = slot
                residual -= weights[job]
    return placement


@kernel
def greedy_exchange(weights: Ints, profits: Ints, capacities: Ints) -> Ints:
    """Return the slot of each job, -1 if not placed, by GREEDY and the two exchanges."""
    jobs = np.arange(len(weights))
    by_efficiency(jobs, weights, profits)
    placement = fill_slots(jobs, weights, capacities)
    residual = capacities.copy()
    for job in range(len(jobs)):
        if placement[job] >= 0:
            residual[placement[job]] -= weights[job]
    interchange(jobs, weights, profits, placement, residual)
    make_way(jobs, weights, profits, placement, residual)
    return placement


@kernel(allocates=False)
def interchange(jobs: Ints, weights: Ints, profits: Ints, placement: Ints, residual: Ints) -> None:
    """Exchange pairs of jobs in different slots if a waiting job then fits."""
    n = len(jobs)
    lightest = lightest_waiting(weights, placement)
    for first in range(n):
        for second in range(first + 1, n):
            large, small = jobs[first], jobs[second]
            if weights[large] < weights[small]:
                large, small = small, large
            here, there = placement[large], placement[small]
            if here < 0 or there < 0 or here == there:
                continue
            more = weights[large] - weights[small]
            if more > residual[there] or lightest > residual[here] + more:
                continue
            added = -1
            for job in jobs:
                if (
                    placement[job] < 0
                    and weights[job] <= residual[here] + more
                    and (added < 0 or profits[job] > profits[added])
                ):
                    added = job
            placement[large], placement[small], placement[added] = there, here, here
            residual[there] -= more
            residual[here] += more - weights[added]
            lightest = lightest_waiting(weights, placement)


@kernel(allocates=False)
def lightest_waiting(weights: Ints, placement: Ints) -> int:
    """Return the least weight of the jobs that are not placed."""
    lightest = 1 << 62
    for job in range(len(weights)):
        if placement[job] < 0:
            lightest = min(lightest, weights[job])
    return lightest


@kernel
def make_way(jobs: Ints, weights: Ints, profits: Ints, placement: Ints, residual: Ints) -> None:
    """Replace each job in turn by waiting jobs of more total profit, if these fit."""
    instead = np.empty(len(jobs), np.int64)
    for job in jobs[::-1]:
        slot = placement[job]
        if slot < 0:
            continue
        remaining = residual[slot] + weights[job]
        count = 0
        gained = 0
        for other in jobs:
            if placement[other] < 0 and weights[other] <= remaining:
                instead[count] = other
                count += 1
                remaining -= weights[other]
                gained += profits[other]
        if gained > profits[job]:
            placement[job] = -1
            for k in range(count):
                placement[instead[k]] = slot
            residual[slot] = remaining


class WindowHeuristic(Heuristic):
    """A compiled heuristic of the window knapsack, whose work is counted in jobs times slots."""

    models = frozenset({"window-mkp"})
    work_unit = "jobs times slots"

    def effort(self, problem: WindowMKP) -> int:
        """Return the number of jobs times the number of slots."""
        return len(problem.weights) * len(problem.capacities)

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernel, or load it from the cache."""
        self.place(WindowMKP(weights=[1], capacities=[1]))


@solvers.register("greedy")
@dataclass(frozen=True)
class Greedy(WindowHeuristic):
    """Greedy filling of one slot after another with the jobs that fit.

    Yang et al. call Algorithm 3 once for each slot and let it run over the jobs ``j = 1, ..., n``,
    but do not define the numbering of jobs and slots. This solver follows Martello and Toth, on
    whom they build: items are numbered by decreasing profit per weight, knapsacks by increasing
    capacity. If profit is weight, all jobs are equally efficient, and larger ones come first, then
    earlier ones. In that order the worked example of section III.C comes out as printed (C | A | B
    E, profit 15); in the order of the window it does not (C | A | B D, profit 14).

    The reference implementation is in ``tests/solvers/window_mkp/reference.py``.

    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    S. Martello, P. Toth, "Heuristic algorithms for the multiple knapsack problem", Computing 27,
    93-112, 1981.

    >>> from optsched.models import WindowMKP
    >>> Greedy().place(WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6]))
    (1, 2, 0, -1, 2)
    """

    seconds_per_work = 2e-9

    def place(self, problem: WindowMKP) -> Assignment:
        """Return the placement by GREEDY."""
        return tuple(greedy(problem.weights, problem.profits, problem.capacities).tolist())


@solvers.register("greedy-exchange")
@dataclass(frozen=True)
class GreedyExchange(WindowHeuristic):
    """GREEDY followed by two kinds of exchanges, each in one pass over all jobs.

    First, two jobs in different slots change places if a waiting job then fits into the slot that
    gains capacity; of the waiting jobs that fit, the one of most profit is placed. Second, each
    job, least efficient first, is replaced if waiting jobs that fit instead, tried in order, have
    more total profit. The rearrangement of all jobs that precedes these exchanges in Martello and
    Toth is not part of the paper's description and is omitted.

    The time is O(n^2) for n jobs, plus O(n) for each job placed by an exchange. For the references
    and the reference implementation, see `Greedy`.

    >>> from optsched.models import WindowMKP
    >>> problem = WindowMKP(weights=[5, 4, 3, 3], capacities=[7, 8])
    >>> problem.objective(GreedyExchange().place(problem))
    15
    """

    seconds_per_work = 1e-8

    def place(self, problem: WindowMKP) -> Assignment:
        """Return the placement by GREEDY and the exchanges."""
        placement = greedy_exchange(problem.weights, problem.profits, problem.capacities)
        return tuple(placement.tolist())
