"""The surrogate relaxation, all slots as one, and the placement that splits its solution."""

from __future__ import annotations

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._bands.knapsack import CELLS_PER_STEP, dense_bound, knapsack
from optsched.solvers.window_mkp._bands.slots import tighten
from optsched.solvers.window_mkp._bands.splitting import improve, split
from optsched.solvers.window_mkp._reduction import Ints

DENSE = 1 << 26
"""Cells that the dynamic program over every capacity may take."""


@kernel
def surrogate(
    weights: Ints, profits: Ints, capacities: Ints, heaviest: Ints, allowance: int, placement: Ints
) -> tuple[int, int, int, int]:
    """Bound a window by one slot as large as all, and split the solution of that knapsack.

    This is what Pisinger's mulknap does at its root; with many jobs in a slot it is mostly the end.
    What the subset sums leave out, `improve` repairs.

    Parameters
    ----------
    weights, profits, capacities : int64 arrays
        The instance, jobs by decreasing profit per weight, slots by increasing capacity.
    heaviest : int64 array, shape (jobs,)
        Job numbers by decreasing weight.
    allowance : int
        Cells of tables that may be looked at, about.
    placement : int64 array, shape (jobs,)
        Overwritten by the slot of each job, -1 for none.

    Returns
    -------
    bound : int
        No placement has more profit.
    profit : int
        Profit of `placement`.
    steps : int
        Partial solutions that were looked at.
    cells : int
        Cells of tables that were looked at.
    """
    n, m = len(weights), len(capacities)
    allowed = np.empty((m, n), np.bool_)
    for slot in range(m):
        allowed[slot] = weights <= capacities[slot]
    room = capacities.copy()
    tighten(allowed, weights, capacities, np.full(n, -1), False, room)
    total = room.sum()
    must = np.zeros(n, np.bool_)
    chosen = np.empty(n, np.bool_)
    bound, steps = knapsack(profits, weights, total, must, np.int64(0), chosen)
    cells = n * total // 64
    if bound > profits[chosen].sum() and n * total <= min(DENSE, allowance):
        bound = min(bound, dense_bound(profits, weights, total))
        cells += n * total
    best = -1
    trial = np.empty(n, np.int64)
    slots = np.arange(m)
    for _ in range(2):
        split(chosen, weights, profits, capacities.copy(), heaviest, slots, trial)
        profit, more = improve(
            weights,
            profits,
            capacities,
            heaviest,
            bound,
            (allowance - cells) // CELLS_PER_STEP - steps,
            trial,
        )
        steps += more
        if profit > best:
            best = profit
            placement[:] = trial
        if best == bound:
            break
        slots = slots[::-1].copy()
    return bound, best, steps, cells
