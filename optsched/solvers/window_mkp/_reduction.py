"""The jobs and slots that matter, in the order the algorithms want them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True)
def more_efficient(a: int, b: int, weights: Ints, profits: Ints) -> bool:
    """Whether job `a` comes before `b`: by profit per weight, then weight, then number."""
    left, right = profits[a] * weights[b], profits[b] * weights[a]
    if left != right:
        return left > right
    if weights[a] != weights[b]:
        return weights[a] > weights[b]
    return a < b


@njit(cache=True)
def by_efficiency(jobs: Ints, weights: Ints, profits: Ints) -> None:
    """Sort the job numbers `jobs` in place, most efficient first (shell sort)."""
    stride = 1
    while 3 * stride < len(jobs):
        stride = 3 * stride + 1
    while stride > 0:
        for end in range(stride, len(jobs)):
            job, place = jobs[end], end
            while place >= stride and more_efficient(job, jobs[place - stride], weights, profits):
                jobs[place] = jobs[place - stride]
                place -= stride
            jobs[place] = job
        stride //= 3


@njit(cache=True)
def by_capacity(slots: Ints, capacities: Ints) -> None:
    """Sort the slot numbers `slots` in place, smallest slot first, ties by number (shell sort)."""
    stride = 1
    while 3 * stride < len(slots):
        stride = 3 * stride + 1
    while stride > 0:
        for end in range(stride, len(slots)):
            slot, place = slots[end], end
            while place >= stride:
                other = slots[place - stride]
                if capacities[other] < capacities[slot]:
                    break
                if capacities[other] == capacities[slot] and other < slot:
                    break
                slots[place] = other
                place -= stride
            slots[place] = slot
        stride //= 3


@njit(cache=True)
def reduce(weights: Ints, profits: Ints, capacities: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of the jobs and slots left by assumptions (7) and (8), both sorted.

    Jobs without profit go too, and where there are more slots than jobs, the smallest slots.
    """
    largest = 0
    for capacity in capacities:
        largest = max(largest, capacity)
    jobs = np.empty(len(weights), np.int64)
    count = 0
    smallest = largest + 1
    for job in range(len(weights)):
        if profits[job] > 0 and weights[job] <= largest:
            jobs[count] = job
            count += 1
            smallest = min(smallest, weights[job])
    jobs = jobs[:count]
    slots = np.empty(len(capacities), np.int64)
    count = 0
    for slot in range(len(capacities)):
        if capacities[slot] >= smallest:
            slots[count] = slot
            count += 1
    slots = slots[:count]
    by_efficiency(jobs, weights, profits)
    by_capacity(slots, capacities)
    return jobs, slots[max(0, len(slots) - len(jobs)) :]
