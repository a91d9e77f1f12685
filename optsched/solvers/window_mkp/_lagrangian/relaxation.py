"""Bounds by Lagrangian decomposition into one knapsack of jobs and one for each slot.

With ``y_j = sum_i x_ij`` relaxed by multipliers ``u_j >= 0``, the problem splits into one knapsack
as large as all slots together, ``max sum_j (p_j - u_j) y_j``, and one knapsack for each slot,
``max sum_j u_j x_ij``. At ``u = 0`` the bound is that of the surrogate relaxation, which is tight
if slots hold many jobs; towards ``u = p`` it is that of the patterns of each slot, which is tight
if slots hold few. Multipliers are integers, in small fractions of a unit of profit, so that all
sums are exact and the bound is a proof.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.dominance import propagate
from optsched.solvers.window_mkp._lagrangian.knapsack import (
    CELLS_PER_STEP,
    INFEASIBLE,
    Bools,
    conditional_bounds,
    knapsack,
)
from optsched.solvers.window_mkp._lagrangian.slots import (
    best_patterns,
    coarseness,
    conditional_patterns,
    leaders,
)
from optsched.solvers.window_mkp._lagrangian.splitting import fill_best, split
from optsched.solvers.window_mkp._reduction import Ints, by_size

UNKNOWN = 1 << 62

PATIENCE = 25
"""Evaluations without progress before the step is shortened."""

SHORTER = 0.8
"""Factor by which the step is shortened."""

PROGRESS = 0.001
"""Least decrease of the bound, as a share of the gap, that counts as progress."""

KEEP_ON = 0.7
"""Largest remaining share of the gap at which another round of evaluations follows."""


@kernel
def initial_multipliers(weights: Ints, profits: Ints, capacities: Ints) -> Ints:
    """Return initial multipliers: the value of capacity to each job, at most its profit.

    For each weight w, jobs of at least that weight are packed, most efficient first, into the slots
    of at least that capacity. Capacity is then worth the profit per weight of the first job that
    does not fit. Its value to a job is the largest over all w up to the weight of the job.

    Jobs are ordered by decreasing profit per weight.
    """
    n = len(weights)
    multipliers = np.zeros(n, np.int64)
    for least in weights:
        residual = 0
        for capacity in capacities:
            if capacity >= least:
                residual += capacity
        rate = 0.0
        for job in range(n):
            if weights[job] >= least:
                if weights[job] > residual:
                    rate = profits[job] / weights[job]
                    break
                residual -= weights[job]
        for job in range(n):
            if weights[job] >= least:
                most = min(profits[job], np.int64(rate * weights[job]))
                multipliers[job] = max(multipliers[job], most)
    return multipliers


@kernel
def relax(
    domain: Bools,
    multipliers: Ints,
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
    """Bound a node, fix variables that cannot lead above `cut`, and look for better placements.

    Parameters
    ----------
    domain : bool array, shape (slots + 1, jobs)
        Choices of each job; excluded ones are removed. The result is propagated even if the
        allowance is spent, unless the bound is at most `cut` or the profit of `placement`.
    multipliers : int64 array, shape (jobs,)
        Initial multipliers; overwritten by the best.
    weights, profits, capacities : int64 arrays
        Instance, jobs by decreasing profit per weight, slots by increasing capacity.
    ordered : bool
        Whether larger slots must hold at least as much weight, see `tighten`.
    unit : int
        Common divisor of all profits, but not of multipliers.
    cut : int
        Cutoff: only placements of more profit are of interest.
    evaluations : int
        Number of evaluations of the relaxation; up to ten times as many while the gap to `cut`
        closes fast.
    allowance : int
        Table cells after which no further evaluation begins.
    step : float64 array, shape (1,)
        Length of steps relative to Polyak's; shortened if there is no progress.
    best : int64 array, shape (1,)
        Profit of `placement`; both are overwritten by a better placement.
    placement : int64 array, shape (jobs,)
        Slot of each job, -1 if not placed.
    promise : int64 array, shape (slots + 1, jobs)
        Overwritten by a bound of the profit with each remaining choice.

    Returns
    -------
    bound : int
        Upper bound of the profit below this node, or at most `cut` if no profit is above `cut`.
        `INFEASIBLE` if there is no placement.
    work : int
        Number of table cells visited.
    """
    m, n = len(capacities), len(weights)
    residual = np.empty(m, np.int64)
    where = np.empty(n, np.int64)
    bound = UNKNOWN
    work = 0
    while True:
        work += (m + 1) * n
        if not propagate(domain, weights, profits, capacities, ordered, residual, where):
            return INFEASIBLE, work
        base = np.int64(0)  # a literal 0 would cause a second compilation
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
            domain, multipliers, weights, profits, residual, unit, cut, evaluations,
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
    multipliers: Ints,
    all_weights: Ints,
    all_profits: Ints,
    residual: Ints,
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
    """Perform one round of `relax` on the free jobs, with the profit `base` of the fixed ones."""
    m, n = len(residual), len(free)
    weights, profits, current = all_weights[free], all_profits[free], multipliers[free]
    allowed = np.empty((m, n), np.bool_)
    must = np.empty(n, np.bool_)
    for k in range(n):
        allowed[:, k] = domain[:m, free[k]]
        must[k] = not domain[m, free[k]]
    scale = coarseness(n, residual.max())
    coarse, coarse_room = weights // scale, residual // scale
    leader = leaders(allowed)
    capacity = residual.sum()
    table = np.empty((n + 1, coarse_room.max() + 1), np.int64)
    pattern = np.empty((m, n), np.bool_)
    value = np.empty(m, np.int64)
    chosen = np.empty(n, np.bool_)
    direction = np.zeros(n)
    trial = np.empty(n, np.int64)
    heaviest, slots = np.arange(n), np.arange(m)
    by_size(heaviest, -weights)
    by_size(slots, residual)
    reverse = slots[::-1].copy()
    best_multipliers = current.copy()
    best_bound, best_choice = UNKNOWN, 0
    work = n * residual.sum() // 64
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
        choice, steps = knapsack(profits - current, weights, capacity, must, unit // 32, chosen)
        if choice == INFEASIBLE:
            return INFEASIBLE, work, False
        work += CELLS_PER_STEP * steps
        work += best_patterns(current, coarse, coarse_room, allowed, leader, table, pattern, value)
        bound = choice + value.sum()
        if evaluation == 0:
            checkpoint = float(bound + base - max(cut, best[0]))
        improved = bound < best_bound
        stalled += 1
        if improved:
            if bound < best_bound - PROGRESS * (best_bound + base - cut):
                stalled = 0
            best_bound, best_choice = bound, choice
            best_multipliers[:] = current

        if base + profits[chosen].sum() > best[0]:
            remaining = residual.copy()
            order = slots if evaluation % 2 == 0 else reverse
            profit = base + split(chosen, weights, profits, remaining, heaviest, order, trial)
            keep(profit, where, free, trial, m, best, placement)
        if improved or evaluation % 8 == 0:
            profit = base + merge(
                pattern, chosen, weights, profits, residual.copy(), heaviest, trial
            )
            keep(profit, where, free, trial, m, best, placement)

        target = max(cut, best[0])
        if base + best_bound < target + unit:
            return best_bound, work, False
        if stalled >= PATIENCE:
            step[0] *= SHORTER
            stalled = 0
        # little momentum lets a short descent turn soon, much keeps a long one from zigzagging
        momentum = 0.7 + 0.25 * min(1.0, evaluation / 100)
        norm = 0.0
        for k in range(n):
            slope = 1.0 if chosen[k] else 0.0
            for slot in range(m):
                if pattern[slot, k]:
                    slope -= 1.0
            if current[k] <= 0 and slope < 0.0:
                slope = 0.0
            direction[k] = slope + momentum * direction[k]
            norm += direction[k] * direction[k]
        if norm == 0.0:
            break
        length = step[0] * (base + bound - target - unit // 2) / norm
        for k in range(n):
            moved = current[k] + np.int64(np.round(length * direction[k]))
            current[k] = max(0, moved if must[k] else min(moved, profits[k]))
    multipliers[free] = best_multipliers

    inside, outside = np.empty((m, n), np.int64), np.empty((m, n), np.int64)
    work += best_patterns(
        best_multipliers, coarse, coarse_room, allowed, leader, table, pattern, value
    )
    work += conditional_patterns(
        best_multipliers,
        coarse,
        coarse_room,
        allowed,
        leader,
        pattern,
        value,
        table,
        inside,
        outside,
    )
    with_job, without_job = np.empty(n, np.int64), np.empty(n, np.int64)
    conditional_bounds(
        profits - best_multipliers, weights, capacity, must, best_choice, with_job, without_job
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
                estimate = others + without_job[k]
            else:
                estimate = others + with_job[k] - outside[slot, k] + inside[slot, k]
            promise[slot, job] = estimate
            if estimate < target + unit:
                domain[slot, job] = False
                removed = True
    return best_bound, work, removed


@kernel
def keep(
    profit: int, where: Ints, free: Ints, trial: Ints, m: int, best: Ints, placement: Ints
) -> None:
    """Keep a placement of the free jobs beside the fixed ones if it improves the incumbent."""
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
    residual: Ints,
    heaviest: Ints,
    placement: Ints,
) -> int:
    """Place the jobs by the patterns of slots, then the chosen jobs, then any others that fit."""
    m, n = pattern.shape
    placement[:] = -1
    for job in range(n):
        for slot in range(m):
            if pattern[slot, job] and weights[job] <= residual[slot]:
                placement[job] = slot
                residual[slot] -= weights[job]
                break
    for job in heaviest:
        if chosen[job] and placement[job] < 0:
            fullest = -1
            for slot in range(m):
                if residual[slot] >= weights[job] and (
                    fullest < 0 or residual[slot] < residual[fullest]
                ):
                    fullest = slot
            if fullest >= 0:
                placement[job] = fullest
                residual[fullest] -= weights[job]
    return fill_best(weights, profits, residual, placement)
