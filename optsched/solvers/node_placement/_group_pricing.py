"""Groups of jobs and leaves of least reduced cost; compiled.

A price is an integer, in units of 1 / `SCALE` switches, so that all sums are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Ints = NDArray[np.int64]

SCALE = 1 << 32
"""Units of a price that make one switch."""

NONE = -(1 << 60)
"""Value of a total that no selection has."""


class Selections(NamedTuple):
    """Selections of items: how many of each kind, their total size, and their value.

    Parameters
    ----------
    counts : int64 array, shape (selections, kinds)
        Items of each kind.
    totals : int64 array, shape (selections,)
        Total sizes.
    values : int64 array, shape (selections,)
        Total values.
    """

    counts: Ints
    totals: Ints
    values: Ints


@kernel
def knapsack(sizes: Ints, values: Ints, counts: Ints, most: int) -> Ints:
    """Return the tables of a knapsack with several items of each kind.

    Parameters
    ----------
    sizes, values, counts : int64 arrays, shape (kinds,)
        Size and value of an item of each kind, and the number of these.
    most : int
        Largest total size.

    Returns
    -------
    int64 array, shape (kinds + 1, most + 1)
        Largest value of items of the first kinds, by their number, with a total of exactly the
        second index; `NONE` if there are none.
    """
    tables = np.full((len(sizes) + 1, most + 1), NONE)
    tables[0, 0] = 0
    for kind in range(len(sizes)):
        size, value = sizes[kind], values[kind]
        for total in range(most + 1):
            best = tables[kind, total]
            for count in range(1, min(counts[kind], total // size) + 1):
                before = tables[kind, total - count * size]
                if before > NONE:
                    best = max(best, before + count * value)
            tables[kind + 1, total] = best
    return tables


@kernel
def selection(tables: Ints, sizes: Ints, values: Ints, total: int) -> Ints:
    """Return how many items of each kind make up the best selection of a total."""
    counts = np.zeros(len(sizes), np.int64)
    for kind in range(len(sizes) - 1, -1, -1):
        value = tables[kind + 1, total]
        count = 0
        while (
            tables[kind, total - count * sizes[kind]] == NONE
            or tables[kind, total - count * sizes[kind]] + count * values[kind] != value
        ):
            count += 1
        counts[kind] = count
        total -= count * sizes[kind]
    return counts


@kernel
def selections(
    tables: Ints, sizes: Ints, values: Ints, counts: Ints, least: Ints, most: int
) -> Selections:
    """Return all selections of at least a value, which depends on their total.

    Parameters
    ----------
    tables, sizes, values, counts : int64 arrays
        Knapsack and its tables, see `knapsack`.
    least : int64 array, shape (totals,)
        Least value of a selection of each total.
    most : int
        Largest number of selections; if there are more, one more than that is returned.
    """
    kinds = len(sizes)
    room = 64
    found = np.zeros((room, kinds), np.int64)
    totals, worth = np.zeros(room, np.int64), np.zeros(room, np.int64)
    number = 0
    chosen = np.zeros(kinds + 1, np.int64)
    left, value = np.zeros(kinds + 1, np.int64), np.zeros(kinds + 1, np.int64)
    for total in range(len(least)):
        if tables[kinds, total] == NONE or tables[kinds, total] < least[total]:
            continue
        # depth first from the last kind; left[k] and value[k] are before kind k - 1 is chosen
        kind = kinds
        left[kind], value[kind], chosen[kind - 1] = total, 0, -1
        while kind <= kinds:
            if kind == 0:
                if number == room:
                    room *= 2
                    more = np.zeros((room, kinds), np.int64)
                    more_totals, more_worth = np.zeros(room, np.int64), np.zeros(room, np.int64)
                    for i in range(number):
                        more_totals[i], more_worth[i] = totals[i], worth[i]
                        for k in range(kinds):
                            more[i, k] = found[i, k]
                    found, totals, worth = more, more_totals, more_worth
                for k in range(kinds):
                    found[number, k] = chosen[k]
                totals[number], worth[number] = total, value[0]
                number += 1
                if number > most:
                    return Selections(found[:number], totals[:number], worth[:number])
                kind = 1
                continue
            k = kind - 1
            chosen[k] += 1
            if chosen[k] > counts[k] or chosen[k] * sizes[k] > left[kind]:
                kind += 1
                continue
            rest = left[kind] - chosen[k] * sizes[k]
            got = value[kind] + chosen[k] * values[k]
            if tables[k, rest] > NONE and got + tables[k, rest] >= least[total]:
                left[k], value[k] = rest, got
                kind = k
                if k > 0:
                    chosen[k - 1] = -1
    return Selections(found[:number], totals[:number], worth[:number])


@kernel
def matches(
    jobs: Selections, leaves: Selections, capacities: Ints, most_cost: int, limit: int
) -> Ints:
    """Return the pairs of a selection of jobs and a smallest selection of leaves that holds it.

    Parameters
    ----------
    jobs, leaves : Selections
        Selections, each ordered by total.
    capacities : int64 array, shape (kinds,)
        Size of the leaves of each kind.
    most_cost : int
        Most that a pair costs, which is minus the sum of its values.
    limit : int
        Largest number of pairs; if there are more, one more than that is returned.

    Returns
    -------
    int64 array, shape (pairs, 2)
        Numbers of the two selections.
    """
    smallest = np.zeros(len(leaves.totals), np.int64)
    for place in range(len(smallest)):
        for kind in range(len(capacities)):
            if leaves.counts[place, kind] and (
                smallest[place] == 0 or capacities[kind] < smallest[place]
            ):
                smallest[place] = capacities[kind]
    largest = 0
    for kind in range(len(capacities)):
        largest = max(largest, capacities[kind])
    pairs = np.zeros((64, 2), np.int64)
    number = first = 0
    for one in range(len(jobs.totals)):
        total = jobs.totals[one]
        while first < len(smallest) and leaves.totals[first] < total:
            first += 1
        place = first
        while place < len(smallest) and leaves.totals[place] < total + largest:
            needed = leaves.totals[place] - smallest[place] < total
            if needed and -jobs.values[one] - leaves.values[place] <= most_cost:
                if number == len(pairs):
                    more = np.zeros((2 * number, 2), np.int64)
                    for i in range(number):
                        more[i, 0], more[i, 1] = pairs[i, 0], pairs[i, 1]
                    pairs = more
                pairs[number, 0], pairs[number, 1] = one, place
                number += 1
                if number > limit:
                    return pairs[:number]
            place += 1
    return pairs[:number]


def prepare() -> None:
    """Compile the kernels, or load them from the cache."""
    sizes, values, counts = np.array([1, 2]), np.array([-1, -2]), np.array([1, 1])
    tables = knapsack(sizes, values, counts, 3)
    selection(tables, sizes, values, 3)
    found = selections(tables, sizes, values, counts, np.full(4, NONE), 9)
    matches(found, found, sizes, 9, 9)
