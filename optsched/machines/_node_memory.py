"""Table of the resident files of nodes, compiled: the rules of `NodeMemory`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

FILE, LOAD, LOADED, UNTIL, USERS = range(5)
FREE = -1

Floats = NDArray[np.float64]


@kernel(allocates=False)
def use(
    table: Floats,
    latest_start: Floats,
    until_next: bool,
    node: int,
    file: int,
    load: int,
    now: float,
    until: float,
) -> tuple[float, bool]:
    """Begin the use of a file by a job, with a load if the file is not resident.

    The load takes `load` seconds; `now` and `until` are the job's start and estimated end. Returns
    the seconds that the job waits for its file, and whether it loads the file itself.
    """
    forget(table, latest_start, until_next, node, now)
    slot = vacant = FREE
    for each in range(table.shape[2]):
        held = table[FILE, node, each]
        if held == file:
            slot = each
        elif held == FREE and vacant == FREE:
            vacant = each
    loads = slot == FREE
    if loads:
        slot = vacant
        table[FILE, node, slot] = file
        table[LOAD, node, slot] = load
        table[LOADED, node, slot] = now + load
        table[UNTIL, node, slot] = until
        table[USERS, node, slot] = 0
    table[USERS, node, slot] += 1
    table[UNTIL, node, slot] = max(table[UNTIL, node, slot], until)
    return max(0.0, table[LOADED, node, slot] - now), loads


@kernel(allocates=False)
def drop(table: Floats, node: int, file: int, now: float) -> None:
    """End the use of a file by a job."""
    for slot in range(table.shape[2]):
        if table[FILE, node, slot] == file:
            table[USERS, node, slot] -= 1
            if table[USERS, node, slot] == 0:
                table[UNTIL, node, slot] = now
            break


@kernel(allocates=False)
def forget(table: Floats, latest_start: Floats, until_next: bool, node: int, now: float) -> None:
    """Evict the files that a job that starts now does not find."""
    latest = latest_start[node]
    if until_next:
        if latest == now:
            return  # starts of one instant do not evict for each other
        latest_start[node] = now
    for slot in range(table.shape[2]):
        if table[FILE, node, slot] == FREE or table[USERS, node, slot] > 0:
            continue
        until = table[UNTIL, node, slot]
        # with charged decisions, the previous start may even be later than this one
        if until <= latest if until_next else until < now:
            table[FILE, node, slot] = FREE


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
                load = rows[count, 2] = int(table[LOAD, node, slot])
                left = math.ceil(max(table[LOADED, node, slot] - now, 0.0))
                rows[count, 3] = min(left, load)  # a sum less one of its terms may be rounded up
                rows[count, 4] = math.ceil(max(until - now, 0.0))
                count += 1
    return rows[:count].copy()
