"""Resident input files in the memory of nodes."""

from __future__ import annotations

import math
from typing import Literal

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


Kept = Literal["users", "next"]
"""Period for which a file stays: while a job uses it, or until the next start on the node."""


class NodeMemory:
    """Input files of jobs in the memory of nodes.

    A file is resident from the start of its load until its last user ends, including that instant:
    a job that starts then finds the file. `kept` is the rule from then on. With ``users``, the rule
    of the authors' program, later jobs do not find the file. With ``next`` they do if no job was
    started on the node in between (Gonthier et al. 2024, section III, case 2): a job that starts at
    t finds a file whose last user ended at e if no job, with or without a file, started at a time
    s, e <= s < t. Memory is large enough for the files of all jobs that a node can run, at most one
    for each core, so nothing else evicts a file.

    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.
    """

    def __init__(self, nodes: int, cores: int, kept: Kept = "users") -> None:
        self.cores = cores
        self.kept = kept
        # Time of the latest start on each node, -inf before; ``next`` only, shape
        # (nodes,)
        self.latest_start = np.full(nodes, -np.inf)
        # files in use, and those whose last user has ended since the last start
        # File, load time, end of the load, end of the last use and users of each slot of
        # the nodes, shape (5, nodes, 2 x cores)
        self.table = np.zeros((5, nodes, 2 * cores))
        self.table[FILE] = FREE

    def residents(self, now: float) -> NDArray[np.int64]:
        """Return the resident files, in order of the nodes.

        Result: the node, the file, the seconds to load it from the shared storage, and the whole
        seconds from now, at least 0, until it is loaded, and until which it is planned to stay.
        While jobs use the file, the latter is the latest limit of all its users, including those
        that have ended, as in the authors' program. Afterwards it is 0, also if files stay until
        the next start.
        """
        rows: NDArray[np.int64]
        rows = residents(self.table, self.latest_start, now, self.kept == "next")
        return rows

    def started(self, now: float) -> NDArray[np.bool_]:
        """Return a mask of the nodes with a start at `now`, shape (nodes,); ``next`` only."""
        return self.latest_start >= now
