"""Depth-first search for disjoint boxes of jobs in the free routers of a torus, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._anchors import layer_starts
from optsched.boxes._free_boxes import largest
from optsched.boxes._rows import (
    NONE,
    ONE,
    Integers,
    Words,
    Wrap,
    bounds_of,
    fill,
    lowest,
    slices_of,
)
from optsched.compiled import kernel

Flags = NDArray[np.bool_]

AT_ONCE = 3
"""Number of shapes to try before the largest free box is computed."""

NO, YES, OPEN = 0, 1, 2
"""Outcomes of a search; `OPEN` if the limit of boxes to try is reached."""


@kernel
def fits(words: Words, shapes: Integers, least: int, side: int, wrap: Wrap) -> bool:
    """Return whether a box of any of `shapes`, with at least `least` routers each, is free."""
    starts = np.zeros(2 * words.shape[1], dtype=np.uint64)
    for number in range(len(shapes)):
        if number == AT_ONCE:
            # before the other shapes: is any free box large enough?
            slices = slices_of(words, wrap[0])
            bounds = bounds_of(slices)
            if largest(slices, bounds, least - 1, least, side, wrap)[3] == 0:
                return False
        for x in range(len(words)):
            if layer_starts(words, x, shapes[number], side, wrap, starts):
                return True
    return False


@kernel
def freed(words: Words, boxes: Integers, jobs: Integers, place: Integers, side: int) -> Words:
    """Return the free routers after jobs have left their boxes and a place has been taken."""
    free = words.copy()
    for job in jobs:
        fill(free, boxes[job], side, True)
    fill(free, place, side, False)
    return free


@kernel
def pack(
    words: Words,
    jobs: Integers,
    kinds: Integers,
    first: Integers,
    shapes: Integers,
    needs: Integers,
    side: int,
    wrap: Wrap,
    most: int,
) -> tuple[int, int, Integers, Flags]:
    """Search for disjoint boxes of jobs, in the order of jobs.

    A job tries its shapes in order, and the anchors of each in row-major order. Of consecutive jobs
    of one kind, each takes a later box in that order than its predecessor (symmetry breaking). The
    search backtracks if any later job has no free box.

    Parameters
    ----------
    words : uint64 array, shape (X, Y)
        Free routers, rows along Z as bits.
    jobs : int64 array, shape (placed,)
        Numbers of the jobs to place.
    kinds : int64 array, shape (jobs,)
        Kind of each job of the problem.
    first : int64 array, shape (kinds + 1,)
        Offsets: a job of kind k may take ``shapes[first[k]:first[k + 1]]``.
    shapes : int64 array, shape (shapes, 3)
        Routers of each shape in each dimension.
    needs : int64 array, shape (kinds,)
        Least number of routers of the shapes of each kind.
    side : int
        Routers along Z.
    wrap : (bool, bool, bool)
        Whether each dimension wraps around.
    most : int
        Largest number of boxes to try.

    Returns
    -------
    answer : int
        Outcome: `YES`, `NO` or `OPEN`.
    tried : int
        Number of boxes tried.
    placed : int64 array, shape (placed, 6)
        Boxes of the jobs, for `YES`.
    needed : bool array, shape (placed,)
        For `NO`: a set of jobs that together do not fit.
    """
    count = len(jobs)
    sx, sy = words.shape
    placed = np.zeros((count, 6), dtype=np.int64)
    needed = np.zeros(count, dtype=np.bool_)
    free = np.empty((count + 1, sx, sy), dtype=np.uint64)
    free[0] = words
    starts = np.zeros((count, 2 * sy), dtype=np.uint64)
    # position of each job in its list: shape, layer, row; `starts` has the remaining bits of rows
    at = np.zeros((count, 3), dtype=np.int64)
    tried = 0
    job = 0
    entered = True
    while True:
        if entered:
            entered = False
            blocked = -1
            for other in range(job, count):
                kind = kinds[jobs[other]]
                if other > job and kind == kinds[jobs[other - 1]]:
                    continue
                own = shapes[first[kind] : first[kind + 1]]
                if not fits(free[job], own, needs[kind], side, wrap):
                    blocked = other
                    break
            if blocked >= 0:
                needed[blocked] = True
                job -= 1
            elif job == count:
                return YES, tried, placed, needed
            else:
                at[job, 0], at[job, 1], at[job, 2] = first[kinds[jobs[job]]], 0, -1
                if job > 0 and kinds[jobs[job]] == kinds[jobs[job - 1]]:
                    at[job] = at[job - 1]
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
        # next box in the list
        found = False
        while not found:
            if at[job, 2] < 0:
                if layer_starts(free[job], at[job, 1], shapes[at[job, 0]], side, wrap, starts[job]):
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
                if at[job, 0] == first[kinds[jobs[job]] + 1]:
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
