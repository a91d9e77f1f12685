"""The cheapest leaves for a job at given rents, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.node_placement._types import Ints

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@kernel(allocates=False)
def cheapest(
    rents: Floats,
    room: Ints,
    chunks: int,
    order: Ints,
    cost: Floats,
    taken: Flags,
    used: Ints,
) -> float:
    """Return the least number of leaves plus rents for a job, and write the chunks on each leaf.

    All leaves that a job has, but for the dearest one, may be taken to be full. So leaves are
    looked at by rising rents, and the last one holds the rest.

    Parameters
    ----------
    rents : float array, shape (leaves,)
        Price of a chunk on each leaf, from 0.
    room : int64 array, shape (leaves,)
        Most chunks on each leaf; enough for the job together.
    chunks : int
        Chunks of the job.
    order : int64 array, shape (leaves,)
        All leaves, sorted here.
    cost : float array, shape (at least chunks,)
        Scratch: least cost of so many chunks on full leaves.
    taken : bool array, shape (leaves, at least chunks)
        Scratch: whether a leaf is one of these.
    used : int64 array, shape (leaves,)
        Chunks on each leaf.
    """
    for place in range(1, len(order)):
        leaf, at = order[place], place
        while at > 0 and rents[order[at - 1]] > rents[leaf]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = leaf
    for held in range(chunks):
        cost[held] = np.inf
    cost[0] = 0.0
    best, last, before = np.inf, 0, 0
    for place in range(len(order)):
        leaf = order[place]
        full, rent = room[leaf], rents[leaf]
        used[leaf] = 0
        if full == 0:
            continue
        for held in range(max(0, chunks - full), chunks):
            total = cost[held] + 1.0 + rent * (chunks - held)
            if total < best:
                best, last, before = total, place, held
        for held in range(chunks - 1, full - 1, -1):
            total = cost[held - full] + 1.0 + rent * full
            taken[place, held] = total < cost[held]
            cost[held] = min(cost[held], total)
    used[order[last]] = chunks - before
    for place in range(last - 1, -1, -1):
        leaf = order[place]
        if 0 < room[leaf] <= before and taken[place, before]:
            used[leaf] = room[leaf]
            before -= room[leaf]
    return best


@kernel(allocates=False)
def cheapest_of_all(
    rents: Floats,
    room: Ints,
    type_of: Ints,
    chunks: Ints,
    order: Ints,
    cost: Floats,
    taken: Flags,
    least: Floats,
    used: Ints,
) -> None:
    """Write the least costs of a job of each class, and its chunks on each leaf.

    Rents, room and orders have a row for each type of chunks, the others one for each class.
    """
    for job in range(len(chunks)):
        of = type_of[job]
        least[job] = cheapest(rents[of], room[of], chunks[job], order[of], cost, taken, used[job])
