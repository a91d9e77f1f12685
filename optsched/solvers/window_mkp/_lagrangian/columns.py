"""Enumeration of the columns that each slot may hold, given a target profit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.knapsack import (
    CELLS_PER_STEP,
    INFEASIBLE,
    Bools,
    knapsack,
)
from optsched.solvers.window_mkp._lagrangian.slots import fill_backward, leaders, shared_capacity
from optsched.solvers.window_mkp._reduction import Ints, assign

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
    residual: Ints,  # residual capacity of each slot, shape (slots,)
    allowed: Bools,  # whether a job may go into a slot, shape (slots, jobs)
    must: Bools,  # whether a job must be placed, shape (jobs,)
    target: int,  # least profit of a placement
    scale: int,  # divisor of weights and capacities in tables; 1 if the tables are small enough
    columns: Columns,  # overwritten; the length of its arrays limits the number of columns
) -> tuple[int, int]:
    """Enumerate the columns that a slot may hold in a placement of at least a given profit.

    The bound of a placement is that of the Lagrangian decomposition: the optimum of one knapsack of
    jobs at their reduced profits, plus the best column of each slot at the multipliers. A column
    whose value is below the best one of its slot lowers the bound by the difference.

    Results: `count`: number of columns, or `TOO_MANY`. There is no placement if a slot has no
    column. `cells`: number of table cells and partial columns visited.
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
