"""GREEDY and the exchanges of Martello and Toth, compiled."""

from __future__ import annotations

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._reduction import Ints, by_efficiency, by_size


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
