"""Anchors of free boxes of a shape on a torus of rows of bits, compiled.

`words` are the rows along Z, shape (X, Y), as in `optsched.boxes._rows`; `side` is the number of
routers along Z, and `wrap` says whether each dimension wraps around.
"""

from __future__ import annotations

import numpy as np

from optsched.boxes._rows import (
    NONE,
    ONE,
    Integers,
    Words,
    Wrap,
    ahead,
    full,
    lowest,
    ones,
    run_of,
    starts_of,
)
from optsched.compiled import kernel


@kernel(allocates=False)
def anchor_count(length: int, side: int, ring: bool) -> int:
    """Return the number of anchors, from 0 on, of boxes in one dimension."""
    if length >= side:
        return int(length == side)
    return side if ring else side - length + 1


@kernel(allocates=False)
def find_anchors(
    words: Words,
    nx: int,
    ny: int,
    nz: int,
    side: int,
    wrap: Wrap,
    found: Words,
    room: Words,
) -> bool:
    """Find the anchors of free boxes of nx x ny x nz routers; return whether there are any.

    The anchors overwrite `found`, shape (X, Y), as bits of rows. `room`, shape (2 X, 2 Y), is
    overwritten. Each dimension in turn is reduced to the starts of runs as long as the box, of
    which each step doubles the length.
    """
    sx, sy = words.shape
    ax, ay = anchor_count(nx, sx, wrap[0]), anchor_count(ny, sy, wrap[1])
    if ax == 0 or ay == 0 or nz > side:
        return False
    rows, columns = ax + nx - 1, ay + ny - 1
    for x in range(rows):
        from_x = x if x < sx else x - sx
        for y in range(sy):
            room[x, y] = words[from_x, y]
    done = 1
    while done < nx:
        steps = min(done, nx - done)
        rows -= steps
        for x in range(rows):
            for y in range(sy):
                room[x, y] &= room[x + steps, y]
        done += steps
    union = NONE
    for x in range(sx):
        row = NONE
        if x < ax:
            for y in range(sy):
                row |= room[x, y]
        if starts_of(row, nz, side, wrap[2]) == NONE:
            for y in range(sy):
                found[x, y] = NONE
            continue
        for y in range(sy, columns):
            room[x, y] = room[x, y - sy]
        remaining = columns
        done = 1
        while done < ny:
            steps = min(done, ny - done)
            remaining -= steps
            for y in range(remaining):
                room[x, y] &= room[x, y + steps]
            done += steps
        # `starts_of` for all words of a row at once
        if nz == side:
            for y in range(ay):
                room[x, y] = ONE if room[x, y] == full(side) else NONE
        else:
            done = 1
            while done < nz:
                steps = min(done, nz - done)
                for y in range(ay):
                    room[x, y] &= ahead(room[x, y], steps, side, wrap[2])
                done += steps
        for y in range(sy):
            word = room[x, y] if y < ay else NONE
            found[x, y] = word
            union |= word
    return bool(union != NONE)


@kernel
def anchors_of(words: Words, nx: int, ny: int, nz: int, side: int, wrap: Wrap) -> Integers:
    """Return the anchors of the free boxes of nx x ny x nz routers, in row-major order."""
    sx, sy = words.shape
    starts = np.empty((sx, sy), dtype=np.uint64)
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    anchors = np.empty((words.size * side, 3), dtype=np.int64)
    count = 0
    if find_anchors(words, nx, ny, nz, side, wrap, starts, room):
        for x in range(sx):
            for y in range(sy):
                word = starts[x, y]
                while word != NONE:
                    anchors[count, 0], anchors[count, 1], anchors[count, 2] = x, y, lowest(word)
                    count += 1
                    word &= word - ONE
    return anchors[:count].copy()


@kernel(allocates=False)
def fullest(words: Words, anchors: Integers, nx: int, ny: int, nz: int, side: int) -> int:
    """Return the number of the first of the boxes with the fewest free routers."""
    sx, sy = words.shape
    found, least = -1, 0
    for number in range(len(anchors)):
        at_x, at_y = anchors[number, 0], anchors[number, 1]
        run = run_of(anchors[number, 2], nz, side)
        free = 0
        for x in range(at_x, at_x + nx):
            from_x = x if x < sx else x - sx
            for y in range(at_y, at_y + ny):
                free += ones(words[from_x, y if y < sy else y - sy] & run)
            if found >= 0 and free >= least:
                break
        if found < 0 or free < least:
            found, least = number, free
    return found


@kernel(allocates=False)
def find_first_fit(
    words: Words,
    shapes: Integers,
    side: int,
    wrap: Wrap,
    box: Integers,
    starts: Words,
    room: Words,
) -> int:
    """Find the first free box of the first shape that has one; return the shape's number or -1.

    The box overwrites `box`, shape (6,). `starts` and `room`, shapes (X, Y) and (2 X, 2 Y), are
    overwritten.
    """
    sx, sy = words.shape
    for number in range(len(shapes)):
        nx, ny, nz = shapes[number, 0], shapes[number, 1], shapes[number, 2]
        if not find_anchors(words, nx, ny, nz, side, wrap, starts, room):
            continue
        for x in range(sx):
            for y in range(sy):
                if starts[x, y] != NONE:
                    box[0], box[1], box[2] = x, y, lowest(starts[x, y])
                    box[3], box[4], box[5] = nx, ny, nz
                    return number
    return -1


@kernel
def first_fit(words: Words, shapes: Integers, side: int, wrap: Wrap) -> Integers:
    """Return the first free box of the first shape that has one; zeros if no shape has."""
    sx, sy = words.shape
    found = np.zeros(6, dtype=np.int64)
    starts = np.empty((sx, sy), dtype=np.uint64)
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    find_first_fit(words, shapes, side, wrap, found, starts, room)
    return found
