"""Do boxes of jobs fit into the free routers of a torus? A depth-first search, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._anchors import starts_in
from optsched.boxes._rows import NONE, ONE, Integers, Words, Wrap, full, lowest, reach
from optsched.compiled import kernel

Flags = NDArray[np.bool_]

NO, YES, OPEN = 0, 1, 2
"""Answers; `OPEN` when the boxes that may be tried are used up."""


@kernel
def run_of(z: int, nz: int, side: int) -> np.uint64:
    """Return the bits of nz routers from z on, around the ring."""
    run = full(nz)
    if z == 0:
        return run
    return ((run << np.uint64(z)) | (run >> np.uint64(side - z))) & full(side)


@kernel
def fill(words: Words, box: Integers, side: int, free: bool) -> None:
    """Make the routers of a box free, or take them."""
    sx, sy = words.shape
    run = run_of(box[2], box[5], side)
    for x in range(box[0], box[0] + box[3]):
        for y in range(box[1], box[1] + box[4]):
            if free:
                words[x % sx, y % sy] |= run
            else:
                words[x % sx, y % sy] &= ~run


@kernel
def layer_starts(
    words: Words, x: int, shape: Integers, side: int, wrap: Wrap, starts: Words
) -> bool:
    """Find the anchors of a free box in layer x, in the first half of `starts`; whether any."""
    sx, sy = words.shape
    if reach(x, sx, wrap[0]) < shape[0]:
        return False
    starts[:sy] = words[x]
    for layer in range(x + 1, x + shape[0]):
        rows = words[layer % sx]
        for y in range(sy):
            starts[y] &= rows[y]
    if wrap[1]:
        starts[sy:] = starts[:sy]
    else:
        starts[sy:] = NONE
    return bool(starts_in(starts, shape[1], shape[2], side, wrap))


@kernel
def fits(words: Words, shapes: Integers, side: int, wrap: Wrap, starts: Words) -> bool:
    """Return whether one of some shapes is free anywhere."""
    for shape in shapes:
        for x in range(len(words)):
            if layer_starts(words, x, shape, side, wrap, starts):
                return True
    return False


@kernel
def pack(
    words: Words, first: Integers, shapes: Integers, same: Flags, side: int, wrap: Wrap, most: int
) -> tuple[int, int, Integers, Flags]:
    """Place a box of each job, the first job first, so that no two overlap.

    A job tries its shapes in order, and the anchors of each in row-major order. Where one of the
    jobs to come has no free box left, the search turns back.

    Parameters
    ----------
    words : uint64 array, shape (X, Y)
        The free routers, rows along Z as bits.
    first : int64 array, shape (jobs + 1,)
        Job j may take ``shapes[first[j]:first[j + 1]]``.
    shapes : int64 array, shape (shapes, 3)
        Routers in each dimension.
    same : bool array, shape (jobs,)
        Whether a job has the shapes of the one before it. Then its box comes later in their order.
    side : int
        Routers along Z.
    wrap : (bool, bool, bool)
        Whether each dimension wraps around.
    most : int
        Boxes that may be tried.

    Returns
    -------
    answer : int
        `YES`, `NO` or `OPEN`.
    tried : int
        Boxes tried.
    placed : int64 array, shape (jobs, 6)
        The boxes, if the answer is yes.
    needed : bool array, shape (jobs,)
        If the answer is no: jobs that do not fit, even without the others.
    """
    jobs = len(first) - 1
    sx, sy = words.shape
    placed = np.zeros((jobs, 6), dtype=np.int64)
    needed = np.zeros(jobs, dtype=np.bool_)
    free = np.empty((jobs + 1, sx, sy), dtype=np.uint64)
    free[0] = words
    starts = np.zeros((jobs, 2 * sy), dtype=np.uint64)
    scratch = np.zeros(2 * sy, dtype=np.uint64)
    # where each job is in its list: shape, layer, row; the bits left of the row are in `starts`
    at = np.zeros((jobs, 3), dtype=np.int64)
    tried = 0
    job = 0
    entered = True
    while True:
        if entered:
            entered = False
            blocked = -1
            for other in range(job, jobs):
                if same[other] and other > job:
                    continue
                own = shapes[first[other] : first[other + 1]]
                if not fits(free[job], own, side, wrap, scratch):
                    blocked = other
                    break
            if blocked >= 0:
                needed[blocked] = True
                job -= 1
            elif job == jobs:
                return YES, tried, placed, needed
            else:
                at[job, 0], at[job, 1], at[job, 2] = first[job], 0, -1
                if same[job]:
                    # equal jobs: go on behind the box of the one before
                    at[job] = at[job - 1]
                    at[job, 0] += first[job] - first[job - 1]
                    if layer_starts(
                        free[job], at[job, 1], shapes[at[job, 0]], side, wrap, starts[job]
                    ):
                        behind = placed[job - 1, 2] + 1
                        for y in range(at[job, 2]):
                            starts[job, y] = NONE
                        if behind > 63:
                            starts[job, at[job, 2]] = NONE
                        else:
                            starts[job, at[job, 2]] &= ~NONE << np.uint64(behind)
                    else:
                        at[job, 2] = sy
        if job < 0:
            return NO, tried, placed, needed
        # the next box in the list
        found = False
        while not found:
            if at[job, 2] < 0:
                if layer_starts(
                    free[job], at[job, 1], shapes[at[job, 0]], side, wrap, starts[job]
                ):
                    at[job, 2] = 0
                else:
                    at[job, 2] = sy
            while at[job, 2] < sy and starts[job, at[job, 2]] == NONE:
                at[job, 2] += 1
            if at[job, 2] < sy:
                found = True
                break
            at[job, 2] = -1
            at[job, 1] += 1
            if at[job, 1] == sx:
                at[job, 1] = 0
                at[job, 0] += 1
                if at[job, 0] == first[job + 1]:
                    break
        if not found:
            needed[job] = True
            job -= 1
            continue
        if tried >= most:
            return OPEN, tried, placed, needed
        tried += 1
        word = starts[job, at[job, 2]]
        shape = shapes[at[job, 0]]
        placed[job, 0], placed[job, 1], placed[job, 2] = at[job, 1], at[job, 2], lowest(word)
        placed[job, 3], placed[job, 4], placed[job, 5] = shape[0], shape[1], shape[2]
        starts[job, at[job, 2]] = word & (word - ONE)
        free[job + 1] = free[job]
        fill(free[job + 1], placed[job], side, False)
        job += 1
        entered = True
