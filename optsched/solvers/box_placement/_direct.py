"""Anchors of free boxes, boxes in corners and contacts of boxes, on bit rows, compiled.

Bit z of word [x, y] stands for router (x, y, z), as in `optsched.boxes._rows`. The reference
implementation is in ``tests/solvers/box_placement/test_direct_placement.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.boxes._anchors import find_anchors
from optsched.boxes._rows import NONE, ONE, ahead, full, lowest, ones, run_of
from optsched.compiled import kernel

Words = NDArray[np.uint64]
Triple = tuple[int, int, int]
Wrap = tuple[bool, bool, bool]


@kernel
def free_at(words: Words, shape: Triple, side: int, wrap: Wrap) -> Words:
    """Return the anchors of free boxes of a shape; 0 alone in a dimension that the shape fills."""
    sx, sy = words.shape
    nx, ny, nz = shape
    found = np.zeros((sx, sy), dtype=np.uint64)
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    find_anchors(words, nx, ny, nz, side, wrap, found, room)
    return found


@kernel
def cornered(words: Words, shape: Triple, side: int, wrap: Wrap) -> Words:
    """Return the anchors of free boxes of a shape that cannot slide in any dimension."""
    sx, sy = words.shape
    nx, ny, nz = shape
    stays: Words = free_at(words, shape, side, wrap)
    if not stays.any():
        return stays
    if nx < sx:
        # a face is open if all of its routers are free
        face = free_at(words, (1, ny, nz), side, wrap)
        for x in range(sx):
            if wrap[0] or 0 < x < sx - nx:
                for y in range(sy):
                    stays[x, y] &= ~(face[(x - 1) % sx, y] & face[(x + nx) % sx, y])
    if ny < sy:
        face = free_at(words, (nx, 1, nz), side, wrap)
        for y in range(sy):
            if wrap[1] or 0 < y < sy - ny:
                for x in range(sx):
                    stays[x, y] &= ~(face[x, (y - 1) % sy] & face[x, (y + ny) % sy])
    if nz < side:
        face = free_at(words, (nx, ny, 1), side, wrap)
        for x in range(sx):
            for y in range(sy):
                open_above = ahead(face[x, y], nz, side, wrap[2])
                stays[x, y] &= ~(open_above & behind(face[x, y], side, wrap[2]))
    return stays


@kernel
def behind(word: np.uint64, side: int, ring: bool) -> np.uint64:
    """Return the bits whose lower neighbor is set."""
    over = word >> np.uint64(side - 1) if ring else NONE
    following: np.uint64 = ((word << ONE) | over) & full(side)
    return following


@kernel
def busiest(words: Words, at: Words, shape: Triple, side: int, wrap: Wrap) -> Triple:
    """Return the first of the anchors `at` with the most contacts, x = -1 without anchors."""
    sx, sy = words.shape
    most = -1
    best = (-1, 0, 0)
    for x in range(sx):
        for y in range(sy):
            rest = at[x, y]
            while rest != NONE:
                z = lowest(rest)
                rest &= rest - ONE
                touched = touching(words, (x, y, z), shape, side, wrap)
                if touched > most:
                    most = touched
                    best = (x, y, z)
    return best


@kernel
def touching(words: Words, at: Triple, shape: Triple, side: int, wrap: Wrap) -> int:
    """Return the number of contacts of a box: router faces next to a used router or a border."""
    sx, sy = words.shape
    x, y, z = at
    nx, ny, nz = shape
    row = run_of(z, nz, side)
    count = 0
    if nx < sx:
        for beside in (x - 1, x + nx):
            if not wrap[0] and not 0 <= beside < sx:
                count += ny * nz
                continue
            for j in range(y, y + ny):
                count += ones(row & ~words[beside % sx, j - sy if j >= sy else j])
    if ny < sy:
        for beside in (y - 1, y + ny):
            if not wrap[1] and not 0 <= beside < sy:
                count += nx * nz
                continue
            for i in range(x, x + nx):
                count += ones(row & ~words[i - sx if i >= sx else i, beside % sy])
    if nz < side:
        ends = NONE
        for beside in (z - 1, z + nz):
            if not wrap[2] and not 0 <= beside < side:
                count += nx * ny
            else:
                ends |= ONE << np.uint64(beside % side)
        # both ends may be the same router
        twice = 2 if ends != NONE and nz == side - 1 and wrap[2] else 1
        for i in range(x, x + nx):
            for j in range(y, y + ny):
                held = ~words[i - sx if i >= sx else i, j - sy if j >= sy else j]
                count += twice * ones(ends & held)
    return count
