"""Placements: from chosen jobs by filling slots, and by refilling a few slots (local search)."""

from __future__ import annotations

import numpy as np

from optsched.arrays import Flags, Floats, Ints, Words
from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.knapsacks import (
    LARGEST_SET,
    WORD,
    add_weight,
    holds,
    in_order,
    knapsack,
    replaces,
)
from optsched.solvers.window_mkp._reduction import assign, by_size


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
def split(
    chosen: Flags,  # jobs to place first, shape (jobs,)
    weights: Ints,
    profits: Ints,
    residual: Ints,  # capacity of each slot; overwritten by the residual capacities
    heaviest: Ints,  # job numbers by decreasing weight
    slots: Ints,  # in the order of filling
    placement: Ints,  # overwritten
) -> int:
    """Place the `chosen` jobs slot by slot, then any others that fit, and return the profit."""
    placement[:] = -1
    jobs = in_order(heaviest, chosen)
    for slot in slots:
        fill_fullest(slot, residual, weights, jobs, placement)
    return fill_best(weights, profits, residual, placement)


@kernel
def fullest_slot(residual: Ints, weight: int) -> int:
    """Return the slot with the least residual capacity that holds a weight, or -1."""
    fullest = -1
    for slot in range(len(residual)):
        if residual[slot] >= weight and (fullest < 0 or residual[slot] < residual[fullest]):
            fullest = slot
    return fullest


@kernel
def fill_best(weights: Ints, profits: Ints, residual: Ints, placement: Ints) -> int:
    """Put each unplaced job into the fullest slot that holds it, and return the total profit."""
    profit = 0
    for job in range(len(weights)):
        if placement[job] < 0:
            fullest = fullest_slot(residual, weights[job])
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
            if placement[waiting] < 0 and replaces(waiting, job, weights, profits):
                placement[waiting] = placement[job]
                residual[placement[job]] += weights[job] - weights[waiting]
                placement[job] = -1
                break


@kernel
def improve(
    weights: Ints,
    profits: Ints,
    capacities: Ints,
    heaviest: Ints,  # job numbers by decreasing weight
    enough: int,  # upper bound of the profit, at which the search ends
    most: int,  # approximate limit of steps
    placement: Ints,  # overwritten
) -> tuple[int, int]:
    """Improve a placement by solving pairs of slots again (local search).

    The jobs in two slots and the waiting ones form a knapsack as large as both slots. If its
    optimum exceeds the profit of the two slots, its solution is split between them. If that gains
    nothing, the first slot is filled optimally, and then the second with the remaining jobs.
    Returned are the profit of the improved placement, and the steps.
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
) -> tuple[int, int, Flags]:
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


MOST_SLOTS = 5
"""Largest number of slots that are refilled together."""

FILLS = 200
"""Largest number of search nodes of a refill, each of which fills a slot."""

DECISIONS = 100 * FILLS
"""Largest number of decisions on single jobs in a refill."""

NOISE = 1200
"""Least factor of weights in the order of jobs; up to 1023 are added at random."""

HALF = 0.5
"""Allowed increase of the loss, which absorbs rounding: profits are integers."""

CELLS_PER_DECISION = 40
"""Time of a decision on a job, in table cells."""

CELLS_PER_WORD = 4
"""Time of a word of reachable sums, in table cells."""


@kernel
def draw(state: Words) -> int:
    """Return a random integer from 0 to 1023, and advance the generator (xorshift)."""
    bits = state[0]
    bits ^= bits << np.uint64(13)
    bits ^= bits >> np.uint64(7)
    bits ^= bits << np.uint64(17)
    state[0] = bits
    return int(np.int64(bits >> np.uint64(54)))  # signed


@kernel
def holds_between(bits: Words, low: int, high: int) -> bool:
    """Return whether a set of sums has any from `low` to `high`."""
    low = max(0, low)
    first, last = low // WORD, high // WORD
    everything = ~np.uint64(0)
    for word in range(first, last + 1):
        mask = everything
        if word == first:
            mask <<= np.uint64(low % WORD)
        if word == last:
            mask &= everything >> np.uint64(WORD - 1 - high % WORD)
        if bits[word] & mask:
            return True
    return False


@kernel
def spare(left: float, rate: float, residual: int) -> int:
    """Return how much of a residual capacity may remain unused at a loss of at most `left`."""
    return int(min(float(residual), left / rate))


@kernel
def refill(
    jobs: Ints,  # jobs to choose from, in the order of decisions
    slots: Ints,  # empty slots, in the order of filling
    weights: Ints,
    placed_loss: Floats,  # if the job is placed
    waiting_loss: Floats,  # and if it is not
    rate: float,  # loss for each unit of unused capacity, positive
    left: float,
    capacities: Ints,
    sums: Words,
    placement: Ints,  # overwritten for the jobs that are taken; unchanged without success
) -> tuple[bool, int]:
    """Fill slots one after the other, with a total loss of at most `left`.

    A depth-first search decides job by job whether the slot takes it. It goes back where the sums
    that the later jobs can reach leave too much capacity unused. Returned are whether such contents
    were found before the limit of the search, and the cells that take the same time.
    """
    m, n = len(slots), len(jobs)
    candidate, takes = np.empty((m, n), np.int64), np.zeros((m, n), np.bool_)
    taken = np.zeros(n, np.bool_)
    count, residual = np.zeros(m, np.int64), np.zeros(m, np.int64)
    rest = 0
    for slot in slots:
        rest += capacities[slot]
    fills, decisions, words = 0, 0, 0
    level = 0
    entering = True
    while level >= 0:
        backing = True
        if entering:
            fills += 1
            unplaced, needed = 0.0, 0
            for k in range(n):
                if not taken[k]:
                    unplaced += waiting_loss[jobs[k]]
                    if waiting_loss[jobs[k]] > left:
                        needed += weights[jobs[k]]
            if level == m and unplaced <= left:
                for filled in range(m):
                    for k in range(count[filled]):
                        if takes[filled, k]:
                            placement[jobs[candidate[filled, k]]] = slots[filled]
                return True, CELLS_PER_WORD * words + CELLS_PER_DECISION * decisions
            if fills > FILLS or decisions > DECISIONS:
                break
            if level == m or needed > rest:
                level -= 1
                entering = False
                continue
            capacity = capacities[slots[level]]
            rest -= capacity
            size = 0
            for k in range(n):
                if not taken[k] and weights[jobs[k]] <= capacity and placed_loss[jobs[k]] <= left:
                    candidate[level, size] = k
                    takes[level, size] = False
                    size += 1
            count[level], residual[level] = size, capacity
            width = capacity // WORD + 1
            sums[level, size, :width] = 0
            sums[level, size, 0] = 1
            for k in range(size - 1, -1, -1):
                reach = sums[level, k, :width]
                assign(reach, sums[level, k + 1])
                add_weight(reach, weights[jobs[candidate[level, k]]])
            words += (size + 1) * width + n
            k = 0
            backing = not holds_between(
                sums[level, 0], capacity - spare(left, rate, capacity), capacity
            )
        else:
            left += rate * residual[level]
            k = count[level]
        remaining = residual[level]
        while backing or k < count[level]:
            decisions += 1
            if backing:
                k -= 1
                while k >= 0 and not takes[level, k]:
                    k -= 1
                if k < 0:
                    break
                job = jobs[candidate[level, k]]
                takes[level, k] = taken[candidate[level, k]] = False
                remaining += weights[job]
                left += placed_loss[job]
            else:
                job = jobs[candidate[level, k]]
                lighter, cheaper = remaining - weights[job], left - placed_loss[job]
                if (
                    lighter >= 0
                    and cheaper >= 0.0
                    and holds_between(
                        sums[level, k + 1], lighter - spare(cheaper, rate, lighter), lighter
                    )
                ):
                    takes[level, k] = taken[candidate[level, k]] = True
                    remaining, left = lighter, cheaper
                    k += 1
                    continue
            k += 1
            backing = not holds_between(
                sums[level, k], remaining - spare(left, rate, remaining), remaining
            )
        residual[level] = remaining
        entering = not backing
        if entering:
            left -= rate * remaining
            level += 1
        else:
            rest += capacities[slots[level]]
            level -= 1
    return False, CELLS_PER_WORD * words + CELLS_PER_DECISION * decisions


@kernel
def refill_slots(
    weights: Ints,
    profits: Ints,
    capacities: Ints,
    enough: int,  # upper bound of the profit, at which the search ends
    allowance: int,  # approximate number of cells; slots are refilled at least once
    state: Words,  # state of the random numbers, not 0; advanced, shape (1,)
    placement: Ints,  # overwritten
) -> tuple[int, int]:
    """Improve a placement by refilling a few random slots at a time (local search).

    The linear relaxation of the surrogate knapsack gives capacity a value, the profit per weight of
    its last job. Compared with that relaxation, a placement loses this rate for each unit of unused
    capacity, the profit of a waiting job beyond the rate, and what a placed job lacks to it. A few
    slots, mostly those with unused capacity, are emptied and refilled from their jobs and the
    waiting ones, without more loss than before. Contents of equal profit are accepted, since they
    lead to others. Returned are the profit of the improved placement, and cells.
    """
    n, m = len(weights), len(capacities)
    total, largest = 0, 0
    for capacity in capacities:
        total += capacity
        largest = max(largest, capacity)
    last = 0
    while last < n - 1 and weights[last] <= total:
        total -= weights[last]
        last += 1
    rate = profits[last] / weights[last]
    placed_loss, waiting_loss = np.empty(n, np.float64), np.empty(n, np.float64)
    profit = 0
    residual = capacities.copy()
    for job in range(n):
        # loops, because numba compiles expressions of arrays for seconds
        surplus = profits[job] - rate * weights[job]
        placed_loss[job], waiting_loss[job] = max(0.0, -surplus), max(0.0, surplus)
        if placement[job] >= 0:
            profit += profits[job]
            residual[placement[job]] -= weights[job]
    sums = np.empty((MOST_SLOTS, n + 1, largest // WORD + 1), np.uint64)
    trial = placement.copy()
    key = np.empty(max(n, m), np.int64)
    jobs, slots, drawn = np.empty(n, np.int64), np.arange(m), np.empty(m, np.bool_)
    cells = 0
    while profit < enough:
        for slot in range(m):
            key[slot] = -draw(state) * (1 if residual[slot] == 0 else 2)
            drawn[slot] = False
        by_size(slots, key)
        few = slots[: min(m, 2 + draw(state) % (MOST_SLOTS - 1))]
        loss = HALF
        for slot in few:
            drawn[slot] = True
            loss += rate * residual[slot]
        held = 0
        for job in range(n):
            if placement[job] < 0:
                loss += waiting_loss[job]
            elif drawn[placement[job]]:
                loss += placed_loss[job]
                held += profits[job]
        count = 0
        for job in range(n):
            if drawn[placement[job]] if placement[job] >= 0 else placed_loss[job] <= loss:
                jobs[count] = job
                key[job] = -weights[job] * (NOISE + draw(state))
                trial[job] = -1
                count += 1
        pool = jobs[:count]
        by_size(pool, key)
        success, seen = refill(
            pool, few, weights, placed_loss, waiting_loss, rate, loss, capacities, sums, trial
        )
        cells += seen + CELLS_PER_DECISION * (n + m)
        gained = 0
        for job in pool:
            if trial[job] >= 0:
                gained += profits[job]
        if success and gained >= held:
            profit += gained - held
            for slot in few:
                residual[slot] = capacities[slot]
            for job in pool:
                placement[job] = trial[job]
                if trial[job] >= 0:
                    residual[trial[job]] -= weights[job]
        else:
            for job in pool:
                trial[job] = placement[job]
        if cells >= allowance:
            break
    return profit, cells
