"""Reference implementations in plain Python, which the kernels must agree with.

Weights, profits and capacities are sequences of integers. A placement is a list with the slot of
each job, or `NOT_PLACED`. Jobs are ordered by decreasing profit per weight, then by decreasing
weight; slots by increasing capacity.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

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
        residual = capacities[slot]
        for job in jobs:
            if placement[job] == NOT_PLACED and weights[job] <= residual:
                placement[job] = slot
                residual -= weights[job]
    return placement


def greedy_exchange(weights: Numbers, profits: Numbers, capacities: Numbers) -> list[int]:
    """Improve GREEDY by the two exchanges of Martello and Toth (section III.B.2)."""
    placement, jobs = greedy(weights, profits, capacities), jobs_in_order(weights, profits)
    residual = list(capacities)
    for job, slot in enumerate(placement):
        if slot != NOT_PLACED:
            residual[slot] -= weights[job]

    def waiting(room: int) -> list[int]:
        return [job for job in jobs if placement[job] == NOT_PLACED and weights[job] <= room]

    # two jobs in different slots change places, if a waiting job then fits beside the smaller one
    for large, small in combinations(jobs, 2):
        if weights[large] < weights[small]:
            large, small = small, large
        here, there = placement[large], placement[small]
        more = weights[large] - weights[small]
        if NOT_PLACED in (here, there) or here == there or more > residual[there]:
            continue
        if fitting := waiting(residual[here] + more):
            added = max(fitting, key=lambda job: profits[job])
            placement[large], placement[small], placement[added] = there, here, here
            residual[there] -= more
            residual[here] += more - weights[added]

    # each job in turn, the least efficient first, makes way for waiting jobs of more profit
    for job in reversed(jobs):
        slot, instead = placement[job], []
        if slot == NOT_PLACED:
            continue
        remaining = residual[slot] + weights[job]
        for other in waiting(remaining):
            if weights[other] <= remaining:
                instead.append(other)
                remaining -= weights[other]
        if sum(profits[other] for other in instead) > profits[job]:
            placement[job], residual[slot] = NOT_PLACED, remaining
            for other in instead:
                placement[other] = slot
    return placement


def depth_first(weights: Numbers, profits: Numbers, capacities: Numbers) -> list[int]:
    """Put each job into each slot in turn, then leave it waiting; prune by the surrogate bound.

    Section III.B.1 and Figure 3 of Yang et al. 2014, after the reductions (7) and (8).
    """
    largest = max(capacities, default=0)
    ordered = jobs_in_order(weights, profits)
    jobs = [job for job in ordered if profits[job] > 0 and weights[job] <= largest]
    smallest = min((weights[job] for job in jobs), default=0)
    slots = [slot for slot in slots_in_order(capacities) if capacities[slot] >= smallest]
    slots = slots[max(0, len(slots) - len(jobs)) :]
    residual, placement = [capacities[slot] for slot in slots], [NOT_PLACED] * len(weights)
    best = 0, list(placement)

    def bound(rest: Numbers) -> int:
        """Bound the profit of jobs, in order, by the linear relaxation of one merged slot."""
        total, found = sum(residual), 0
        for job in rest:
            if weights[job] > total:
                return found + profits[job] * total // weights[job]
            total -= weights[job]
            found += profits[job]
        return found

    def branch(depth: int, profit: int) -> None:
        nonlocal best
        if profit > best[0]:
            best = profit, list(placement)
        if profit + bound(jobs[depth:]) <= best[0]:
            return
        job = jobs[depth]
        for number, slot in enumerate(slots):
            # symmetry breaking: of slots with equal residual capacity only the first is tried
            if weights[job] <= residual[number] and residual.index(residual[number]) == number:
                placement[job] = slot
                residual[number] -= weights[job]
                branch(depth + 1, profit + profits[job])
                residual[number] += weights[job]
                placement[job] = NOT_PLACED
        branch(depth + 1, profit)

    branch(0, 0)
    return best[1]
