"""One node of the search over columns: what is sure in it, its bound, and what that rules out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._bands.columns import Columns
from optsched.solvers.window_mkp._bands.knapsack import (
    INFEASIBLE,
    Bools,
    conditional_bounds,
    knapsack,
)
from optsched.solvers.window_mkp._reduction import Ints

PATIENCE = 3
"""Evaluations without a better bound before the steps are shortened."""

SHORTER = 0.6
"""How much shorter they are then."""

MOMENTUM = 0.7
"""Share of the last direction in the next."""

UNKNOWN = 1 << 62


class Instance(NamedTuple):
    """What is searched.

    Parameters
    ----------
    weights, profits : int64 arrays, shape (jobs,)
        The jobs.
    must : bool array, shape (jobs,)
        Those that must be placed.
    columns : Columns
        What each slot may hold.
    total, rank : int64 arrays, shape (columns,)
        Weight of each column, and its place among those of its slot.
    twin : int64 array, shape (slots,)
        An earlier slot that may hold the same, the last one; -1 if there is none.
    unit : int
        All profits are multiples of it.
    """

    weights: Ints
    profits: Ints
    must: Bools
    columns: Columns
    total: Ints
    rank: Ints
    twin: Ints
    unit: int


class Node(NamedTuple):
    """What is known of the node in hand.

    Parameters
    ----------
    alive, heaviest : int64 arrays, shape (slots,)
        How many columns of each slot are left, and the weight of the heaviest.
    best, best_column : int64 arrays, shape (slots,)
        Worth of its best column at the prices, and which one that is.
    home : int64 array, shape (jobs,)
        The slot all of whose columns have the job, -1 if there is none.
    possible, must, chosen : bool arrays, shape (jobs,)
        Whether any column has the job, whether it must be placed, whether the knapsack chose it.
    inside, outside : int64 arrays, shape (jobs,)
        What the knapsack loses with the job forced in, and with it left out.
    having, best_having : int64 arrays, shape (slots, jobs)
        How many columns of the slot have the job, and the worth of the best of them.
    value : int64 array, shape (columns,)
        Worth of each column at the prices.
    """

    alive: Ints
    heaviest: Ints
    best: Ints
    best_column: Ints
    home: Ints
    possible: Bools
    must: Bools
    chosen: Bools
    inside: Ints
    outside: Ints
    having: Ints
    best_having: Ints
    value: Ints


@kernel
def new_node(slots: int, jobs: int, columns: int) -> Node:
    """Return the space for a node."""
    return Node(
        np.empty(slots, np.int64),
        np.empty(slots, np.int64),
        np.empty(slots, np.int64),
        np.empty(slots, np.int64),
        np.empty(jobs, np.int64),
        np.empty(jobs, np.bool_),
        np.empty(jobs, np.bool_),
        np.empty(jobs, np.bool_),
        np.empty(jobs, np.int64),
        np.empty(jobs, np.int64),
        np.empty((slots, jobs), np.int64),
        np.empty((slots, jobs), np.int64),
        np.empty(columns, np.int64),
    )


@kernel
def survey(instance: Instance, alive: Ints, node: Node) -> None:
    """Count the columns of each slot, and those that have each job."""
    first, jobs = instance.columns.first, instance.columns.jobs
    node.alive[:] = 0
    node.heaviest[:] = 0
    node.having[:] = 0
    for column in alive:
        slot = instance.columns.slot[column]
        node.alive[slot] += 1
        node.heaviest[slot] = max(node.heaviest[slot], instance.total[column])
        for job in jobs[first[column] : first[column + 1]]:
            node.having[slot, job] += 1


@kernel
def settle_columns(instance: Instance, alive: Ints, node: Node) -> int:
    """Drop the columns with a job that another slot is sure to hold; return how many are kept.

    Of slots that may hold the same, the first has the column of lower rank. 0 is returned when a
    slot is left without columns, or a job without a slot that must have one.
    """
    first, jobs = instance.columns.first, instance.columns.jobs
    m = len(node.alive)
    lowest, highest = np.empty(m, np.int64), np.empty(m, np.int64)
    kept = len(alive)
    dropped = True
    while dropped:
        alive = alive[:kept]
        survey(instance, alive, node)
        if not find_homes(instance, node):
            return 0
        lowest[:], highest[:] = UNKNOWN, -1
        for column in alive:
            slot, rank = instance.columns.slot[column], instance.rank[column]
            lowest[slot], highest[slot] = min(lowest[slot], rank), max(highest[slot], rank)
        for slot in range(m):
            if instance.twin[slot] >= 0:
                lowest[slot] = max(lowest[slot], lowest[instance.twin[slot]])
        for slot in range(m - 1, -1, -1):
            before = instance.twin[slot]
            if before >= 0:
                highest[before] = min(highest[before], highest[slot])
        kept = 0
        for column in alive:
            slot = instance.columns.slot[column]
            fits = lowest[slot] <= instance.rank[column] <= highest[slot]
            for job in jobs[first[column] : first[column + 1]]:
                if node.home[job] >= 0 and node.home[job] != slot:
                    fits = False
                    break
            if fits:
                alive[kept] = column
                kept += 1
        dropped = kept < len(alive)
    return kept


@kernel
def find_homes(instance: Instance, node: Node) -> bool:
    """Note the jobs that a slot is sure to hold; return whether all can be met."""
    m, n = node.having.shape
    if node.alive.min() == 0:
        return False
    for job in range(n):
        node.home[job] = -1
        node.possible[job] = False
        for slot in range(m):
            if node.having[slot, job] > 0:
                node.possible[job] = True
                if node.having[slot, job] == node.alive[slot]:
                    if node.home[job] >= 0:
                        return False
                    node.home[job] = slot
        node.must[job] = instance.must[job] or node.home[job] >= 0
        if node.must[job] and not node.possible[job]:
            return False
    return True


@kernel
def value_columns(instance: Instance, alive: Ints, price: Ints, node: Node) -> int:
    """Value the columns at the prices; return the sum of the best ones of all slots."""
    first, jobs = instance.columns.first, instance.columns.jobs
    node.best[:] = -1
    for column in alive:
        value = 0
        for job in jobs[first[column] : first[column + 1]]:
            value += price[job]
        node.value[column] = value
        slot = instance.columns.slot[column]
        if value > node.best[slot]:
            node.best[slot], node.best_column[slot] = value, column
    return int(node.best.sum())


@kernel
def choose(instance: Instance, price: Ints, node: Node) -> tuple[int, int]:
    """Choose jobs in one knapsack, as large as the slots can be filled, at profit less price."""
    worth = np.where(node.possible, instance.profits - price, 0)
    capacity = node.heaviest.sum()
    slack = instance.unit // 32
    return knapsack(worth, instance.weights, capacity, node.must, slack, node.chosen)


@kernel
def descend(
    instance: Instance,
    alive: Ints,
    price: Ints,
    node: Node,
    target: int,
    evaluations: int,
    placement: Ints,
) -> tuple[int, int, int]:
    """Improve the prices of a node; return its bound, a profit that was found, and steps taken."""
    n = len(price)
    first, jobs = instance.columns.first, instance.columns.jobs
    best_bound, best_price = UNKNOWN, price.copy()
    direction = np.zeros(n)
    holders = np.empty(n, np.int64)
    length = 1.0
    stalled, found, steps = 0, -1, 0
    for _ in range(evaluations):
        worth, more = choose(instance, price, node)
        steps += more
        if worth == INFEASIBLE:
            return INFEASIBLE, found, steps
        bound = worth + value_columns(instance, alive, price, node)
        stalled += 1
        if bound < best_bound:
            best_bound, stalled = bound, 0
            best_price[:] = price
        if best_bound < target:
            break
        holders[:] = 0
        for column in node.best_column:
            for job in jobs[first[column] : first[column + 1]]:
                holders[job] += 1
        norm = 0.0
        agree = True
        for job in range(n):
            if node.home[job] >= 0 or not node.possible[job]:
                direction[job] = 0.0
                continue
            slope = holders[job] - (1 if node.chosen[job] else 0)
            agree = agree and slope == 0
            direction[job] = slope + MOMENTUM * direction[job]
            norm += direction[job] * direction[job]
        if agree:
            # the slots want just the jobs that are chosen: a placement, though not always the best
            # so far, since the knapsack may stop before its optimum
            profit = 0
            for column in node.best_column:
                for job in jobs[first[column] : first[column + 1]]:
                    profit += instance.profits[job]
            if profit >= max(target, found + 1):
                found = profit
                placement[:] = -1
                for slot, column in enumerate(node.best_column):
                    placement[jobs[first[column] : first[column + 1]]] = slot
            if profit > bound - instance.unit:
                return bound, found, steps
        if norm == 0.0:
            break
        if stalled == PATIENCE:
            length *= SHORTER
            stalled = 0
        step = length * (bound - target + instance.unit) / norm
        for job in range(n):
            if node.home[job] < 0 and node.possible[job]:
                price[job] = max(0, price[job] - np.int64(np.rint(step * direction[job])))
    price[:] = best_price
    return best_bound, found, steps


@kernel
def narrow(
    instance: Instance, alive: Ints, price: Ints, node: Node, bound: int, target: int
) -> int:
    """Drop columns with which the bound falls below `target`; return how many are kept, in front.

    A column lowers the bound by what it is worth less than the best of its slot, and by what the
    choice of jobs is worth less with any one of its jobs in it.
    """
    first, jobs = instance.columns.first, instance.columns.jobs
    value_columns(instance, alive, price, node)
    worth, _ = choose(instance, price, node)
    conditional_bounds(
        np.where(node.possible, instance.profits - price, 0), instance.weights,
        node.heaviest.sum(), node.must, worth, node.inside, node.outside,
    )  # fmt: skip
    # what the choice of jobs loses with each job in it, and with each left out
    node.inside[:] = worth - node.inside
    node.outside[:] = worth - node.outside
    node.best_having[:] = -1
    kept = 0
    for column in alive:
        slot = instance.columns.slot[column]
        loss = 0
        for job in jobs[first[column] : first[column + 1]]:
            loss = max(loss, node.inside[job])
        if bound - (node.best[slot] - node.value[column]) - loss >= target:
            alive[kept] = column
            kept += 1
            for job in jobs[first[column] : first[column + 1]]:
                node.best_having[slot, job] = max(node.best_having[slot, job], node.value[column])
    return kept
