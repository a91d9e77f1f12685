"""Resident input files in the memory of nodes."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optsched.machines._node_memory import FILE, FREE

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
        from optsched.machines._node_memory import residents

        rows: NDArray[np.int64]
        rows = residents(self.table, self.latest_start, now, self.kept == "next")
        return rows

    def started(self, now: float) -> NDArray[np.bool_]:
        """Return a mask of the nodes with a start at `now`, shape (nodes,); ``next`` only."""
        return self.latest_start >= now
