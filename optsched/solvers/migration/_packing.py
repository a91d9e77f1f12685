"""Depth-first search for disjoint boxes of jobs in the free routers of a torus, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._free_boxes import largest_box
from optsched.boxes._rows import (
    NONE,
    ONE,
    Integers,
    Words,
    Wrap,
    fill,
    find_anchors,
    find_first_fit,
    lowest,
    run_of,
)
from optsched.compiled import kernel

Flags = NDArray[np.bool_]

AT_ONCE = 16
"""Number of shapes to try before the largest free box is computed."""

NO, YES, OPEN = 0, 1, 2
"""Outcomes of a search; `OPEN` if the limit of boxes to try is reached."""


@kernel(allocates=False)
def is_free(words: Words, box: Integers, side: int) -> bool:
    """Return whether all routers of a box are free."""
    sx, sy = words.shape
    run = run_of(box[2], box[5], side)
    for x in range(box[0], box[0] + box[3]):
        for y in range(box[1], box[1] + box[4]):
            if ~words[x % sx, y % sy] & run != NONE:
                return False
    return True


@kernel
def fits(
    words: Words,
    shapes: Integers,
    least: int,
    side: int,
    wrap: Wrap,
    box: Integers,
    starts: Words,
    room: Words,
) -> bool:
    """Return whether a box of any of `shapes`, with at least `least` routers each, is free.

    The first one overwrites `box`; see `find_first_fit` for `starts` and `room`.
    """
    if find_first_fit(words, shapes[:AT_ONCE], side, wrap, box, starts, room) >= 0:
        return True
    if len(shapes) <= AT_ONCE:
        return False
    # before the other shapes: is any free box large enough?
    sides = words.shape[0], words.shape[1], side
    if largest_box(words, least - 1, least, side, wrap, sides)[3] == 0:
        return False
    return bool(find_first_fit(words, shapes[AT_ONCE:], side, wrap, box, starts, room) >= 0)


@kernel
def pack(
    # Routers that are free while the jobs are in their boxes, rows along Z as bits, shape (X,
    # Y)
    words: Words,
    boxes: Integers,  # present box of each job of the problem, shape (jobs, 6)
    jobs: Integers,  # numbers of the jobs to place, shape (placed,)
    place: Integers,  # box that is taken, shape (6,)
    kinds: Integers,  # kind of each job of the problem, shape (jobs,)
    # Offsets: a job of kind k may take ``shapes[first[k]:first[k + 1]]``, shape (kinds + 1,)
    first: Integers,
    shapes: Integers,  # routers of each shape in each dimension, shape (shapes, 3)
    needs: Integers,  # least number of routers of the shapes of each kind, shape (kinds,)
    side: int,
    wrap: Wrap,  # whether each dimension wraps around
    most: int,  # largest number of boxes to try
    # Room for the free routers and the remaining anchors of each job; overwritten, shape (at
    # least placed + 1, 2, X, Y)
    levels: Words,
) -> tuple[int, int, Integers, Flags]:
    """Search for disjoint new boxes of jobs, in the order of jobs, beside a place.

    A job tries its shapes in order, and the anchors of each in row-major order. Of consecutive jobs
    of one kind, each takes a later box in that order than its predecessor (symmetry breaking). The
    search backtracks if any later job has no free box.

    Results: `answer`: `YES`, `NO` or `OPEN`; `tried`: number of boxes tried; `placed`:
    boxes of the jobs, for `YES`; `needed`: for `NO`, a set of jobs that together do not fit.
    """
    count = len(jobs)
    sx, sy = words.shape
    placed = np.zeros((count, 6), dtype=np.int64)
    needed = np.zeros(count, dtype=np.bool_)
    fitting = np.zeros((len(needs), 6), dtype=np.int64)  # a box of each kind that was free once
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    scratch = np.empty((sx, sy), dtype=np.uint64)
    # position of each job in its list: shape, layer, row
    at = np.zeros((count, 3), dtype=np.int64)
    free = levels[0, 0]
    for x in range(sx):
        for y in range(sy):
            free[x, y] = words[x, y]
    for job in jobs:
        fill(free, boxes[job], side, True)
    fill(free, place, side, False)
    tried = 0
    job = 0
    entered = True
    while True:
        if entered:
            entered = False
            free = levels[job, 0]
            blocked = -1
            for other in range(job, count):
                kind = kinds[jobs[other]]
                if other > job and kind == kinds[jobs[other - 1]]:
                    continue
                box = fitting[kind]
                if box[3] > 0 and is_free(free, box, side):
                    continue
                own = shapes[first[kind] : first[kind + 1]]
                if not fits(free, own, needs[kind], side, wrap, box, scratch, room):
                    blocked = other
                    break
            if blocked >= 0:
                needed[blocked] = True
                job -= 1
            elif job == count:
                return YES, tried, placed, needed
            else:
                kind = kinds[jobs[job]]
                follows = job > 0 and kind == kinds[jobs[job - 1]]
                at[job, 0], at[job, 1], at[job, 2] = first[kind], 0, 0
                if follows:
                    at[job] = at[job - 1]
                starts, shape = levels[job, 1], shapes[at[job, 0]]
                if not find_anchors(free, shape[0], shape[1], shape[2], side, wrap, starts, room):
                    at[job, 1] = sx
                elif follows:
                    behind = placed[job - 1, 2] + 1
                    if behind > 63:
                        starts[at[job, 1], at[job, 2]] = NONE
                    else:
                        starts[at[job, 1], at[job, 2]] &= ~NONE << np.uint64(behind)
        if job < 0:
            return NO, tried, placed, needed
        # next box in the list
        free, starts = levels[job, 0], levels[job, 1]
        last = first[kinds[jobs[job]] + 1] - 1
        while at[job, 1] == sx or starts[at[job, 1], at[job, 2]] == NONE:
            if at[job, 1] < sx:
                at[job, 2] += 1
                if at[job, 2] == sy:
                    at[job, 1] += 1
                    at[job, 2] = 0
            elif at[job, 0] == last:
                break
            else:
                at[job, 0] += 1
                shape = shapes[at[job, 0]]
                if find_anchors(free, shape[0], shape[1], shape[2], side, wrap, starts, room):
                    at[job, 1], at[job, 2] = 0, 0
        if at[job, 1] == sx:
            needed[job] = True
            job -= 1
            continue
        if tried >= most:
            return OPEN, tried, placed, needed
        tried += 1
        x, y = at[job, 1], at[job, 2]
        word = starts[x, y]
        shape = shapes[at[job, 0]]
        placed[job, 0], placed[job, 1], placed[job, 2] = x, y, lowest(word)
        placed[job, 3], placed[job, 4], placed[job, 5] = shape[0], shape[1], shape[2]
        starts[x, y] = word & (word - ONE)
        levels[job + 1, 0] = free
        fill(levels[job + 1, 0], placed[job], side, False)
        job += 1
        entered = True
