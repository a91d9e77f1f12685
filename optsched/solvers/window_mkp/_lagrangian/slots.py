"""What each slot can hold: best worth by dynamic programming, reachable sums as bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.window_mkp._bands.knapsack import INFEASIBLE, Bools
from optsched.solvers.window_mkp._reduction import Ints

WORD = 64

LARGEST_SET = 1 << 17
"""Sums up to here are kept as bits; larger slots count as if every sum could be reached."""

TABLE = 1 << 21
"""Cells of one table at most; weights are rounded down to a coarser unit beyond that."""


@kernel
def add_weight(bits: NDArray[np.uint64], weight: int) -> None:
    """Add to a set of sums (bit s of the words) every sum plus `weight`, in place."""
    skip = weight // WORD
    shift = np.uint64(weight % WORD)
    carry = np.uint64(WORD) - shift
    for word in range(len(bits) - 1, skip - 1, -1):
        moved = bits[word - skip] << shift
        if shift and word > skip:
            moved |= bits[word - skip - 1] >> carry
        bits[word] |= moved


@kernel
def holds(bits: NDArray[np.uint64], total: int) -> bool:
    """Whether `total` is in a set of sums."""
    return (bits[total // WORD] >> np.uint64(total % WORD)) & np.uint64(1) != 0


@kernel
def largest_sum(slot: int, allowed: Bools, weights: Ints, where: Ints, room: int) -> int:
    """Return the largest total within `room` that the free jobs allowed in a slot can reach."""
    if room > LARGEST_SET:
        return room
    bits = np.zeros(room // WORD + 1, np.uint64)
    bits[0] = 1
    for job in range(len(weights)):
        if where[job] < 0 and allowed[slot, job]:
            add_weight(bits, weights[job])
    while not holds(bits, room):
        room -= 1
    return room


@kernel
def tighten(
    allowed: Bools, weights: Ints, capacities: Ints, where: Ints, ordered: bool, room: Ints
) -> None:
    """Reduce the room of each slot to what can be filled; below 0 if its jobs are too many.

    The contents of two slots can change places if the larger slot holds less. So one may ask that
    larger slots never hold less (`ordered`): what a slot can hold at most then limits all slots
    that are smaller.

    Parameters
    ----------
    allowed : bool array, shape (slots, jobs)
        The jobs that may go into each slot.
    weights, capacities : int64 arrays, shapes (jobs,) and (slots,)
        As in the problem; capacities do not decrease.
    where : int64 array, shape (jobs,)
        Below 0 for the jobs that are free.
    ordered : bool
        Whether larger slots must hold no less.
    room : int64 array, shape (slots,)
        Capacity that the settled jobs leave; overwritten.
    """
    limit, next_limit = capacities[-1], capacities[-1]
    for slot in range(len(room) - 1, -1, -1):
        if slot + 1 < len(room) and capacities[slot] < capacities[slot + 1]:
            limit = next_limit
        settled = capacities[slot] - room[slot]
        if ordered:
            room[slot] = min(room[slot], limit - settled)
        if room[slot] >= 0:
            room[slot] = largest_sum(slot, allowed, weights, where, room[slot])
        next_limit = min(next_limit, settled + room[slot])


@kernel
def leaders(allowed: Bools) -> Ints:
    """Return for each slot the first slot with the same allowed jobs: one table serves both."""
    m = len(allowed)
    leader = np.arange(m)
    for slot in range(m):
        for other in range(slot):
            if leader[other] == other and np.array_equal(allowed[slot], allowed[other]):
                leader[slot] = other
                break
    return leader


@kernel
def coarseness(jobs: int, capacity: int) -> int:
    """Return what weights are divided by, so that a table of that size is small enough.

    Weights and capacities are rounded down to multiples of it; 1 leaves them as they are. Then
    every set that fits still fits, and what the table says is a bound.
    """
    return 1 + (jobs + 1) * (capacity + 1) // TABLE


@kernel
def fill_forward(table: Ints, worth: Ints, weights: Ints, jobs: Ints, capacity: int) -> None:
    """Fill ``table[k, c]`` with the most worth of the first k of `jobs` within capacity c."""
    table[0, : capacity + 1] = 0
    for k in range(len(jobs)):
        gain, weight = worth[jobs[k]], weights[jobs[k]]
        if gain <= 0 or weight > capacity:
            table[k + 1, : capacity + 1] = table[k, : capacity + 1]
            continue
        table[k + 1, :weight] = table[k, :weight]
        without = table[k, weight : capacity + 1]
        within = table[k, : capacity + 1 - weight]
        after = table[k + 1, weight : capacity + 1]
        for c in range(len(after)):
            after[c] = max(without[c], within[c] + gain)


@kernel
def fill_backward(table: Ints, worth: Ints, weights: Ints, jobs: Ints, capacity: int) -> None:
    """Fill ``table[k, c]`` with the most worth of the k-th and later `jobs` where c is in use."""
    count = len(jobs)
    table[count, : capacity + 1] = 0
    for k in range(count - 1, -1, -1):
        gain, weight = worth[jobs[k]], weights[jobs[k]]
        if gain <= 0 or weight > capacity:
            table[k, : capacity + 1] = table[k + 1, : capacity + 1]
            continue
        last = capacity + 1 - weight
        table[k, last : capacity + 1] = table[k + 1, last : capacity + 1]
        without = table[k + 1, :last]
        within = table[k + 1, weight : capacity + 1]
        after = table[k, :last]
        for c in range(last):
            after[c] = max(without[c], within[c] + gain)


@kernel
def shared_capacity(slot: int, leader: Ints, room: Ints) -> int:
    """Return the largest room of the slots that share the table of `slot`."""
    largest = 0
    for other in range(slot, len(room)):
        if leader[other] == slot:
            largest = max(largest, room[other])
    return largest


@kernel
def best_patterns(
    worth: Ints,
    weights: Ints,
    room: Ints,
    allowed: Bools,
    leader: Ints,
    table: Ints,
    pattern: Bools,
    value: Ints,
) -> int:
    """Find the set of jobs of most worth for each slot by itself.

    Parameters
    ----------
    worth, weights : int64 arrays, shape (jobs,)
        Worth and weight of each job.
    room : int64 array, shape (slots,)
        Capacity of each slot.
    allowed : bool array, shape (slots, jobs)
        The jobs that may go into each slot.
    leader : int64 array, shape (slots,)
        As `leaders` returns it.
    table : int64 array, shape (jobs + 1, room.max() + 1)
        Working space.
    pattern : bool array, shape (slots, jobs)
        Overwritten by the set of each slot.
    value : int64 array, shape (slots,)
        Overwritten by its worth.

    Returns
    -------
    int
        Cells of the tables that were filled.
    """
    m = len(room)
    cells = 0
    pattern[:] = False
    for slot in range(m):
        if leader[slot] != slot:
            continue
        capacity = shared_capacity(slot, leader, room)
        jobs = np.flatnonzero(allowed[slot])
        fill_forward(table, worth, weights, jobs, capacity)
        cells += (len(jobs) + 1) * (capacity + 1)
        for other in range(slot, m):
            if leader[other] != slot:
                continue
            left = room[other]
            value[other] = table[len(jobs), left]
            for k in range(len(jobs) - 1, -1, -1):
                if table[k + 1, left] != table[k, left]:
                    pattern[other, jobs[k]] = True
                    left -= weights[jobs[k]]
    return cells


@kernel
def best_sum(first: Ints, second: Ints) -> int:
    """Return the largest ``first[c] + second[c]``."""
    best = 0
    for c in range(len(first)):
        best = max(best, first[c] + second[c])
    return best


@kernel
def conditional_patterns(
    worth: Ints,
    weights: Ints,
    room: Ints,
    allowed: Bools,
    leader: Ints,
    pattern: Bools,
    value: Ints,
    table: Ints,
    inside: Ints,
    outside: Ints,
) -> int:
    """Find the most worth of each slot with each job forced in, and with it left out.

    Parameters
    ----------
    worth, weights, room, allowed, leader, table
        As for `best_patterns`.
    pattern, value
        As `best_patterns` leaves them.
    inside, outside : int64 array, shape (slots, jobs)
        Overwritten by the answers.

    Returns
    -------
    int
        Cells of the tables that were looked at.
    """
    m = len(room)
    cells = 0
    behind = np.empty_like(table)
    for slot in range(m):
        inside[slot] = INFEASIBLE
        outside[slot] = value[slot]
    for slot in range(m):
        if leader[slot] != slot:
            continue
        capacity = shared_capacity(slot, leader, room)
        jobs = np.flatnonzero(allowed[slot])
        fill_forward(table, worth, weights, jobs, capacity)
        fill_backward(behind, worth, weights, jobs, capacity)
        cells += 2 * (len(jobs) + 1) * (capacity + 1)
        for other in range(slot, m):
            if leader[other] != slot:
                continue
            unused = capacity - room[other]
            for k in range(len(jobs)):
                job = jobs[k]
                first, second = table[k, : room[other] + 1], behind[k + 1, unused : capacity + 1]
                if pattern[other, job]:
                    inside[other, job] = value[other]
                    outside[other, job] = best_sum(first, second)
                elif weights[job] <= room[other]:
                    last = room[other] + 1 - weights[job]
                    inside[other, job] = worth[job] + best_sum(first[:last], second[weights[job] :])
            cells += len(jobs) * (room[other] + 1)
    return cells
