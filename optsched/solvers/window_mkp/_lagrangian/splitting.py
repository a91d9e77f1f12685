"""Placements from a set of chosen jobs by filling slots, and the relaxation of all slots as one."""

from __future__ import annotations

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.knapsack import (
    CELLS_PER_STEP,
    Bools,
    dense_bound,
    knapsack,
)
from optsched.solvers.window_mkp._lagrangian.slots import (
    LARGEST_SET,
    WORD,
    add_weight,
    holds,
    tighten,
)
from optsched.solvers.window_mkp._reduction import Ints, assign


@kernel
def fill_fullest(slot: int, residual: Ints, weights: Ints, jobs: Ints, placement: Ints) -> None:
    """Fill a slot with the largest total weight of unplaced `jobs`, larger jobs first.

    The jobs are in order of decreasing weight. A very large slot takes each job that fits.
    """
    if residual[slot] > LARGEST_SET:
        for job in jobs:
            if placement[job] < 0 and weights[job] <= residual[slot]:
                placement[job] = slot
                residual[slot] -= weights[job]
        return
    words = residual[slot] // WORD + 1
    free = np.empty(len(jobs), np.int64)
    count = 0
    for job in jobs:
        if placement[job] < 0 and weights[job] <= residual[slot]:
            free[count] = job
            count += 1
    # sums[k]: totals of the jobs from the k-th on, that is of the smaller ones
    sums = np.zeros((count + 1, words), np.uint64)
    sums[count, 0] = 1
    for k in range(count - 1, -1, -1):
        assign(sums[k], sums[k + 1])
        add_weight(sums[k], weights[free[k]])
    total = residual[slot]
    while not holds(sums[0], total):
        total -= 1
    for k in range(count):
        job = free[k]
        if weights[job] <= total and holds(sums[k + 1], total - weights[job]):
            placement[job] = slot
            residual[slot] -= weights[job]
            total -= weights[job]


@kernel
def in_order(order: Ints, chosen: Bools) -> Ints:
    """Return the chosen jobs in the given order."""
    # a loop, because numba compiles indexing by an array for a second
    jobs = np.empty(len(order), np.int64)
    count = 0
    for job in order:
        if chosen[job]:
            jobs[count] = job
            count += 1
    return jobs[:count]


@kernel
def split(
    chosen: Bools,  # jobs to place first, shape (jobs,)
    # Weight and profit of each job, most efficient first, shape (jobs,)
    weights: Ints,
    profits: Ints,
    residual: Ints,  # capacity of each slot; overwritten by the residual capacities, shape (slots,)
    heaviest: Ints,  # job numbers by decreasing weight, shape (jobs,)
    slots: Ints,  # slot numbers in the order of filling, shape (slots,)
    placement: Ints,  # overwritten by the slot of each job, -1 if not placed, shape (jobs,)
) -> int:
    """Place the `chosen` jobs slot by slot, then any others that fit, and return the profit."""
    placement[:] = -1
    jobs = in_order(heaviest, chosen)
    for slot in slots:
        fill_fullest(slot, residual, weights, jobs, placement)
    return fill_best(weights, profits, residual, placement)


@kernel
def fill_best(weights: Ints, profits: Ints, residual: Ints, placement: Ints) -> int:
    """Put each unplaced job into the fullest slot that holds it, and return the total profit."""
    profit = 0
    for job in range(len(weights)):
        if placement[job] < 0:
            fullest = -1
            for slot in range(len(residual)):
                if residual[slot] >= weights[job] and (
                    fullest < 0 or residual[slot] < residual[fullest]
                ):
                    fullest = slot
            if fullest < 0:
                continue
            placement[job] = fullest
            residual[fullest] -= weights[job]
        profit += profits[job]
    return profit


@kernel
def exchange_waiting(weights: Ints, profits: Ints, residual: Ints, placement: Ints) -> None:
    """Replace placed jobs by waiting ones of at most the weight and at least the profit."""
    n = len(weights)
    for job in range(n):
        if placement[job] < 0:
            continue
        for waiting in range(job):
            if (
                placement[waiting] < 0
                and weights[waiting] <= weights[job]
                and profits[waiting] >= profits[job]
            ):
                placement[waiting] = placement[job]
                residual[placement[job]] += weights[job] - weights[waiting]
                placement[job] = -1
                break


@kernel
def improve(
    # Instance, jobs by decreasing profit per weight
    weights: Ints,
    profits: Ints,
    capacities: Ints,
    heaviest: Ints,  # job numbers by decreasing weight, shape (jobs,)
    enough: int,  # upper bound of the profit, at which the search ends
    most: int,  # approximate limit of partial solutions to visit
    placement: Ints,  # slot of each job, -1 if not placed; overwritten, shape (jobs,)
) -> tuple[int, int]:
    """Improve a placement by solving pairs of slots again (local search).

    The jobs in two slots and the waiting ones form a knapsack as large as both slots. If its
    optimum exceeds the profit of the two slots, its solution is split between them. If that gains
    nothing, the first slot is filled optimally, and then the second with the remaining jobs.

    Results: `profit`: profit of the improved placement; `steps`: number of partial solutions
    visited.
    """
    n, m = len(weights), len(capacities)
    residual = capacities.copy()
    for job in range(n):
        if placement[job] >= 0:
            residual[placement[job]] -= weights[job]
    exchange_waiting(weights, profits, residual, placement)
    profit = fill_best(weights, profits, residual, placement)
    trial, remaining = placement.copy(), residual.copy()
    steps = 0
    pair = -1
    unchanged = 0
    while unchanged < m * m and profit < enough and steps < most:
        pair = (pair + 1) % (m * m)
        first, second = pair // m, pair % m
        unchanged += 1
        if first == second:
            continue
        held = 0
        count = 0
        jobs = np.empty(n, np.int64)
        for job in range(n):
            if placement[job] == first or placement[job] == second:
                held += profits[job]
            elif placement[job] >= 0:
                continue
            jobs[count] = job
            count += 1
        jobs = jobs[:count]
        for way in range(2):
            assign(trial, placement)
            for freed in jobs:
                trial[freed] = -1
            assign(remaining, residual)
            remaining[first], remaining[second] = capacities[first], capacities[second]
            if way == 0:
                both = capacities[first] + capacities[second]
                bound, work, chosen = best_of(jobs, trial, weights, profits, both)
                steps += work
                if bound <= held:
                    break
                order = in_order(heaviest, chosen)
                fill_fullest(first, remaining, weights, order, trial)
                fill_fullest(second, remaining, weights, order, trial)
            else:
                for slot in (first, second):
                    _, work, chosen = best_of(jobs, trial, weights, profits, capacities[slot])
                    steps += work
                    for added in jobs:
                        if chosen[added]:
                            trial[added] = slot
                            remaining[slot] -= weights[added]
            fill_best(weights, profits, remaining, trial)
            gained = 0
            for placed in jobs:
                if trial[placed] >= 0:
                    gained += profits[placed]
            if gained > held:
                assign(placement, trial)
                assign(residual, remaining)
                profit += gained - held
                unchanged = 0
                break
    return profit, steps


@kernel
def best_of(
    jobs: Ints, placement: Ints, weights: Ints, profits: Ints, capacity: int
) -> tuple[int, int, Bools]:
    """Solve a knapsack over those of the jobs that are not placed; see `knapsack`."""
    n = len(jobs)
    waiting, weight, profit = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    count = 0
    for job in jobs:
        if placement[job] < 0:
            waiting[count], weight[count], profit[count] = job, weights[job], profits[job]
            count += 1
    picked, must = np.empty(count, np.bool_), np.zeros(count, np.bool_)
    bound, steps = knapsack(profit[:count], weight[:count], capacity, must, np.int64(0), picked)
    chosen = np.zeros(len(weights), np.bool_)
    for k in range(count):
        chosen[waiting[k]] = picked[k]
    return bound, steps, chosen


DENSE = 1 << 26
"""Largest number of cells in dynamic programming over every capacity."""


def surrogate(
    weights: Ints, profits: Ints, capacities: Ints, heaviest: Ints, allowance: int, placement: Ints
) -> tuple[int, int, int, int]:
    """Bound a window by the surrogate relaxation, and split the solution among the slots.

    This is the root of Pisinger's mulknap, and usually suffices if slots hold many jobs. Placements
    by subset sums are improved by `improve`.

    `weights`, `profits` and `capacities`: instance, jobs by decreasing profit per weight, slots by
    increasing capacity; `heaviest`: job numbers by decreasing weight, shape (jobs,); `allowance`:
    approximate limit of table cells to visit; `placement`: overwritten by the slot of each job, -1
    if not placed, shape (jobs,). Results: `bound`: upper bound of the profit; `profit`: profit of
    `placement`; `steps`: number of partial solutions visited; `cells`: number of table cells
    visited.
    """
    n, m = len(weights), len(capacities)
    allowed = np.ascontiguousarray(weights <= capacities[:, None])
    residual = capacities.copy()
    tighten(allowed, weights, capacities, np.full(n, -1), False, residual)
    total = int(residual.sum())
    chosen = np.empty(n, np.bool_)
    bound, steps = knapsack(profits, weights, total, np.zeros(n, np.bool_), 0, chosen)
    cells = n * total // 64
    if bound > profits[chosen].sum() and n * total <= min(DENSE, allowance):
        bound = min(bound, dense_bound(profits, weights, total))
        cells += n * total
    best = -1
    trial = np.empty(n, np.int64)
    for slots in (np.arange(m), np.arange(m)[::-1].copy()):
        split(chosen, weights, profits, capacities.copy(), heaviest, slots, trial)
        profit, more = improve(
            weights,
            profits,
            capacities,
            heaviest,
            bound,
            (allowance - cells) // CELLS_PER_STEP - steps,
            trial,
        )
        steps += more
        if profit > best:
            best = profit
            placement[:] = trial
        if best == bound:
            break
    return bound, best, steps, cells
