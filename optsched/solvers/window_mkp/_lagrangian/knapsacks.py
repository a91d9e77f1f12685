"""Knapsacks of the decomposition: one of all jobs, and one for the contents of each slot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints, Words
from optsched.compiled import kernel
from optsched.solvers.window_mkp._reduction import assign, by_efficiency

STATES = 1 << 12
"""Largest number of partial solutions to keep, beyond which the bound is not improved."""

CORE = 62
"""Largest number of jobs whose decisions fit into a machine word."""

CELLS_PER_STEP = 16
"""Time of a partial solution in table cells."""

INFEASIBLE = -(1 << 62)


@kernel
def knapsack(
    worth: Ints, weights: Ints, capacity: int, must: Flags, slack: int, chosen: Flags
) -> tuple[int, int]:
    """Solve a knapsack by dynamic programming over an expanding core (Pisinger).

    Starting from the greedy solution, jobs around the break job are added or removed in order of
    their distance to it. Partial solutions are kept in order of weight, and pruned by dominance and
    bounds.

    Only jobs of positive worth are considered, unless they `must` be in. Partial solutions are
    pruned up to a gain of `slack`, which the bound includes. `chosen` is overwritten by a solution
    of a value at or near the bound. Returned are the bound, `INFEASIBLE` if the forced jobs do not
    fit, and the steps.
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
    worth: Ints, weights: Ints, capacity: int, must: Flags, bound: int, inside: Ints, outside: Ints
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


WORD = 64

LARGEST_SET = 1 << 17
"""Largest sum in a bit set; in larger slots every sum counts as reachable."""

TABLE = 1 << 21
"""Largest number of cells in a table; beyond it, weights are rounded down to a coarser unit."""


@kernel
def add_weight(bits: Words, weight: int) -> None:
    """Add every sum plus `weight` to a set of sums (bit s of the words), in place."""
    skip = weight // WORD
    shift = np.uint64(weight % WORD)
    carry = np.uint64(WORD) - shift
    for word in range(len(bits) - 1, skip - 1, -1):
        moved = bits[word - skip] << shift
        if shift and word > skip:
            moved |= bits[word - skip - 1] >> carry
        bits[word] |= moved


@kernel
def holds(bits: Words, total: int) -> bool:
    """Return whether `total` is in a set of sums."""
    return (bits[total // WORD] >> np.uint64(total % WORD)) & np.uint64(1) != 0


@kernel
def largest_sum(slot: int, allowed: Flags, weights: Ints, where: Ints, residual: int) -> int:
    """Return the largest total weight within `residual` of the free jobs allowed in a slot."""
    if residual > LARGEST_SET:
        return residual
    bits = np.zeros(residual // WORD + 1, np.uint64)
    bits[0] = 1
    for job in range(len(weights)):
        if where[job] < 0 and allowed[slot, job]:
            add_weight(bits, weights[job])
    while not holds(bits, residual):
        residual -= 1
    return residual


@kernel
def tighten(
    allowed: Flags, weights: Ints, capacities: Ints, where: Ints, ordered: bool, residual: Ints
) -> None:
    """Reduce the residual capacity of each slot to the part that can be filled.

    The contents of two slots can be exchanged if the larger slot holds less. So larger slots may be
    required to hold at least as much (`ordered`); then the largest content of a slot limits all
    smaller slots.

    `allowed`: whether a job may go into a slot, shape (slots, jobs); `where`: negative for free
    jobs; `residual`: capacities beside the fixed jobs, overwritten, negative for an overfull slot.
    """
    limit, next_limit = capacities[-1], capacities[-1]
    for slot in range(len(residual) - 1, -1, -1):
        if slot + 1 < len(residual) and capacities[slot] < capacities[slot + 1]:
            limit = next_limit
        settled = capacities[slot] - residual[slot]
        if ordered:
            residual[slot] = min(residual[slot], limit - settled)
        if residual[slot] >= 0:
            residual[slot] = largest_sum(slot, allowed, weights, where, residual[slot])
        next_limit = min(next_limit, settled + residual[slot])


@kernel
def leaders(allowed: Flags) -> Ints:
    """Return the first slot with the same allowed jobs for each slot: slots that share a table."""
    m = len(allowed)
    leader = np.arange(m)
    for slot in range(m):
        for other in range(slot):
            if leader[other] == other and equal(allowed[slot], allowed[other]):
                leader[slot] = other
                break
    return leader


@kernel
def equal(first: Flags, second: Flags) -> bool:
    """Return whether two arrays of one length are equal."""
    # a loop, because numba compiles its own function for a quarter of a second
    same = 0
    while same < len(first) and first[same] == second[same]:
        same += 1
    return same == len(first)


@kernel
def in_order(order: Ints, chosen: Flags) -> Ints:
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
def coarseness(jobs: int, capacity: int) -> int:
    """Return the divisor of weights that makes a table of this size small enough.

    Weights and capacities are rounded down after division; 1 leaves them unchanged. Every set that
    fits still fits, so values in the table are bounds.
    """
    return 1 + (jobs + 1) * (capacity + 1) // TABLE


@kernel
def fill_forward(table: Ints, worth: Ints, weights: Ints, jobs: Ints, capacity: int) -> None:
    """Fill ``table[k, c]`` with the optimum of the first k of `jobs` within capacity c."""
    table[0, : capacity + 1] = 0
    for k in range(len(jobs)):
        gain, weight = worth[jobs[k]], weights[jobs[k]]
        if gain <= 0 or weight > capacity:
            assign(table[k + 1, : capacity + 1], table[k])
            continue
        assign(table[k + 1, :weight], table[k])
        without = table[k, weight : capacity + 1]
        within = table[k, : capacity + 1 - weight]
        after = table[k + 1, weight : capacity + 1]
        for c in range(len(after)):
            after[c] = max(without[c], within[c] + gain)


@kernel
def fill_backward(table: Ints, worth: Ints, weights: Ints, jobs: Ints, capacity: int) -> None:
    """Fill ``table[k, c]`` with the optimum of the k-th and later `jobs` with c already used."""
    count = len(jobs)
    table[count, : capacity + 1] = 0
    for k in range(count - 1, -1, -1):
        gain, weight = worth[jobs[k]], weights[jobs[k]]
        if gain <= 0 or weight > capacity:
            assign(table[k, : capacity + 1], table[k + 1])
            continue
        last = capacity + 1 - weight
        assign(table[k, last : capacity + 1], table[k + 1, last:])
        without = table[k + 1, :last]
        within = table[k + 1, weight : capacity + 1]
        after = table[k, :last]
        for c in range(last):
            after[c] = max(without[c], within[c] + gain)


@kernel
def shared_capacity(slot: int, leader: Ints, residual: Ints) -> int:
    """Return the largest residual capacity of the slots that share the table of `slot`."""
    largest = 0
    for other in range(slot, len(residual)):
        if leader[other] == slot:
            largest = max(largest, residual[other])
    return largest


class Slots(NamedTuple):
    """The knapsacks of single slots, and room for their solution."""

    # Weight of each job, and residual capacity of each slot, in a unit that may be coarse
    weights: Ints
    residual: Ints
    allowed: Flags  # whether a job may go into a slot, shape (slots, jobs)
    leader: Ints  # result of `leaders`, shape (slots,)
    table: Ints
    pattern: Flags  # best set of each slot, shape (slots, jobs)
    value: Ints  # and its value, shape (slots,)


def slots_of(weights: Ints, residual: Ints, allowed: Flags) -> Slots:
    """Return the knapsacks of slots, in a unit that makes tables small enough."""
    m, n = allowed.shape
    scale = coarseness(n, int(residual.max()))
    table = np.empty((n + 1, int(residual.max()) // scale + 1), np.int64)
    return Slots(
        *(weights // scale, residual // scale, allowed, leaders(allowed), table),
        *(np.empty((m, n), np.bool_), np.empty(m, np.int64)),
    )


@kernel
def best_patterns(worth: Ints, slots: Slots) -> int:
    """Find the set of jobs of most worth for each slot alone; return the table cells filled."""
    weights, residual, allowed, leader, table, pattern, value = slots
    m, everyone = len(residual), np.arange(len(weights))
    cells = 0
    pattern[:] = False
    for slot in range(m):
        if leader[slot] != slot:
            continue
        capacity = shared_capacity(slot, leader, residual)
        jobs = in_order(everyone, allowed[slot])
        fill_forward(table, worth, weights, jobs, capacity)
        cells += (len(jobs) + 1) * (capacity + 1)
        for other in range(slot, m):
            if leader[other] != slot:
                continue
            remaining = residual[other]
            value[other] = table[len(jobs), remaining]
            for k in range(len(jobs) - 1, -1, -1):
                if table[k + 1, remaining] != table[k, remaining]:
                    pattern[other, jobs[k]] = True
                    remaining -= weights[jobs[k]]
    return cells


@kernel
def best_sum(first: Ints, second: Ints) -> int:
    """Return the largest ``first[c] + second[c]``."""
    best = 0
    for c in range(len(first)):
        best = max(best, first[c] + second[c])
    return best


@kernel
def conditional_patterns(worth: Ints, slots: Slots, inside: Ints, outside: Ints) -> int:
    """Find the optimum of each slot with each job forced in, and forced out.

    It follows `best_patterns`. `inside` and `outside`, of shape (slots, jobs), are overwritten by
    the optima. Returned is the number of table cells visited.
    """
    weights, residual, allowed, leader, table, pattern, value = slots
    m, everyone = len(residual), np.arange(len(weights))
    cells = 0
    behind = np.empty_like(table)
    for slot in range(m):
        inside[slot] = INFEASIBLE
        outside[slot] = value[slot]
    for slot in range(m):
        if leader[slot] != slot:
            continue
        capacity = shared_capacity(slot, leader, residual)
        jobs = in_order(everyone, allowed[slot])
        fill_forward(table, worth, weights, jobs, capacity)
        fill_backward(behind, worth, weights, jobs, capacity)
        cells += 2 * (len(jobs) + 1) * (capacity + 1)
        for other in range(slot, m):
            if leader[other] != slot:
                continue
            unused = capacity - residual[other]
            for k in range(len(jobs)):
                job = jobs[k]
                first = table[k, : residual[other] + 1]
                second = behind[k + 1, unused : capacity + 1]
                if pattern[other, job]:
                    inside[other, job] = value[other]
                    outside[other, job] = best_sum(first, second)
                elif weights[job] <= residual[other]:
                    last = residual[other] + 1 - weights[job]
                    inside[other, job] = worth[job] + best_sum(first[:last], second[weights[job] :])
            cells += len(jobs) * (residual[other] + 1)
    return cells


@kernel
def replaces(better: int, worse: int, weights: Ints, profits: Ints) -> bool:
    """Return whether a job has at most the weight and at least the profit of another."""
    return bool(weights[better] <= weights[worse] and profits[better] >= profits[worse])


@kernel
def exchange(domain: Flags, weights: Ints, profits: Ints, where: Ints) -> bool:
    """Remove dominated choices, and return whether there were any.

    If a job waits, a job that weighs at least as much for at most the profit need not be placed. If
    that one is placed, the other can be placed, too. Equal jobs are ranked by number.
    """
    m = domain.shape[0] - 1
    dropped = False
    for worse in range(len(weights)):
        if not domain[m, worse]:
            for better in range(worse):
                if domain[m, better] and replaces(better, worse, weights, profits):
                    domain[m, better] = False
                    dropped = True
        elif where[worse] != m:
            for better in range(worse):
                if where[better] == m and replaces(better, worse, weights, profits):
                    domain[:m, worse] = False
                    dropped = True
                    break
    return dropped


@kernel
def propagate(
    # Choices of each job: the slots, and the last row for not placed; reduced in place, shape
    # (slots + 1, jobs)
    domain: Flags,
    weights: Ints,
    profits: Ints,
    capacities: Ints,
    ordered: bool,  # whether larger slots must hold at least as much weight, see `tighten`
    residual: Ints,  # overwritten by the residual capacities that can be filled
    where: Ints,  # overwritten by the slot of each fixed job, or number of slots, -1 if it is free
) -> bool:
    """Remove infeasible and dominated choices of a node until nothing changes.

    Returned is whether every job has a choice and no slot is overfull.
    """
    m = len(capacities)
    changed = True
    while changed:
        changed = False
        assign(residual, capacities)
        for job in range(len(weights)):
            choices = 0
            where[job] = -1
            for slot in range(m + 1):
                if domain[slot, job]:
                    choices += 1
                    where[job] = slot
            if choices == 0:
                return False
            if choices > 1:
                where[job] = -1
            elif where[job] < m:
                residual[where[job]] -= weights[job]
        for slot in range(m):
            if residual[slot] < 0:
                return False
        changed = exchange(domain, weights, profits, where)
        tighten(domain[:m], weights, capacities, where, ordered, residual)
        for slot in range(m):
            if residual[slot] < 0:
                return False
        for job in range(len(weights)):
            if where[job] < 0:
                for slot in range(m):
                    if domain[slot, job] and weights[job] > residual[slot]:
                        domain[slot, job] = False
                        changed = True
    return True
