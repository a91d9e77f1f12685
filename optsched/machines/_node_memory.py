"""Table of the resident files of nodes, compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

FILE, LOAD, LOADED, UNTIL, USERS = range(5)
FREE = -1

Floats = NDArray[np.float64]


@kernel
def residents(
    table: Floats, latest_start: Floats, now: float, until_next: bool
) -> NDArray[np.int64]:
    """Return the table of `NodeMemory.residents`; the arguments are its state."""
    _, nodes, slots = table.shape
    rows = np.empty((nodes * slots, 5), dtype=np.int64)
    count = 0
    for node in range(nodes):
        latest = -math.inf if latest_start[node] >= now else latest_start[node]
        for slot in range(slots):
            if table[FILE, node, slot] == FREE:
                continue
            until = table[UNTIL, node, slot]
            if table[USERS, node, slot] > 0 or until >= now or (until_next and until > latest):
                rows[count, 0] = node
                rows[count, 1] = int(table[FILE, node, slot])
                rows[count, 2] = int(table[LOAD, node, slot])
                rows[count, 3] = math.ceil(max(table[LOADED, node, slot] - now, 0.0))
                rows[count, 4] = math.ceil(max(until - now, 0.0))
                count += 1
    return rows[:count].copy()
