"""GREEDY and the exchange of Martello and Toth, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from optsched.solvers.window_mkp._reduction import Ints, by_capacity, by_efficiency


@njit(cache=True)
def greedy(weights: Ints, profits: Ints, capacities: Ints) -> Ints:
    """Return the slot of each job, -1 for none, by Algorithm 3 called for each slot."""
    jobs = np.arange(len(weights))
    slots = np.arange(len(capacities))
    by_efficiency(jobs, weights, profits)
    by_capacity(slots, capacities)
    placement = np.full(len(weights), -1, np.int64)
    for slot in slots:
        room = capacities[slot]
        for job in jobs:
            if placement[job] < 0 and weights[job] <= room:
                placement[job] = slot
                room -= weights[job]
    return placement
