"""Verification of placements in bins, compiled: what the problem's `violations` states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._layered import find_layer_shape
from optsched.boxes._rows import NONE, Sides, Wrap, run_of
from optsched.compiled import kernel

Integers = NDArray[np.int64]

BIN, LAYER, SHELF = 0, 1, 2
"""Columns of places."""


@kernel(allocates=False)
def leads(leader: int, job: int, shapes: Integers) -> bool:
    """Return whether a job may be led by another: one not lower, or itself if it holds layers."""
    if max(shapes[leader, 1], shapes[job, 1]) > 1 and leader != job:
        return False
    high, higher = shapes[job, 2], shapes[leader, 2]
    return higher > high or (higher == high and leader <= job)


@kernel
def is_feasible(
    bins: Integers,  # the bins: x, y, z, nx, ny, nz, shape (bins, 6)
    wrap: Wrap,
    # Routers of the torus in each dimension, and the longest sides of a box besides these
    sides: Sides,
    longest: Sides,
    routers: Integers,
    # Bin, layer and shelf of each job, -1 for a job that is not placed, shape (jobs, 3)
    places: Integers,
) -> bool:
    """Return whether all leaders lead, and the boxes of placed jobs are disjoint in their bins."""
    jobs = len(routers)
    shapes = np.zeros((jobs, 3), dtype=np.int64)
    for job in range(jobs):
        b = places[job, BIN]
        if b == -1:
            continue
        if not 0 <= b < len(bins):
            return False
        if not find_layer_shape(routers[job], bins[b, 3:], sides, longest, shapes[job]):
            return False
    for job in range(jobs):
        if places[job, BIN] == -1:
            continue
        layer, shelf = places[job, LAYER], places[job, SHELF]
        if not (0 <= layer < jobs and 0 <= shelf < jobs):
            return False
        for column in range(3):
            if places[shelf, column] != (shelf if column == SHELF else places[job, column]):
                return False
            if places[layer, column] != (places[job, BIN] if column == BIN else layer):
                return False
        if not (leads(shelf, job, shapes) and leads(layer, job, shapes)):
            return False
    # corners in the bins: whole layers first, then shared ones, both by number
    floor = np.zeros(len(bins), dtype=np.int64)
    corners = np.zeros((jobs, 3), dtype=np.int64)
    for shared in (False, True):
        for job in range(jobs):
            b = places[job, BIN]
            if b != -1 and places[job, LAYER] == job and (shapes[job, 1] == 1) == shared:
                corners[job, 1] = floor[b]
                floor[b] += shapes[job, 1]
    # shelves of a layer by height, then by number
    for job in range(jobs):
        if places[job, BIN] != -1 and places[job, SHELF] == job and shapes[job, 1] == 1:
            corners[job, 1] = corners[places[job, LAYER], 1]
            for other in range(jobs):
                is_shelf = places[other, BIN] != -1 and places[other, SHELF] == other
                is_beside = places[other, LAYER] == places[job, LAYER] and other != job
                if is_shelf and is_beside and leads(other, job, shapes):
                    corners[job, 2] += shapes[other, 2]
    # jobs of a shelf by number
    width = np.zeros(jobs, dtype=np.int64)
    taken = np.zeros((sides[0], sides[1]), dtype=np.uint64)
    at = np.zeros(3, dtype=np.int64)
    for job in range(jobs):
        b, shelf = places[job, BIN], places[job, SHELF]
        if b == -1:
            continue
        at[0], at[1], at[2] = width[shelf], corners[shelf, 1], corners[shelf, 2]
        width[shelf] += shapes[job, 0]
        for axis in range(3):
            length, side = shapes[job, axis], sides[axis]
            if at[axis] + length > bins[b, 3 + axis]:
                return False
            at[axis] = (bins[b, axis] + at[axis]) % side
            if length > side or (at[axis] > 0 and length == side):
                return False
            if at[axis] + length > side and not wrap[axis]:
                return False
        run = run_of(at[2], shapes[job, 2], sides[2])
        for x in range(at[0], at[0] + shapes[job, 0]):
            for y in range(at[1], at[1] + shapes[job, 1]):
                row = taken[x % sides[0], y % sides[1]]
                if row & run != NONE:
                    return False
                taken[x % sides[0], y % sides[1]] = row | run
    return True
