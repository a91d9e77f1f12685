"""Depth-first search over the jobs of a window: Figure 3 of Yang et al. 2014, with bounds."""

from __future__ import annotations

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._reduction import EXACT, Ints, reduce


@kernel
def dantzig_bound(
    first: int, weights: Ints, profits: Ints, room: Ints, smallest: Ints, rest: int
) -> int:
    """Bound the profit of jobs ``first, first + 1, ...`` in the slots as they are now.

    All slots become one (the surrogate relaxation), the job that does not fit is cut (Dantzig).
    Slots too small for every job, and jobs too large for every slot, do not count.
    """
    total = 0
    largest = 0
    for left in room:
        if left >= smallest[first]:
            total += left
            largest = max(largest, left)
    bound = 0
    for job in range(first, len(weights)):
        if weights[job] > largest:
            continue
        if weights[job] > total:
            product = float(profits[job]) * float(total)
            if product < EXACT:
                bound += profits[job] * total // weights[job]
            else:
                # room for the rounding of the products, here and in the order of the jobs
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

    Jobs are branched on by decreasing profit per weight: each is put into every slot in turn, from
    the smallest, and then left out. Of slots with equal room only the first is tried, and equal
    jobs go into slots of non-decreasing number.

    Parameters
    ----------
    all_weights, all_profits : int64 array, shape (jobs,)
        As in the problem.
    all_capacities : int64 array, shape (slots,)
        As in the problem.
    placement : int64 array, shape (jobs,)
        The slot of each job, -1 for none; overwritten when a better one is found.
    value : int
        Profit of `placement`.
    limit : int
        Number of nodes to visit at most.

    Returns
    -------
    value : int
        Profit of `placement`.
    bound : int
        No placement has more profit; equal to `value` when the search came to its end.
    nodes : int
        Nodes visited.
    """
    jobs, slots, weights, profits, room, unit = reduce(all_weights, all_profits, all_capacities)
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
    bound = unit * dantzig_bound(0, weights, profits, room, smallest, rest[0])
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
                placement[:] = -1
                for k in range(job):
                    if chosen[k] < m:
                        placement[jobs[k]] = slots[chosen[k]]
                if value == bound:
                    return value, bound, nodes
            if (
                job == n
                or profit + rest[job] <= best
                or (
                    profit + dantzig_bound(job, weights, profits, room, smallest, rest[job]) <= best
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
            room[slot] += weights[job]
            profit -= profits[job]
            slot += 1
        while slot < m:
            if room[slot] >= weights[job]:
                twin = lowest
                while room[twin] != room[slot]:
                    twin += 1
                if twin == slot:
                    break
            slot += 1
        chosen[job] = slot
        if slot < m:
            room[slot] -= weights[job]
            profit += profits[job]
        job += 1
        entering = True
