"""Surrogate relaxation of all slots as one, and placements that split its solution."""

from __future__ import annotations

import numpy as np

from optsched.solvers.window_mkp._lagrangian.knapsack import CELLS_PER_STEP, dense_bound, knapsack
from optsched.solvers.window_mkp._lagrangian.slots import tighten
from optsched.solvers.window_mkp._lagrangian.splitting import improve, split
from optsched.solvers.window_mkp._reduction import Ints

DENSE = 1 << 26
"""Largest number of cells in dynamic programming over every capacity."""


def surrogate(
    weights: Ints, profits: Ints, capacities: Ints, heaviest: Ints, allowance: int, placement: Ints
) -> tuple[int, int, int, int]:
    """Bound a window by the surrogate relaxation, and split the solution among the slots.

    This is the root of Pisinger's mulknap, and usually suffices if slots hold many jobs. Placements
    by subset sums are improved by `improve`.

    `weights`, `profits` and `capacities`: instance, jobs by decreasing profit per weight, slots by
    increasing capacity; `heaviest`: job numbers by decreasing weight, shape (jobs,); `allowance`:
    approximate limit of table cells to visit; `placement`: overwritten by the slot of each job, -1
    if not placed, shape (jobs,). Results: `bound`: upper bound of the profit; `profit`: profit of
    `placement`; `steps`: number of partial solutions visited; `cells`: number of table cells
    visited.
    """
    n, m = len(weights), len(capacities)
    allowed = np.ascontiguousarray(weights <= capacities[:, None])
    residual = capacities.copy()
    tighten(allowed, weights, capacities, np.full(n, -1), False, residual)
    total = int(residual.sum())
    chosen = np.empty(n, np.bool_)
    bound, steps = knapsack(profits, weights, total, np.zeros(n, np.bool_), 0, chosen)
    cells = n * total // 64
    if bound > profits[chosen].sum() and n * total <= min(DENSE, allowance):
        bound = min(bound, dense_bound(profits, weights, total))
        cells += n * total
    best = -1
    trial = np.empty(n, np.int64)
    for slots in (np.arange(m), np.arange(m)[::-1].copy()):
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
    return bound, best, steps, cells
