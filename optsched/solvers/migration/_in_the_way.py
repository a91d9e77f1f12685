"""What is in the way of every box of a shape, all over a torus at once, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._rows import NONE, ONE, Integers, Words, Wrap
from optsched.compiled import kernel
from optsched.solvers.migration._packing import layer_starts

NEVER = np.iinfo(np.int64).max
"""The cost where there can be no box."""


@kernel
def anchor_runs(at: int, length: int, shape: int, side: int, ring: bool, runs: Integers) -> int:
    """Find where a box of a length may begin to meet one at `at`; return how many runs there are.

    Parameters
    ----------
    at, length : int
        Begin and length of the box that is there.
    shape, side : int
        Length of the other one, and of the dimension.
    ring : bool
        Whether it wraps around.
    runs : int64 array, shape (2, 2)
        Filled with begin and end (exclusive) of each run.
    """
    low, high = at - shape + 1, at + length
    if not ring:
        runs[0, 0], runs[0, 1] = max(low, 0), high
        return 1
    if high - low >= side:
        runs[0, 0], runs[0, 1] = 0, side
        return 1
    if low < 0:
        low, high = low + side, high + side
    runs[0, 0], runs[0, 1] = low, min(high, side)
    if high <= side:
        return 1
    runs[1, 0], runs[1, 1] = 0, high - side
    return 2


@kernel
def costs_in_the_way(
    shapes: Integers, boxes: Integers, costs: Integers, room: Words, side: int, wrap: Wrap
) -> NDArray[np.int64]:
    """Return the cost of the jobs that a box at each anchor meets, each job once.

    Each job adds its cost to the anchors of the boxes that meet it, which are a box themselves: at
    the corners of that, in a table of differences that is summed up in the end.

    Parameters
    ----------
    shapes : int64 array, shape (shapes, 3)
        Shapes of the boxes.
    boxes : int64 array, shape (jobs, 6)
        Boxes of the jobs.
    costs : int64 array, shape (jobs,)
        Their costs.
    room : uint64 array, shape (X, Y)
        The routers that boxes may take, rows along Z as bits.
    side : int
        Routers along Z.
    wrap : (bool, bool, bool)
        Whether each dimension wraps around.

    Returns
    -------
    int64 array, shape (shapes, X, Y, Z)
        `NEVER` where there can be no such box.
    """
    sx, sy = room.shape
    found = np.empty((len(shapes), sx, sy, side), dtype=np.int64)
    # a box ends before one more than the side, at most
    table = np.empty((sx + 1, sy + 1, side + 1), dtype=np.int64)
    runs = np.empty((3, 2, 2), dtype=np.int64)
    starts = np.zeros(2 * sy, dtype=np.uint64)
    for number in range(len(shapes)):
        shape = shapes[number]
        table[:] = 0
        for job in range(len(boxes)):
            box, cost = boxes[job], costs[job]
            in_x = anchor_runs(box[0], box[3], shape[0], sx, wrap[0], runs[0])
            in_y = anchor_runs(box[1], box[4], shape[1], sy, wrap[1], runs[1])
            in_z = anchor_runs(box[2], box[5], shape[2], side, wrap[2], runs[2])
            for x in range(in_x):
                for y in range(in_y):
                    for z in range(in_z):
                        for corner in range(8):
                            i, j, k = corner >> 2, corner >> 1 & 1, corner & 1
                            sign = 1 - 2 * ((i + j + k) & 1)
                            table[runs[0, x, i], runs[1, y, j], runs[2, z, k]] += sign * cost
        for x in range(sx):
            if x:
                table[x] += table[x - 1]
            found[number, x] = NEVER
        for x in range(sx):
            if not layer_starts(room, x, shape, side, wrap, starts):
                continue
            rows = table[x]
            for y in range(1, sy):
                rows[y] += rows[y - 1]
            for y in range(sy):
                total = np.int64(0)
                for z in range(side):
                    total += rows[y, z]
                    if starts[y] >> np.uint64(z) & ONE != NONE:
                        found[number, x, y, z] = total
    return found


@kernel
def meetings(boxes: Integers, others: Integers, sides: Integers) -> NDArray[np.bool_]:
    """Return which boxes of two lists have a router in common, shape (boxes, others)."""
    found = np.ones((len(boxes), len(others)), dtype=np.bool_)
    for one in range(len(boxes)):
        for other in range(len(others)):
            for axis in range(3):
                ahead = (others[other, axis] - boxes[one, axis]) % sides[axis]
                behind = (boxes[one, axis] - others[other, axis]) % sides[axis]
                if ahead >= boxes[one, 3 + axis] and behind >= others[other, 3 + axis]:
                    found[one, other] = False
                    break
    return found
