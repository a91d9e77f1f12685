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
    bounds_of,
    lowest,
    nothing_in,
    reach,
    slices_of,
    starts_of,
)
from optsched.compiled import kernel

Shape = tuple[int, int, int] | Integers


@kernel
def starts_in(starts: Words, ny: int, nz: int, side: int, wrap: Wrap) -> bool:
    """Find the starts of free rectangles of ny rows of nz routers; return whether there are any.

    The first half of `starts`, shape (2 Y), has the rows, and is overwritten by the starts.
    """
    sy = len(starts) // 2
    if ny > sy or nz > side:
        return False
    if wrap[1]:
        starts[sy:] = starts[:sy]
    else:
        starts[sy:] = NONE
    done = 1
    while done < ny:
        steps = min(done, ny - done)
        for y in range(2 * sy - steps):
            starts[y] &= starts[y + steps]
        done += steps
    for y in range(1 if ny == sy else sy):
        if starts[y] != NONE:
            starts[y] = starts_of(starts[y], nz, side, wrap[2])
    if ny == sy:
        starts[1:] = NONE
    return not nothing_in(starts[:sy])


@kernel
def layer_starts(words: Words, x: int, shape: Shape, side: int, wrap: Wrap, starts: Words) -> bool:
    """Find the anchors of free boxes of a shape in layer x; return whether there are any.

    The first half of `starts`, shape (2 Y), is overwritten by the anchors as bits of rows; the
    array is undefined without any.
    """
    sx, sy = words.shape
    if reach(x, sx, wrap[0]) < shape[0]:
        return False
    starts[:sy] = words[x]
    for layer in range(x + 1, x + shape[0]):
        rows = words[layer % sx]
        for y in range(sy):
            starts[y] &= rows[y]
    return bool(starts_in(starts, shape[1], shape[2], side, wrap))


@kernel
def anchors_of(words: Words, shape: Shape, side: int, wrap: Wrap) -> Integers:
    """Return the anchors of the free boxes of a shape, in row-major order."""
    sx, sy = words.shape
    found = np.empty((words.size * side, 3), dtype=np.int64)
    count = 0
    starts = np.zeros(2 * sy, dtype=np.uint64)
    for x in range(sx):
        if not layer_starts(words, x, shape, side, wrap, starts):
            continue
        for y in range(sy):
            word = starts[y]
            while word != NONE:
                found[count, 0], found[count, 1], found[count, 2] = x, y, lowest(word)
                count += 1
                word &= word - ONE
    return found[:count].copy()


@kernel
def first_fit(words: Words, shapes: Integers, side: int, wrap: Wrap) -> Integers:
    """Return the first free box of the first shape that has one; zeros if no shape has."""
    sx, sy = words.shape
    slices = slices_of(words, wrap[0])
    bounds = bounds_of(slices)
    found = np.zeros(6, dtype=np.int64)
    starts = np.zeros(2 * sy, dtype=np.uint64)
    for nx, ny, nz in shapes:
        for x in range(sx):
            if reach(x, sx, wrap[0]) < nx or bounds[x, nx - 1] < nx * ny * nz:
                continue
            starts[:sy] = slices[x, nx - 1]
            if not starts_in(starts, ny, nz, side, wrap):
                continue
            for y in range(sy):
                if starts[y] != NONE:
                    found[0], found[1], found[2] = x, y, lowest(starts[y])
                    found[3], found[4], found[5] = nx, ny, nz
                    return found
    return found
