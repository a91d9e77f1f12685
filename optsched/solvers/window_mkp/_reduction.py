"""Reduction of a window knapsack to relevant jobs and slots, sorted and in the largest units."""

from __future__ import annotations

import numpy as np

from optsched.arrays import Ints
from optsched.compiled import kernel

EXACT = 2.0**53
"""Bound below which products are exact in floating point."""


@kernel(allocates=False)
def more_efficient(a: int, b: int, weights: Ints, profits: Ints) -> bool:
    """Return whether job `a` precedes `b` by profit per weight, then weight, then number."""
    # in floating point, because products of large integers overflow
    left = float(profits[a]) * float(weights[b])
    right = float(profits[b]) * float(weights[a])
    if left != right:
        return left > right
    if weights[a] != weights[b]:
        return bool(weights[a] > weights[b])
    return a < b


@kernel(allocates=False)
def by_efficiency(jobs: Ints, weights: Ints, profits: Ints) -> None:
    """Sort job numbers in place, most efficient first."""
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


@kernel
def by_size(numbers: Ints, sizes: Ints) -> None:
    """Sort `numbers` in place by increasing size, then by number."""
    # of jobs of one profit, the lightest are the most efficient
    by_efficiency(numbers, sizes, np.ones(len(sizes), np.int64))


@kernel(allocates=False)
def assign(array: Ints, values: Ints) -> None:
    """Set every entry of an array, ``array[:] = values``."""
    # a loop, because numba compiles the assignment and its errors for seconds
    for k in range(len(array)):
        array[k] = values[k]


@kernel(allocates=False)
def total(values: Ints) -> int:
    found = 0
    for value in values:
        found += value
    return found


@kernel(allocates=False)
def common_divisor(values: Ints) -> int:
    """Return the greatest common divisor of positive integers, 1 for an empty array."""
    divisor = 0
    for value in values:
        while value:
            divisor, value = value, divisor % value
        if divisor == 1:
            break
    return max(1, divisor)


@kernel
def reduce(
    weights: Ints, profits: Ints, capacities: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints, int]:
    """Return the relevant jobs and slots, sorted, their weights, profits, capacities, and a unit.

    Left out are those excluded by assumptions (7) and (8), jobs without profit, and the smallest
    slots if there are more slots than jobs. Weights and capacities, at most the weight of all jobs,
    are in units of the greatest common divisor of weights; profits in that of profits, the unit.
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
    by_size(slots, capacities)
    slots = slots[max(0, count - len(jobs)) :]

    # loops, because numba compiles indexing by an array for a second
    kept_weights, kept_profits = np.empty_like(jobs), np.empty_like(jobs)
    for job in range(len(jobs)):
        kept_weights[job], kept_profits[job] = weights[jobs[job]], profits[jobs[job]]
    divisor, unit = common_divisor(kept_weights), common_divisor(kept_profits)
    total = 0
    for job in range(len(jobs)):
        kept_weights[job] //= divisor
        kept_profits[job] //= unit
        total += kept_weights[job]
    residual = np.empty_like(slots)
    for slot in range(len(slots)):
        residual[slot] = min(capacities[slots[slot]] // divisor, total)
    return jobs, slots, kept_weights, kept_profits, residual, unit
