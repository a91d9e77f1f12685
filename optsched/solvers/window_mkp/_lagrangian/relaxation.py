"""Bounds by Lagrangian decomposition: the choice of jobs and the filling of slots, priced apart.

With ``y_j = sum_i x_ij`` relaxed by multipliers ``u_j >= 0`` the problem falls apart into one
knapsack as large as all slots together, ``max sum_j (p_j - u_j) y_j``, and one knapsack for each
slot, ``max sum_j u_j x_ij``. At ``u = 0`` the bound is that of the surrogate relaxation, which is
tight with many jobs in a slot; towards ``u = p`` it is that of the patterns of each slot, which is
tight with few. The multipliers are integers, in small fractions of a unit of profit, so that all
sums are exact and the bound is a proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.window_mkp._bands.dominance import settle
from optsched.solvers.window_mkp._bands.knapsack import (
    CELLS_PER_STEP,
    INFEASIBLE,
    Bools,
    conditional_bounds,
    knapsack,
)
from optsched.solvers.window_mkp._bands.slots import (
    best_patterns,
    coarseness,
    conditional_patterns,
    leaders,
)
from optsched.solvers.window_mkp._bands.splitting import fill_best, split
from optsched.solvers.window_mkp._reduction import Ints, by_size

UNKNOWN = 1 << 62

PATIENCE = 25
"""Evaluations without progress before the step is shortened."""

SHORTER = 0.8
"""What the step is multiplied by then."""

PROGRESS = 0.001
"""Share of the gap by which the bound must fall to count as progress."""

KEEP_ON = 0.7
"""Share of the gap that may be left after the given evaluations for as many more to be made."""


@kernel
def first_prices(weights: Ints, profits: Ints, capacities: Ints) -> Ints:
    """Return where the multipliers start: what room is worth to each job, at most its profit.

    Room is worth the profit per weight of the first job that no longer fits when the jobs of at
    least some weight are taken, the most efficient first, into the slots of at least that capacity;
    to a job it is worth the most over all weights up to its own.

    Parameters
    ----------
    weights, profits, capacities : int64 arrays
        The instance, jobs by decreasing profit per weight.
    """
    n = len(weights)
    prices = np.zeros(n, np.int64)
    for least in weights:
        room = 0
        for capacity in capacities:
            if capacity >= least:
                room += capacity
        rate = 0.0
        for job in range(n):
            if weights[job] >= least:
                if weights[job] > room:
                    rate = profits[job] / weights[job]
                    break
                room -= weights[job]
        for job in range(n):
            if weights[job] >= least:
                price = min(profits[job], np.int64(rate * weights[job]))
                prices[job] = max(prices[job], price)
    return prices


@kernel
def relax(
    domain: Bools,
    prices: Ints,
    weights: Ints,
    profits: Ints,
    capacities: Ints,
    ordered: bool,
    unit: int,
    cut: int,
    evaluations: int,
    allowance: int,
    step: NDArray[np.float64],
    best: Ints,
    placement: Ints,
    promise: Ints,
) -> tuple[int, int]:
    """Bound a node, drop choices that cannot lead above `cut`, and look for better placements.

    Parameters
    ----------
    domain : bool array, shape (slots + 1, jobs)
        The choices left to each job; those that are excluded are removed. What is left is settled,
        wherever the allowance ends, unless the bound is at most `cut` or the profit of `placement`.
    prices : int64 array, shape (jobs,)
        Where the multipliers start; overwritten by the best.
    weights, profits, capacities : int64 arrays
        The instance, jobs by decreasing profit per weight, slots by increasing capacity.
    ordered : bool
        Whether larger slots must hold no less weight, see `tighten`.
    unit : int
        All profits are multiples of it; multipliers need not be.
    cut : int
        Only placements of more profit than this are of interest.
    evaluations : int
        Number of evaluations of the relaxation; up to ten times as many while the gap to `cut`
        closes fast.
    allowance : int
        Cells of tables after which no evaluation begins; the first one always does.
    step : float64 array, shape (1,)
        Length of the steps, relative to Polyak's; shortened where there is no progress.
    best : int64 array, shape (1,)
        Profit of `placement`; both are overwritten when a better placement is found.
    placement : int64 array, shape (jobs,)
        The slot of each job, -1 for none.
    promise : int64 array, shape (slots + 1, jobs)
        Overwritten, for each choice left, by a bound of the profit with that choice.

    Returns
    -------
    bound : int
        No placement below this node has more profit, unless its profit is at most `cut`.
        `INFEASIBLE` when nothing is left.
    work : int
        Cells of tables that were looked at.
    """
    m, n = len(capacities), len(weights)
    room = np.empty(m, np.int64)
    where = np.empty(n, np.int64)
    bound = UNKNOWN
    work = 0
    while True:
        work += (m + 1) * n
        if not settle(domain, weights, profits, capacities, ordered, room, where):
            return INFEASIBLE, work
        base = np.int64(0)  # not the literal 0, for which all would be compiled once more
        for job in range(n):
            if 0 <= where[job] < m:
                base += profits[job]
        free = np.flatnonzero(where < 0)
        if len(free) == 0:
            if base > best[0]:
                best[0] = base
                placement[:] = np.where(where < m, where, -1)
            return int(base), work
        if bound < UNKNOWN and work >= allowance:
            return bound, work
        relaxed, cells, removed = relax_free(
            domain, prices, weights, profits, room, unit, cut, evaluations,
            allowance - work, step,
            best, placement, promise, base, where, free,
        )  # fmt: skip
        work += cells
        bound = min(bound, base + relaxed) // unit * unit
        if bound <= max(cut, best[0]) or not removed:
            return bound, work
        evaluations = max(5, evaluations // 4)


@kernel
def relax_free(
    domain: Bools,
    prices: Ints,
    all_weights: Ints,
    all_profits: Ints,
    room: Ints,
    unit: int,
    cut: int,
    evaluations: int,
    allowance: int,
    step: NDArray[np.float64],
    best: Ints,
    placement: Ints,
    promise: Ints,
    base: int,
    where: Ints,
    free: Ints,
) -> tuple[int, int, bool]:
    """Do one round of `relax` over the jobs that are free, whose profit comes on top of `base`."""
    m, n = len(room), len(free)
    weights, profits, price = all_weights[free], all_profits[free], prices[free]
    allowed = np.empty((m, n), np.bool_)
    must = np.empty(n, np.bool_)
    for k in range(n):
        allowed[:, k] = domain[:m, free[k]]
        must[k] = not domain[m, free[k]]
    scale = coarseness(n, room.max())
    coarse, coarse_room = weights // scale, room // scale
    leader = leaders(allowed)
    capacity = room.sum()
    table = np.empty((n + 1, coarse_room.max() + 1), np.int64)
    pattern = np.empty((m, n), np.bool_)
    value = np.empty(m, np.int64)
    chosen = np.empty(n, np.bool_)
    direction = np.zeros(n)
    trial = np.empty(n, np.int64)
    heaviest, slots = np.arange(n), np.arange(m)
    by_size(heaviest, -weights)
    by_size(slots, room)
    reverse = slots[::-1].copy()
    best_price = price.copy()
    best_bound, best_choice = UNKNOWN, 0
    work = n * room.sum() // 64
    stalled = 0
    checkpoint = 0.0
    for evaluation in range(10 * evaluations):
        if evaluation > 0 and work >= allowance:
            break
        if evaluation % evaluations == 0 and evaluation > 0:
            gap = float(best_bound + base - max(cut, best[0]))
            if gap > KEEP_ON * checkpoint:
                break
            checkpoint = gap
        choice, steps = knapsack(profits - price, weights, capacity, must, unit // 32, chosen)
        if choice == INFEASIBLE:
            return INFEASIBLE, work, False
        work += CELLS_PER_STEP * steps
        work += best_patterns(price, coarse, coarse_room, allowed, leader, table, pattern, value)
        bound = choice + value.sum()
        if evaluation == 0:
            checkpoint = float(bound + base - max(cut, best[0]))
        improved = bound < best_bound
        stalled += 1
        if improved:
            if bound < best_bound - PROGRESS * (best_bound + base - cut):
                stalled = 0
            best_bound, best_choice = bound, choice
            best_price[:] = price

        if base + profits[chosen].sum() > best[0]:
            left = room.copy()
            order = slots if evaluation % 2 == 0 else reverse
            profit = base + split(chosen, weights, profits, left, heaviest, order, trial)
            keep(profit, where, free, trial, m, best, placement)
        if improved or evaluation % 8 == 0:
            profit = base + merge(pattern, chosen, weights, profits, room.copy(), heaviest, trial)
            keep(profit, where, free, trial, m, best, placement)

        target = max(cut, best[0])
        if base + best_bound < target + unit:
            return best_bound, work, False
        if stalled >= PATIENCE:
            step[0] *= SHORTER
            stalled = 0
        # a short descent must turn soon, a long one must not zigzag
        momentum = 0.7 + 0.25 * min(1.0, evaluation / 100)
        norm = 0.0
        for k in range(n):
            slope = 1.0 if chosen[k] else 0.0
            for slot in range(m):
                if pattern[slot, k]:
                    slope -= 1.0
            if price[k] <= 0 and slope < 0.0:
                slope = 0.0
            direction[k] = slope + momentum * direction[k]
            norm += direction[k] * direction[k]
        if norm == 0.0:
            break
        length = step[0] * (base + bound - target - unit // 2) / norm
        for k in range(n):
            moved = price[k] + np.int64(np.round(length * direction[k]))
            price[k] = max(0, moved if must[k] else min(moved, profits[k]))
    prices[free] = best_price

    inside, outside = np.empty((m, n), np.int64), np.empty((m, n), np.int64)
    work += best_patterns(best_price, coarse, coarse_room, allowed, leader, table, pattern, value)
    work += conditional_patterns(
        best_price, coarse, coarse_room, allowed, leader, pattern, value, table, inside, outside
    )
    with_job, without_job = np.empty(n, np.int64), np.empty(n, np.int64)
    conditional_bounds(
        profits - best_price, weights, capacity, must, best_choice, with_job, without_job
    )
    work += 4 * n * n
    removed = False
    target = max(cut, best[0])
    for k in range(n):
        job = free[k]
        others = base + outside[:, k].sum()
        for slot in range(m + 1):
            if not domain[slot, job]:
                continue
            if slot == m:
                hope = others + without_job[k]
            else:
                hope = others + with_job[k] - outside[slot, k] + inside[slot, k]
            promise[slot, job] = hope
            if hope < target + unit:
                domain[slot, job] = False
                removed = True
    return best_bound, work, removed


@kernel
def keep(
    profit: int, where: Ints, free: Ints, trial: Ints, m: int, best: Ints, placement: Ints
) -> None:
    """Keep a trial placement of the free jobs, beside the settled ones, if it is the best yet."""
    if profit > best[0]:
        best[0] = profit
        for job in range(len(where)):
            placement[job] = where[job] if where[job] < m else -1
        for k in range(len(free)):
            placement[free[k]] = trial[k]


@kernel
def merge(
    pattern: Bools,
    chosen: Bools,
    weights: Ints,
    profits: Ints,
    room: Ints,
    heaviest: Ints,
    placement: Ints,
) -> int:
    """Place the jobs where the slots want them, then the chosen ones, then what else fits."""
    m, n = pattern.shape
    placement[:] = -1
    for job in range(n):
        for slot in range(m):
            if pattern[slot, job] and weights[job] <= room[slot]:
                placement[job] = slot
                room[slot] -= weights[job]
                break
    for job in heaviest:
        if chosen[job] and placement[job] < 0:
            fullest = -1
            for slot in range(m):
                if room[slot] >= weights[job] and (fullest < 0 or room[slot] < room[fullest]):
                    fullest = slot
            if fullest >= 0:
                placement[job] = fullest
                room[fullest] -= weights[job]
    return fill_best(weights, profits, room, placement)
