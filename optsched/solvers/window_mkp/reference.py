"""The algorithms of this package in plain Python, for reading; the kernels must agree with them.

Weights, profits and capacities are sequences of integers. A placement is a list with the slot of
each job, `NOT_PLACED` for none. Jobs are taken by decreasing profit per weight, larger jobs first
among equals; slots by increasing capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

NOT_PLACED = -1

Numbers = Sequence[int]


def jobs_in_order(weights: Numbers, profits: Numbers) -> list[int]:
    """Return the numbers of the jobs, most efficient first, then larger, then by number."""
    return sorted(
        range(len(weights)), key=lambda j: (-Fraction(profits[j], weights[j]), -weights[j], j)
    )


def slots_in_order(capacities: Numbers) -> list[int]:
    """Return the numbers of the slots, smallest first, then by number."""
    return sorted(range(len(capacities)), key=lambda i: (capacities[i], i))


def greedy(weights: Numbers, profits: Numbers, capacities: Numbers) -> list[int]:
    """Fill slot after slot with the jobs that still fit (Algorithm 3, once for each slot)."""
    placement = [NOT_PLACED] * len(weights)
    jobs = jobs_in_order(weights, profits)
    for slot in slots_in_order(capacities):
        room = capacities[slot]
        for job in jobs:
            if placement[job] == NOT_PLACED and weights[job] <= room:
                placement[job] = slot
                room -= weights[job]
    return placement


def greedy_exchange(weights: Numbers, profits: Numbers, capacities: Numbers) -> list[int]:
    """Improve GREEDY by the two exchanges of Martello and Toth (section III.B.2)."""
    placement = greedy(weights, profits, capacities)
    jobs = jobs_in_order(weights, profits)
    room = list(capacities)
    for job, slot in enumerate(placement):
        if slot != NOT_PLACED:
            room[slot] -= weights[job]

    # two jobs in different slots change places, if a waiting job then fits beside the smaller one
    for first in range(len(jobs)):
        for second in range(first + 1, len(jobs)):
            large, small = jobs[first], jobs[second]
            if weights[large] < weights[small]:
                large, small = small, large
            here, there = placement[large], placement[small]
            more = weights[large] - weights[small]
            if NOT_PLACED in (here, there) or here == there or more > room[there]:
                continue
            fitting = [
                job
                for job in jobs
                if placement[job] == NOT_PLACED and weights[job] <= room[here] + more
            ]
            if fitting:
                added = max(fitting, key=lambda job: profits[job])
                placement[large], placement[small], placement[added] = there, here, here
                room[there] -= more
                room[here] += more - weights[added]

    # each job in turn, the least efficient first, makes way for waiting jobs of more profit
    for job in reversed(jobs):
        slot = placement[job]
        if slot == NOT_PLACED:
            continue
        left = room[slot] + weights[job]
        instead = []
        for other in jobs:
            if placement[other] == NOT_PLACED and weights[other] <= left:
                instead.append(other)
                left -= weights[other]
        if sum(profits[other] for other in instead) > profits[job]:
            placement[job] = NOT_PLACED
            for other in instead:
                placement[other] = slot
            room[slot] = left
    return placement


def dantzig_bound(jobs: Numbers, weights: Numbers, profits: Numbers, room: Numbers) -> int:
    """Bound the profit of `jobs`, in order, by one slot as large as all, the last job cut."""
    if not jobs:
        return 0
    smallest = min(weights[job] for job in jobs)
    total = sum(left for left in room if left >= smallest)
    bound = 0
    for job in jobs:
        if weights[job] > max(room):
            continue
        if weights[job] > total:
            return bound + profits[job] * total // weights[job]
        total -= weights[job]
        bound += profits[job]
    return bound


def depth_first(weights: Numbers, profits: Numbers, capacities: Numbers) -> list[int]:
    """Put each job into each slot in turn, then leave it out; cut what the bound rules out.

    Section III.B.1 and Figure 3, after the reductions (7) and (8).
    """
    jobs = [
        job
        for job in jobs_in_order(weights, profits)
        if profits[job] > 0 and weights[job] <= max(capacities, default=0)
    ]
    smallest = min((weights[job] for job in jobs), default=0)
    slots = [slot for slot in slots_in_order(capacities) if capacities[slot] >= smallest]
    slots = slots[max(0, len(slots) - len(jobs)) :]
    best: list[int] = [NOT_PLACED] * len(weights)
    best_profit = 0
    placement = list(best)
    room = [capacities[slot] for slot in slots]

    def branch(depth: int, profit: int) -> None:
        nonlocal best, best_profit
        if profit > best_profit:
            best, best_profit = list(placement), profit
        if profit + dantzig_bound(jobs[depth:], weights, profits, room) <= best_profit:
            return
        job = jobs[depth]
        for number, slot in enumerate(slots):
            # of slots with equal room the first stands for all
            if weights[job] <= room[number] and room.index(room[number]) == number:
                placement[job] = slot
                room[number] -= weights[job]
                branch(depth + 1, profit + profits[job])
                room[number] += weights[job]
                placement[job] = NOT_PLACED
        branch(depth + 1, profit)

    branch(0, 0)
    return best
