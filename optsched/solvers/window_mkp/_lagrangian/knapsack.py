"""Single knapsack: exact by an expanding core, and bounds with one job forced in or out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.window_mkp._reduction import Ints, assign, by_efficiency

Bools = NDArray[np.bool_]

STATES = 1 << 12
"""Largest number of partial solutions to keep, beyond which the bound is not improved."""

CORE = 62
"""Largest number of jobs whose decisions fit into a machine word."""

CELLS_PER_STEP = 16
"""Time of a partial solution in table cells."""

INFEASIBLE = -(1 << 62)


@kernel
def knapsack(
    worth: Ints, weights: Ints, capacity: int, must: Bools, slack: int, chosen: Bools
) -> tuple[int, int]:
    """Solve a knapsack by dynamic programming over an expanding core (Pisinger).

    Starting from the greedy solution, jobs around the break job are added or removed in order of
    their distance to it. Partial solutions are kept in order of weight, and pruned by dominance and
    bounds.

    `worth`: value of each job; only jobs of positive value are considered unless forced in, shape
    (jobs,); `must`: whether a job is forced in, shape (jobs,); `slack`: gain up to which partial
    solutions are pruned; the bound includes it; `chosen`: overwritten by a solution whose value is
    at or near the bound, shape (jobs,). Results: `bound`: upper bound of the value; `INFEASIBLE` if
    the forced jobs do not fit; `steps`: number of partial solutions visited.
    """
    n = len(weights)
    base = 0
    residual = capacity
    jobs = np.empty(n, np.int64)
    count = 0
    total = 0
    for job in range(n):
        chosen[job] = must[job]
        if must[job]:
            base += worth[job]
            residual -= weights[job]
        elif worth[job] > 0 and weights[job] <= capacity:
            jobs[count] = job
            total += weights[job]
            count += 1
    if residual < 0:
        return INFEASIBLE, n
    if total <= residual:
        for k in range(count):
            chosen[jobs[k]] = True
            base += worth[jobs[k]]
        return base, n
    jobs = jobs[:count]
    by_efficiency(jobs, weights, worth)
    remaining = residual
    split = 0
    while weights[jobs[split]] <= remaining:
        job = jobs[split]
        chosen[job] = True
        remaining -= weights[job]
        base += worth[job]
        split += 1
    # partial solutions, relative to the greedy one: weight, worth, decisions as bits
    weight = np.empty((2, 2 * STATES), np.int64)
    value = np.empty((2, 2 * STATES), np.int64)
    taken = np.empty((2, 2 * STATES), np.int64)
    weight[0, 0], value[0, 0], taken[0, 0] = 0, 0, 0
    size, side = 1, 0
    best, best_taken = 0, 0
    core = np.empty(CORE, np.int64)
    depth = 0
    steps = n
    below, above = split - 1, split
    rate = worth[jobs[split]] / weights[jobs[split]]
    turn = 0
    while size > 0:
        if depth == CORE or size > STATES or (below < 0 and above >= count):
            break
        turn += 1
        if above >= count or (turn % 2 == 0 and below >= 0):
            job = jobs[below]
            below -= 1
            shift, gain = -weights[job], -worth[job]
        else:
            job = jobs[above]
            above += 1
            shift, gain = weights[job], worth[job]
        if remaining * rate + gain - shift * rate <= best + slack:
            continue
        core[depth] = job
        # a partial solution that is too heavy loses at the rate of the next job to remove,
        # one with residual capacity gains at the rate of the next job to add
        shed = worth[jobs[below]] / weights[jobs[below]] if below >= 0 else np.inf
        fill = worth[jobs[above]] / weights[jobs[above]] if above < count else 0.0
        other = 1 - side
        kept = 0
        old, new = 0, 0
        highest = INFEASIBLE
        bit = 1 << depth
        while old < size or new < size:
            if new >= size or (old < size and weight[side, old] <= weight[side, new] + shift):
                w, v, t = weight[side, old], value[side, old], taken[side, old]
                old += 1
            else:
                w, v, t = weight[side, new] + shift, value[side, new] + gain, taken[side, new] | bit
                new += 1
            if v <= highest:
                continue
            if w <= remaining:
                if v > best:
                    best, best_taken = v, t
                bound = v + (remaining - w) * fill
            else:
                bound = v - (w - remaining) * shed
            if bound <= best + slack:
                continue
            highest = v
            weight[other, kept], value[other, kept], taken[other, kept] = w, v, t
            kept += 1
        steps += 2 * size
        size, side = kept, other
        depth += 1
    bound = best + slack
    if below >= 0 or above < count:
        shed = worth[jobs[below]] / weights[jobs[below]] if below >= 0 else np.inf
        fill = worth[jobs[above]] / weights[jobs[above]] if above < count else 0.0
        for k in range(size):
            if weight[side, k] <= remaining:
                reach = value[side, k] + (remaining - weight[side, k]) * fill
            else:
                reach = value[side, k] - (weight[side, k] - remaining) * shed
            bound = max(bound, int(reach) + 1 + slack)
    for k in range(depth):
        if (best_taken >> k) & 1:
            chosen[core[k]] = not chosen[core[k]]
    return base + bound, steps


@kernel
def conditional_bounds(
    worth: Ints,
    weights: Ints,
    capacity: int,
    must: Bools,
    bound: int,
    inside: Ints,
    outside: Ints,
) -> None:
    """Bound the value of a knapsack with each job forced in, and forced out (Dantzig).

    `bound` is that without the condition, `inside` and `outside` are overwritten by the bounds;
    the others are as for `knapsack`.
    """
    n = len(weights)
    order = np.arange(n)
    by_efficiency(order, weights, worth)
    residual = capacity
    base = 0
    for job in range(n):
        if must[job]:
            residual -= weights[job]
            base += worth[job]
    for forced in range(n):
        for put_in in range(2):
            remaining, value = residual, base
            if put_in == 1 and not must[forced]:
                remaining, value = remaining - weights[forced], value + worth[forced]
            elif put_in == 0 and must[forced]:
                remaining, value = remaining + weights[forced], value - worth[forced]
            for other in order:
                if remaining < 0 or worth[other] <= 0:
                    break
                if must[other] or other == forced:
                    continue
                if weights[other] > remaining:
                    value += int(worth[other] * (remaining / weights[other])) + 1
                    break
                remaining -= weights[other]
                value += worth[other]
            value = min(bound, value) if remaining >= 0 else INFEASIBLE
            if put_in == 1:
                inside[forced] = value
            else:
                outside[forced] = INFEASIBLE if must[forced] else value


@kernel
def dense_bound(worth: Ints, weights: Ints, capacity: int) -> int:
    """Return the optimum of a knapsack by dynamic programming over every capacity."""
    before = np.zeros(capacity + 1, np.int64)
    after = np.zeros(capacity + 1, np.int64)
    for job in range(len(weights)):
        gain, weight = worth[job], weights[job]
        if gain <= 0 or weight > capacity:
            continue
        assign(after[:weight], before)
        without, within, target = before[weight:], before[: capacity + 1 - weight], after[weight:]
        for c in range(len(target)):
            target[c] = max(without[c], within[c] + gain)
        before, after = after, before
    return before[capacity]
