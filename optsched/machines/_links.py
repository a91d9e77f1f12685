"""Connection of an allocation by the links of a torus, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]


@kernel
def are_connected(neighbors: Integers, nodes_per_router: int, runs: Integers) -> bool:
    """Return whether the routers of an allocation are connected by links between them.

    Links lead to the routers ``neighbors[r]`` of router r, shape (routers, 6), by position on the
    line. Rows of `runs`, each a start and a stop, are the runs of nodes of the allocation; a router
    belongs to it with any of its nodes. The search floods the routers from the first one, in steps
    proportional to the size of the allocation.
    """
    unreached = np.zeros(len(neighbors), dtype=np.bool_)
    routers = 0
    for start, stop in runs:
        for router in range(start // nodes_per_router, (stop - 1) // nodes_per_router + 1):
            if not unreached[router]:
                unreached[router] = True
                routers += 1
    stack = np.empty(routers, dtype=np.int64)
    stack[0] = runs[0, 0] // nodes_per_router
    unreached[stack[0]] = False
    height, reached = 1, 1
    while height:
        height -= 1
        for neighbor in neighbors[stack[height]]:
            if unreached[neighbor]:
                unreached[neighbor] = False
                stack[height] = neighbor
                height += 1
                reached += 1
    return reached == routers
