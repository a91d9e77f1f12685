"""Depth-first search over the jobs of a window, with bounds: Figure 3 of Yang et al. 2014."""

from __future__ import annotations

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._reduction import EXACT, Ints, reduce


@kernel(allocates=False)
def dantzig_bound(
    first: int, weights: Ints, profits: Ints, residual: Ints, smallest: Ints, rest: int
) -> int:
    """Bound the profit of jobs ``first, first + 1, ...`` by the surrogate relaxation.

    All slots are merged into one knapsack, whose linear relaxation gives the bound (Dantzig). Slots
    too small for every job, and jobs too large for every slot, are ignored.
    """
    total = 0
    largest = 0
    for capacity in residual:
        if capacity >= smallest[first]:
            total += capacity
            largest = max(largest, capacity)
    bound = 0
    for job in range(first, len(weights)):
        if weights[job] > largest:
            continue
        if weights[job] > total:
            product = float(profits[job]) * float(total)
            if product < EXACT:
                bound += profits[job] * total // weights[job]
            else:
                # margin for the rounding of the products, here and in the order of the jobs
                bound += int(product / weights[job])
                bound += (bound >> 48) + 2
            return min(rest, bound)
        total -= weights[job]
        bound += profits[job]
    return bound


@kernel
def depth_first(
    all_weights: Ints,
    all_profits: Ints,
    all_capacities: Ints,
    placement: Ints,
    value: int,
    limit: int,
) -> tuple[int, int, int]:
    """Search for a placement of more profit than `value`, over at most `limit` nodes.

    Jobs are branched on by decreasing profit per weight. Each job is put into every slot in turn,
    smallest first, and finally not placed. Of slots with equal residual capacity only the first is
    tried, and equal jobs go into slots of nondecreasing number.

    `value` is the profit of `placement`, which has -1 for a job that is not placed, and is
    overwritten by better ones. Returned are its profit, an upper bound, which equals the profit
    when the search is complete, and the number of nodes visited.
    """
    jobs, slots, weights, profits, residual, unit = reduce(all_weights, all_profits, all_capacities)
    n, m = len(jobs), len(slots)
    if n == 0:
        return value, value, 1
    smallest = np.empty(n, np.int64)
    rest = np.zeros(n + 1, np.int64)
    for job in range(n - 1, -1, -1):
        smallest[job] = weights[job]
        if job < n - 1:
            smallest[job] = min(smallest[job], smallest[job + 1])
        rest[job] = rest[job + 1] + profits[job]
    bound = unit * dantzig_bound(0, weights, profits, residual, smallest, rest[0])
    if bound <= value:
        return value, value, 1
    best = value // unit
    chosen = np.empty(n, np.int64)
    nodes = 0
    profit = 0
    job = 0
    entering = True
    while True:
        lowest = 0
        if 0 < job < n and weights[job] == weights[job - 1] and profits[job] == profits[job - 1]:
            lowest = chosen[job - 1]
        slot = lowest
        if entering:
            nodes += 1
            if profit > best:
                best = profit
                value = profit * unit
                for k in range(len(placement)):
                    placement[k] = -1
                for k in range(job):
                    if chosen[k] < m:
                        placement[jobs[k]] = slots[chosen[k]]
                if value == bound:
                    return value, bound, nodes
            if (
                job == n
                or profit + rest[job] <= best
                or (
                    profit + dantzig_bound(job, weights, profits, residual, smallest, rest[job])
                    <= best
                )
            ):
                entering = False
                job -= 1
                continue
            if nodes >= limit:
                return value, bound, nodes
        else:
            if job < 0:
                return value, value, nodes
            slot = chosen[job]
            if slot == m:
                job -= 1
                continue
            residual[slot] += weights[job]
            profit -= profits[job]
            slot += 1
        while slot < m:
            if residual[slot] >= weights[job]:
                twin = lowest
                while residual[twin] != residual[slot]:
                    twin += 1
                if twin == slot:
                    break
            slot += 1
        chosen[job] = slot
        if slot < m:
            residual[slot] -= weights[job]
            profit += profits[job]
        job += 1
        entering = True
