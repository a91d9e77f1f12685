"""Columns that each slot may hold, and the search node over them.

A node propagates, bounds with multipliers, and fixes variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.knapsacks import (
    CELLS_PER_STEP,
    INFEASIBLE,
    conditional_bounds,
    fill_backward,
    knapsack,
    leaders,
    shared_capacity,
)
from optsched.solvers.window_mkp._reduction import assign, total

TOO_MANY = -1


class Columns(NamedTuple):
    """Sets of jobs for slots, stored slot by slot."""

    slot: Ints
    first: Ints  # offsets of the columns in `jobs`, shape (columns + 1,)
    jobs: Ints


def list_columns(
    multipliers: Ints,
    weights: Ints,
    profits: Ints,
    residual: Ints,
    allowed: Flags,  # whether a job may go into a slot, shape (slots, jobs)
    must: Flags,  # whether a job must be placed
    target: int,  # least profit of a placement
    scale: int,  # divisor of weights and capacities in tables; 1 if the tables are small enough
    columns: Columns,  # overwritten; the length of its arrays limits the number of columns
) -> tuple[int, int]:
    """Enumerate the columns that a slot may hold in a placement of at least a given profit.

    The bound of a placement is that of the Lagrangian decomposition: the optimum of one knapsack of
    jobs at their reduced profits, plus the best column of each slot at the multipliers. A column
    whose value is below the best one of its slot lowers the bound by the difference. There is no
    placement if a slot has no column. Returned are the number of columns, or `TOO_MANY`, and cells.
    """
    m, n = allowed.shape
    leader = leaders(allowed)
    coarse, coarse_room = weights // scale, residual // scale
    table = np.empty((n + 1, int(coarse_room.max()) + 1), np.int64)
    chosen = np.empty(n, np.bool_)
    slack, steps = knapsack(profits - multipliers, weights, int(residual.sum()), must, 0, chosen)
    cells = CELLS_PER_STEP * steps
    if slack == INFEASIBLE:
        return 0, cells
    slack -= target
    count = 0
    columns.first[0] = 0
    for listing in (False, True):
        for lead in range(m):
            if leader[lead] != lead:
                continue
            jobs = np.flatnonzero(allowed[lead])
            size = shared_capacity(lead, leader, coarse_room)
            fill_backward(table, multipliers, coarse, jobs, size)
            cells += len(jobs) * (size + 1)
            for slot in range(lead, m):
                if leader[slot] != lead:
                    continue
                unused = size - int(coarse_room[slot])
                if not listing:
                    slack += int(table[0, unused])
                elif slack >= 0:
                    least = int(table[0, unused]) - slack
                    count, looked_at = list_sets(
                        slot, int(residual[slot]), unused, least, table, jobs,
                        multipliers, weights, coarse, columns, count,
                    )  # fmt: skip
                    cells += looked_at
                    if count == TOO_MANY:
                        return TOO_MANY, cells
    return count, cells


@kernel
def list_sets(
    slot: int,
    residual: int,
    unused: int,
    least: int,
    table: Ints,
    jobs: Ints,
    multipliers: Ints,
    weights: Ints,
    coarse: Ints,
    columns: Columns,
    count: int,
) -> tuple[int, int]:
    """Enumerate the sets of `jobs` for one slot with a value of at least `least`.

    The table bounds the value that the k-th and later jobs can add. So every partial set leads to a
    complete one, except by rounding in a coarse table.
    """
    cells = 0
    deepest = len(jobs) + 1
    # a set of `depth` jobs, and the index in `jobs` from which on it may grow
    place, in_use = np.empty(deepest + 1, np.int64), np.empty(deepest + 1, np.int64)
    remaining, value = np.empty(deepest + 1, np.int64), np.empty(deepest + 1, np.int64)
    member = np.empty(deepest + 1, np.int64)
    depth = 0
    place[0], in_use[0], remaining[0], value[0] = 0, unused, residual, 0
    while depth >= 0:
        cells += 1
        k = place[depth]
        if value[depth] + table[k, in_use[depth]] < least:
            depth -= 1
        elif k == len(jobs):
            end = columns.first[count] + depth
            if count == len(columns.slot) or end > len(columns.jobs):
                return TOO_MANY, cells
            assign(columns.jobs[columns.first[count] : end], member)
            columns.slot[count] = slot
            count += 1
            columns.first[count] = end
            depth -= 1
        else:
            place[depth] = k + 1
            job = jobs[k]
            if weights[job] <= remaining[depth]:
                member[depth] = job
                place[depth + 1] = k + 1
                in_use[depth + 1] = in_use[depth] + coarse[job]
                remaining[depth + 1] = remaining[depth] - weights[job]
                value[depth + 1] = value[depth] + multipliers[job]
                depth += 1
    return count, cells


PATIENCE = 3
"""Evaluations without a better bound before steps are shortened."""

SHORTER = 0.6
"""Factor by which steps are shortened."""

MOMENTUM = 0.7
"""Weight of the previous direction in the next one."""

UNKNOWN = 1 << 62


class Instance(NamedTuple):
    """Instance of a column search."""

    weights: Ints
    profits: Ints
    must: Flags  # whether a job must be placed, shape (jobs,)
    columns: Columns  # columns of all slots
    # Weight of each column, and its rank among those of its slot, shape (columns,)
    total: Ints
    rank: Ints
    twin: Ints  # last earlier slot with the same columns, -1 without one, shape (slots,)
    unit: int  # common divisor of all profits


class Node(NamedTuple):
    """Bounds and counts of the current search node."""

    # Number of remaining columns of each slot, and the largest weight of these, shape
    # (slots,)
    alive: Ints
    heaviest: Ints
    # Best value of a column at the multipliers, and the number of that column, shape (slots,)
    best: Ints
    best_column: Ints
    home: Ints  # slot all of whose columns contain the job, -1 without one, shape (jobs,)
    # Whether any column contains the job, whether the job must be placed, and whether the
    # knapsack contains it, shape (jobs,)
    possible: Flags
    must: Flags
    chosen: Flags
    # Loss of the knapsack with the job forced in, and with the job forced out, shape (jobs,)
    inside: Ints
    outside: Ints
    worth: Ints  # reduced profits of the jobs, 0 for jobs without columns, shape (jobs,)
    # Number of columns of the slot that contain the job, and the best value of these, shape
    # (slots, jobs)
    having: Ints
    best_having: Ints
    value: Ints  # value of each column at the multipliers, shape (columns,)


def new_node(slots: int, jobs: int, columns: int) -> Node:
    """Return the working space of a search node."""
    alive, heaviest, best, best_column = np.empty((4, slots), np.int64)
    home, inside, outside, worth = np.empty((4, jobs), np.int64)
    possible, must, chosen = np.empty((3, jobs), np.bool_)
    having, best_having = np.empty((2, slots, jobs), np.int64)
    return Node(
        *(alive, heaviest, best, best_column, home, possible, must, chosen),
        *(inside, outside, worth, having, best_having, np.empty(columns, np.int64)),
    )


@kernel
def count_columns(instance: Instance, alive: Ints, node: Node) -> None:
    """Count the columns of each slot, in total and by job."""
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
def propagate_columns(instance: Instance, alive: Ints, node: Node) -> int:
    """Remove columns in conflict with jobs whose slot is known; return the number kept.

    Of slots with the same columns, the first takes the column of lower rank (symmetry breaking).
    The result is 0 if a slot has no columns, or if a job that must be placed is in no column.
    """
    first, jobs = instance.columns.first, instance.columns.jobs
    m = len(node.alive)
    lowest, highest = np.empty(m, np.int64), np.empty(m, np.int64)
    kept = len(alive)
    dropped = True
    while dropped:
        alive = alive[:kept]
        count_columns(instance, alive, node)
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
    """Find the jobs whose slot is known; return whether the node is feasible."""
    m, n = node.having.shape
    for slot in range(m):
        if node.alive[slot] == 0:
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
def value_columns(instance: Instance, alive: Ints, multipliers: Ints, node: Node) -> int:
    """Compute the values of columns at the multipliers; return the sum of best values."""
    first, jobs = instance.columns.first, instance.columns.jobs
    node.best[:] = -1
    for column in alive:
        value = 0
        for job in jobs[first[column] : first[column + 1]]:
            value += multipliers[job]
        node.value[column] = value
        slot = instance.columns.slot[column]
        if value > node.best[slot]:
            node.best[slot], node.best_column[slot] = value, column
    return total(node.best)


@kernel
def choose(instance: Instance, multipliers: Ints, node: Node) -> tuple[int, int]:
    """Solve the knapsack of jobs at reduced profits, as large as the heaviest columns together."""
    # a loop, because numba compiles expressions of arrays for seconds
    for job in range(len(multipliers)):
        reduced = instance.profits[job] - multipliers[job]
        node.worth[job] = reduced if node.possible[job] else 0
    slack = instance.unit // 32
    return knapsack(
        node.worth, instance.weights, total(node.heaviest), node.must, slack, node.chosen
    )


@kernel
def descend(
    instance: Instance,
    alive: Ints,
    multipliers: Ints,
    node: Node,
    target: int,
    evaluations: int,
    placement: Ints,
) -> tuple[int, int, int]:
    """Improve the multipliers of a node; return its bound, the profit of a placement, and steps."""
    n = len(multipliers)
    first, jobs = instance.columns.first, instance.columns.jobs
    best_bound, best_multipliers = UNKNOWN, multipliers.copy()
    direction = np.zeros(n, np.float64)
    holders = np.empty(n, np.int64)
    length = 1.0
    stalled, found, steps = 0, -1, 0
    for _ in range(evaluations):
        worth, more = choose(instance, multipliers, node)
        steps += more
        if worth == INFEASIBLE:
            return INFEASIBLE, found, steps
        bound = worth + value_columns(instance, alive, multipliers, node)
        stalled += 1
        if bound < best_bound:
            best_bound, stalled = bound, 0
            assign(best_multipliers, multipliers)
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
            # slots and knapsack agree, which gives a placement, though not always the best so far,
            # since the knapsack may stop before its optimum
            profit = 0
            for column in node.best_column:
                for job in jobs[first[column] : first[column + 1]]:
                    profit += instance.profits[job]
            if profit >= max(target, found + 1):
                found = profit
                placement[:] = -1
                for slot, column in enumerate(node.best_column):
                    for job in jobs[first[column] : first[column + 1]]:
                        placement[job] = slot
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
                multipliers[job] = max(
                    0, multipliers[job] - np.int64(np.rint(step * direction[job]))
                )
    assign(multipliers, best_multipliers)
    return best_bound, found, steps


@kernel
def fix_columns(
    instance: Instance, alive: Ints, multipliers: Ints, node: Node, bound: int, target: int
) -> int:
    """Remove columns with which the bound falls below `target`; return the number kept.

    A column lowers the bound by the difference of its value to the best one of its slot, and by the
    largest loss of the knapsack with one of its jobs forced in. Kept columns move to the front of
    `alive`.
    """
    first, jobs = instance.columns.first, instance.columns.jobs
    value_columns(instance, alive, multipliers, node)
    worth, _ = choose(instance, multipliers, node)
    conditional_bounds(
        node.worth, instance.weights, total(node.heaviest), node.must, worth,
        node.inside, node.outside,
    )  # fmt: skip
    # losses of the knapsack with each job forced in, and forced out
    for job in range(len(multipliers)):
        node.inside[job] = worth - node.inside[job]
        node.outside[job] = worth - node.outside[job]
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
