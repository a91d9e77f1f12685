"""Jobs of whole nodes onto leaves by a rule: the largest first, each on as few leaves as it can."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.solvers.node_placement._priority_sets import heaviest_set
from optsched.solvers.node_placement._whole_nodes import Cells, Pool

Ints = NDArray[np.int64]


def filled(sizes: Ints, room: Ints, blocks: Ints) -> Cells:
    """Return the cells of jobs on leaves; a job that fits in no block is left out.

    The largest job comes first. It gets the leaf with the fewest free nodes that holds it. If none
    does, it gets the leaf with the most free nodes, of the block with the fewest that holds it, and
    its remaining nodes are placed in that block likewise.

    Parameters
    ----------
    sizes : int64 array, shape (jobs,)
        Nodes of each job.
    room, blocks : int64 array, shape (leaves,)
        Nodes of each leaf, and its block, from 0.
    """
    free = room.copy()
    cells: Cells = {}
    for job in np.argsort(-sizes, kind="stable").tolist():
        left = int(sizes[job])
        leaves = np.arange(len(free))
        if not (free >= left).any():
            in_block = np.bincount(blocks, free).astype(np.int64)
            holding = np.flatnonzero(in_block >= left)
            if not holding.size:
                continue
            leaves = np.flatnonzero(blocks == holding[in_block[holding].argmin()])
        while left:
            there = free[leaves]
            enough = np.flatnonzero(there >= left)
            leaf = int(leaves[enough[there[enough].argmin()] if enough.size else there.argmax()])
            cells[job, leaf] = min(left, int(free[leaf]))
            free[leaf] -= cells[job, leaf]
            left -= cells[job, leaf]
    return cells


def filled_by_priority(pool: Pool) -> Cells:
    """Return the cells of the jobs of greatest weight that fit into all nodes together."""
    jobs = heaviest_set(pool.sizes, pool.weights, int(pool.room.sum()))
    cells = filled(pool.sizes[jobs], pool.room, pool.blocks)
    return {(jobs[job], leaf): nodes for (job, leaf), nodes in cells.items()}
