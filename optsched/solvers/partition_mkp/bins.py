"""Bins of a partition knapsack, filled job by job."""

from __future__ import annotations

import numpy as np

from optsched.models.partition_mkp import PartitionMKP, Place, Placement


def fill(problem: PartitionMKP, *, migrating: bool) -> Placement:
    """Return the placement of the jobs in the order of the queue, which may migrate or not."""
    from optsched.solvers.partition_mkp._bins import placed

    extents = np.array(problem.bins, dtype=np.int64).reshape(-1, 6)[:, 3:]
    sizes, kinds = np.unique(np.array(problem.routers, dtype=np.int64), return_inverse=True)
    grid = problem.grid
    places = placed(extents, sizes, kinds, grid.shape, grid.longest, migrating).tolist()
    return tuple(None if place[0] < 0 else Place(*place) for place in places)
