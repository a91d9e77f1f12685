"""Which files are in the memory of which node."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

FILE, LOAD, LOADED, UNTIL, USERS = range(5)
FREE = -1

Kept = Literal["users", "next"]
"""Whether a file stays as long as a job uses it, or until the next job starts on the node."""


class Residents(NamedTuple):
    """Files that are on nodes, one row each.

    Parameters
    ----------
    node, file : int64 array, shape (files,)
        The node, and the number of the file.
    load : int64 array, shape (files,)
        Seconds to load it from the shared storage.
    loaded, until : float64 array, shape (files,)
        When it was or will be loaded, and until when it is planned to stay. While jobs use it, that
        is the latest limit of all that have, as in the authors' program: of some that have ended,
        too. Then it is the end of the last one, which may be long ago if files stay until the next
        start.
    """

    node: NDArray[np.int64]
    file: NDArray[np.int64]
    load: NDArray[np.int64]
    loaded: NDArray[np.float64]
    until: NDArray[np.float64]


class Use(NamedTuple):
    """How a job comes to its file.

    Parameters
    ----------
    seconds : float
        That it waits for it.
    loads : bool
        Whether it loads the file itself; otherwise it is there, or being loaded.
    """

    seconds: float
    loads: bool


class NodeMemory:
    """The input files of jobs in the memory of nodes.

    A file is on a node from the moment a job begins to load it, for as long as a job on the node
    uses it, and up to the very instant in which the last of them ends: a job that starts then finds
    it. What happens to a file that its last user left is `kept`. With ``users`` later jobs do not
    find it, the rule of the authors' program. With ``next`` they do, if no job was started on the
    node in between (Gonthier et al. 2024, section III, case 2): a job that starts at t finds a file
    left at e if no job, with or without a file, started at a time s, e <= s < t. Memory is large
    enough for the files of all jobs that a node can run, so nothing else evicts a file.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    cores : int
        Cores of each: so many jobs may use a file of their own at once.
    kept : {"users", "next"}
        How long a file stays.

    References
    ----------
    M. Gonthier, E. Larsson, L. Marchal, C. Nettelblad, S. Thibault, "Data-driven locality-aware
    batch scheduling", APDCM 2024.

    Examples
    --------
    >>> memory = NodeMemory(nodes=2, cores=4)
    >>> memory.use(0, file=7, load=64, now=100.0, until=900.0)
    Use(seconds=64.0, loads=True)
    >>> memory.use(0, file=7, load=64, now=130.0, until=500.0)
    Use(seconds=34.0, loads=False)
    >>> memory.drop(0, file=7, now=300.0)
    >>> memory.use(0, file=7, load=64, now=300.0, until=700.0)
    Use(seconds=0.0, loads=False)
    """

    def __init__(self, nodes: int, cores: int, kept: Kept = "users") -> None:
        self.nodes = nodes
        self.cores = cores
        self.kept = kept
        self._latest_start = np.full(nodes, -np.inf)
        # files in use now, and those that were before: what was left by the last start is gone
        self._table = np.zeros((5, nodes, 2 * cores))
        self._table[FILE] = FREE

    def use(self, node: int, file: int, load: int, now: float, until: float) -> Use:
        """Let a job use a file from now on; return how it comes to it.

        Parameters
        ----------
        node, file : int
            The node, and the number of the file.
        load : int
            Seconds to load the file from the shared storage.
        now, until : float
            The start of the job, and its limit.
        """
        self._forget(node, now)
        table = self._table[:, node]
        slots = np.flatnonzero(table[FILE] == file)
        loads = not len(slots)
        if not loads:
            slot = slots[0]
        else:
            slot = np.flatnonzero(table[FILE] == FREE)[0]
            table[:, slot] = file, load, now + load, until, 0
        table[USERS, slot] += 1
        table[UNTIL, slot] = max(table[UNTIL, slot], until)
        return Use(max(0.0, float(table[LOADED, slot]) - now), loads)

    def start(self, node: int, now: float) -> None:
        """Note the start of a job that uses no file."""
        if self.kept == "next":
            self._forget(node, now)

    def drop(self, node: int, file: int, now: float) -> None:
        """Let a job that ends now use a file no longer."""
        table = self._table[:, node]
        slot = np.flatnonzero(table[FILE] == file)[0]
        table[USERS, slot] -= 1
        if not table[USERS, slot]:
            table[UNTIL, slot] = now

    def residents(self, now: float) -> Residents:
        """Return the files that are on nodes now, in order of the nodes."""
        flat = self._table.reshape(5, -1)
        there = (flat[USERS] > 0) | (flat[UNTIL] >= now)
        if self.kept == "next":
            latest = np.where(self.started(now), -np.inf, self._latest_start)
            there |= flat[UNTIL] > np.repeat(latest, 2 * self.cores)
        rows = np.flatnonzero((flat[FILE] != FREE) & there)
        file, load, loaded, until, _ = flat[:, rows]
        return Residents(
            rows // (2 * self.cores), file.astype(np.int64), load.astype(np.int64), loaded, until
        )

    def started(self, now: float) -> NDArray[np.bool_]:
        """Return on which nodes a job started now, shape (nodes,); noted with ``next`` only."""
        return self._latest_start >= now

    def _forget(self, node: int, now: float) -> None:
        """Free the slots of files that a job that starts now does not find."""
        table = self._table[:, node]
        if self.kept == "users":
            gone = table[UNTIL] < now
        elif (latest := self._latest_start[node]) == now:
            return  # starts of one instant do not evict for each other
        else:
            # where decisions are charged for, the start before may even be later than this one
            gone = table[UNTIL] <= latest
            self._latest_start[node] = now
        table[FILE, gone & (table[USERS] == 0)] = FREE
