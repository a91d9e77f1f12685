"""Hops and links between the nodes of allocations on a torus, compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]


@kernel
def hops_of_allocations(
    coordinates: Integers,
    shape: Integers,
    nodes_per_router: int,
    first: Integers,
    last: Integers,
    runs: Integers,
) -> tuple[NDArray[np.float64], Integers]:
    """Return the mean and the largest number of hops between two nodes of each allocation.

    The coordinates of the routers, shape (routers, 3), are by position on the line. The nodes of a
    router are consecutive on the line and 0 hops apart. Rows ``runs[first[a]:last[a]]``, each a
    start and a stop, are the runs of nodes of allocation a. The mean is over pairs of different
    nodes, 0 for a single node.
    """
    count = np.zeros((3, shape.max()), dtype=np.int64)
    held = np.empty((len(coordinates) + len(runs), 3), dtype=np.int64)
    mean = np.zeros(len(first))
    largest = np.zeros(len(first), dtype=np.int64)
    for allocation in range(len(first)):
        count[:] = 0
        nodes, routers = 0, 0
        for start, stop in runs[first[allocation] : last[allocation]]:
            nodes += stop - start
            for router in range(start // nodes_per_router, (stop - 1) // nodes_per_router + 1):
                begin = max(start, router * nodes_per_router)
                end = min(stop, (router + 1) * nodes_per_router)
                for axis in range(3):
                    count[axis, coordinates[router, axis]] += end - begin
                held[routers] = coordinates[router]
                routers += 1
        if routers <= 1:
            continue
        total, most = 0, 0
        for axis in range(3):
            total += hops_along_ring(count[axis, : shape[axis]], nodes)
            most += farthest_on_ring(count[axis, : shape[axis]])
        mean[allocation] = 2 * total / (nodes * (nodes - 1))
        largest[allocation] = farthest_pair(held[:routers], shape, most)
    return mean, largest


@kernel
def hops_along_ring(count: Integers, nodes: int) -> int:
    """Return the sum of the hops in one dimension over all pairs of nodes.

    Of the half rings (``length // 2`` routers from each router on), twice as many separate two
    nodes as there are hops between the nodes. So counting the nodes in each half ring is enough.
    """
    length = len(count)
    half = length // 2
    inside = count[:half].sum()
    twice = 0
    for start in range(length):
        twice += inside * (nodes - inside)
        inside += count[(start + half) % length] - count[start]
    return twice // 2


@kernel
def farthest_on_ring(count: Integers) -> int:
    """Return the largest number of hops between two routers of a ring that hold a node."""
    length = len(count)
    used = np.flatnonzero(count)
    best, ahead = 0, 0
    for behind in range(len(used)):
        ahead = max(ahead, behind)
        while ahead + 1 < behind + len(used):
            turn, place = divmod(ahead + 1, len(used))
            if turn * length + used[place] - used[behind] > length // 2:
                break
            ahead += 1
        turn, place = divmod(ahead, len(used))
        best = max(best, turn * length + used[place] - used[behind])
    return best


@kernel
def hops_between(one: Integers, other: Integers, shape: Integers) -> int:
    """Return the hops of a shortest path between two routers."""
    hops = 0
    for axis in range(3):
        apart = abs(one[axis] - other[axis])
        hops += min(apart, shape[axis] - apart)
    return hops


@kernel
def farthest_pair(held: Integers, shape: Integers, most: int) -> int:
    """Return the largest number of hops between two routers.

    Neighbors on the line are mostly neighbors on the torus. So the routers are cut into pieces
    along the line, and only pairs of pieces whose bounding boxes are far enough apart are compared.

    The routers are rows of `held`, in order of the line. The search ends at a pair that attains
    `most`, an upper bound on the result.
    """
    best, end = 0, 0
    for _ in range(2):  # from any router to the farthest one, and from there again
        begin = end
        for router in range(len(held)):
            hops = hops_between(held[begin], held[router], shape)
            if hops > best:
                best, end = hops, router
    length = int(math.sqrt(len(held)))
    pieces = (len(held) + length - 1) // length
    low = np.empty((pieces, 3), dtype=np.int64)
    high = np.empty((pieces, 3), dtype=np.int64)
    for piece in range(pieces):
        if best == most:
            return best
        low[piece] = high[piece] = held[piece * length]
        for router in held[piece * length : (piece + 1) * length]:
            for axis in range(3):
                low[piece, axis] = min(low[piece, axis], router[axis])
                high[piece, axis] = max(high[piece, axis], router[axis])
        for other in range(piece + 1):
            if hops_between_boxes(low, high, piece, other, shape) > best:
                for one in held[piece * length : (piece + 1) * length]:
                    for router in held[other * length : (other + 1) * length]:
                        best = max(best, hops_between(one, router, shape))
    return best


@kernel
def hops_between_boxes(low: Integers, high: Integers, one: int, other: int, shape: Integers) -> int:
    """Return an upper bound on the hops between a router of one box and a router of another."""
    hops = 0
    for axis in range(3):
        centers = abs(low[one, axis] + high[one, axis] - low[other, axis] - high[other, axis])
        centers = min(centers, 2 * shape[axis] - centers)  # twice the distance of the centers
        widths = high[one, axis] - low[one, axis] + high[other, axis] - low[other, axis]
        hops += min((centers + widths) // 2, shape[axis] // 2)
    return hops


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
