"""The sets of jobs that each slot may hold where little is left between bound and incumbent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._bands.knapsack import CELLS_PER_STEP, INFEASIBLE, Bools, knapsack
from optsched.solvers.window_mkp._bands.slots import fill_backward, leaders, shared_capacity
from optsched.solvers.window_mkp._reduction import Ints

TOO_MANY = -1


class Columns(NamedTuple):
    """Sets of jobs, each of them for one slot; slot by slot, one set behind the other.

    Parameters
    ----------
    slot : int64 array, shape (columns,)
        The slot that each set is for.
    first : int64 array, shape (columns + 1,)
        Where the jobs of each set begin in `jobs`.
    jobs : int64 array, shape (total,)
        The jobs of all sets.
    """

    slot: Ints
    first: Ints
    jobs: Ints


@kernel
def list_columns(
    prices: Ints,
    weights: Ints,
    profits: Ints,
    room: Ints,
    allowed: Bools,
    must: Bools,
    target: int,
    scale: int,
    columns: Columns,
) -> tuple[int, int]:
    """List all sets that a slot may hold in a placement of at least a given profit.

    The bound of the placement is that of the Lagrangian decomposition: the jobs are chosen in one
    knapsack, for their profit less their price, and each slot takes those that are worth most at
    these prices. A set that is worth less than the best one of its slot lowers the bound by that.

    Parameters
    ----------
    prices : int64 array, shape (jobs,)
        What a slot is paid for each job, from 0.
    weights, profits : int64 arrays, shape (jobs,)
        The jobs.
    room : int64 array, shape (slots,)
        Capacity of each slot.
    allowed : bool array, shape (slots, jobs)
        The jobs that may go into each slot.
    must : bool array, shape (jobs,)
        The jobs that must be placed.
    target : int
        Placements of less profit are of no interest.
    scale : int
        The tables are made for weights and rooms divided by it; 1 if they are small enough.
    columns : Columns
        Overwritten; how long its arrays are says how many sets may be listed.

    Returns
    -------
    count : int
        How many sets there are, or `TOO_MANY`. A slot without any means that there is no placement.
    cells : int
        Cells of tables and partial sets that were looked at.
    """
    m, n = allowed.shape
    leader = leaders(allowed)
    coarse, coarse_room = weights // scale, room // scale
    table = np.empty((n + 1, coarse_room.max() + 1), np.int64)
    chosen = np.empty(n, np.bool_)
    slack, steps = knapsack(profits - prices, weights, room.sum(), must, np.int64(0), chosen)
    cells = CELLS_PER_STEP * steps
    if slack == INFEASIBLE:
        return 0, cells
    slack -= target
    count: Any = np.int64(0)  # not the literal 0, for which all would be compiled once more
    columns.first[0] = 0
    for listing in (False, True):
        for lead in range(m):
            if leader[lead] != lead:
                continue
            jobs = np.flatnonzero(allowed[lead])
            size = shared_capacity(lead, leader, coarse_room)
            fill_backward(table, prices, coarse, jobs, size)
            cells += len(jobs) * (size + 1)
            for slot in range(lead, m):
                if leader[slot] != lead:
                    continue
                unused = size - coarse_room[slot]
                if not listing:
                    slack += table[0, unused]
                elif slack >= 0:
                    count, looked_at = list_sets(
                        slot, room[slot], unused, table[0, unused] - slack, table, jobs,
                        prices, weights, coarse, columns, count,
                    )  # fmt: skip
                    cells += looked_at
                    if count == TOO_MANY:
                        return TOO_MANY, cells
    return count, cells


@kernel
def list_sets(
    slot: int,
    room: int,
    unused: int,
    least: int,
    table: Ints,
    jobs: Ints,
    prices: Ints,
    weights: Ints,
    coarse: Ints,
    columns: Columns,
    count: int,
) -> tuple[int, int]:
    """List the sets of `jobs` for one slot that are worth at least `least`.

    The table says what the k-th and later jobs can add, so every partial set leads to one that is
    listed, or nearly so where the table is coarse.
    """
    cells = 0
    deepest = len(jobs) + 1
    # a set of `depth` jobs, and the place in `jobs` from which on it may grow
    place, in_use = np.empty(deepest + 1, np.int64), np.empty(deepest + 1, np.int64)
    left, value = np.empty(deepest + 1, np.int64), np.empty(deepest + 1, np.int64)
    member = np.empty(deepest + 1, np.int64)
    depth = 0
    place[0], in_use[0], left[0], value[0] = 0, unused, room, 0
    while depth >= 0:
        cells += 1
        k = place[depth]
        if value[depth] + table[k, in_use[depth]] < least:
            depth -= 1
        elif k == len(jobs):
            end = columns.first[count] + depth
            if count == len(columns.slot) or end > len(columns.jobs):
                return TOO_MANY, cells
            columns.jobs[columns.first[count] : end] = member[:depth]
            columns.slot[count] = slot
            count += 1
            columns.first[count] = end
            depth -= 1
        else:
            place[depth] = k + 1
            job = jobs[k]
            if weights[job] <= left[depth]:
                member[depth] = job
                place[depth + 1] = k + 1
                in_use[depth + 1] = in_use[depth] + coarse[job]
                left[depth + 1] = left[depth] - weights[job]
                value[depth + 1] = value[depth] + prices[job]
                depth += 1
    return count, cells
