"""Rows of a torus as words of bits, and the anchors of free boxes on them, compiled.

Bit z of word [x, y] is set if router (x, y, z) is free. A box is free where the AND of the words of
its rows has a run of ones as long as the box. Constants and shifts are unsigned, because numba
turns a mix of signed and unsigned integers into floats.
"""

from __future__ import annotations

import numpy as np

from optsched.arrays import Flags, Ints, Words
from optsched.compiled import kernel

Wrap = tuple[bool, bool, bool]
Sides = tuple[int, int, int]

NONE = np.uint64(0)
ONE = np.uint64(1)
PAIRS = np.uint64(0x5555555555555555)
FOURS = np.uint64(0x3333333333333333)
EIGHTS = np.uint64(0x0F0F0F0F0F0F0F0F)
BYTES = np.uint64(0x0101010101010101)


@kernel
def words_of(free: Flags) -> Words:
    """Return the rows along Z as words, shape (X, Y)."""
    words = np.empty(free.shape[:2], dtype=np.uint64)
    for x in range(free.shape[0]):
        for y in range(free.shape[1]):
            word = NONE
            for z in range(free.shape[2]):
                word |= np.uint64(free[x, y, z]) << np.uint64(z)
            words[x, y] = word
    return words


@kernel
def words_outside(boxes: Ints, sx: int, sy: int, side: int) -> Words:
    """Return the rows along Z of a torus on which all routers outside boxes are free."""
    words = np.full((sx, sy), full(side))
    for number in range(len(boxes)):
        fill(words, boxes[number], side, False)
    return words


@kernel(allocates=False)
def ones(word: np.uint64) -> np.int64:
    """Return the number of bits that are set."""
    word = word - ((word >> ONE) & PAIRS)
    word = (word & FOURS) + ((word >> np.uint64(2)) & FOURS)
    word = (word + (word >> np.uint64(4))) & EIGHTS
    return np.int64((word * BYTES) >> np.uint64(56))


@kernel(allocates=False)
def lowest(word: np.uint64) -> np.int64:
    """Return the index of the lowest bit that is set."""
    return ones(~word & (word - ONE))


@kernel(allocates=False)
def full(side: int) -> np.uint64:
    """Return the word of a row whose routers are all free."""
    return ~NONE >> np.uint64(64 - side)


@kernel(allocates=False)
def run_of(z: int, nz: int, side: int) -> np.uint64:
    """Return the bits of nz routers from z on, with wrap-around."""
    run: np.uint64 = full(nz)
    if z > 0:
        run = ((run << np.uint64(z)) | (run >> np.uint64(side - z))) & full(side)
    return run


@kernel(allocates=False)
def fill(words: Words, box: Ints, side: int, free: bool) -> None:
    """Mark the routers of a box (x, y, z, nx, ny, nz) as free or as taken."""
    sx, sy = words.shape
    run = run_of(box[2], box[5], side)
    for x in range(box[0], box[0] + box[3]):
        from_x = x if x < sx else x - sx
        for y in range(box[1], box[1] + box[4]):
            from_y = y if y < sy else y - sy
            if free:
                words[from_x, from_y] |= run
            else:
                words[from_x, from_y] &= ~run


@kernel(allocates=False)
def put(box: Ints, x: int, y: int, z: int, nx: int, ny: int, nz: int) -> None:
    """Write a box."""
    box[0], box[1], box[2], box[3], box[4], box[5] = x, y, z, nx, ny, nz


@kernel(allocates=False)
def ahead(word: np.uint64, steps: int, side: int, ring: bool) -> np.uint64:
    """Return a mask of the bits that have a set bit `steps` ahead, 0 < steps < side."""
    near = word >> np.uint64(steps)
    if not ring:
        return near
    return near | ((word << np.uint64(side - steps)) & full(side))


@kernel(allocates=False)
def starts_of(word: np.uint64, length: int, side: int, ring: bool) -> np.uint64:
    """Return a mask of the starts of runs of `length` ones; a whole ring begins at 0."""
    if length == side:
        return ONE if word == full(side) else NONE
    done = 1
    while done < length and word != NONE:
        steps = min(done, length - done)
        word &= ahead(word, steps, side, ring)
        done += steps
    return word


@kernel(allocates=False)
def longest_run(word: np.uint64, least: int, side: int, ring: bool) -> tuple[int, int]:
    """Return start and length of the first longest run of at least `least` ones, or length 0."""
    if least > side:
        return 0, 0
    if word == full(side):
        return 0, side
    starts = starts_of(word, least, side, ring)
    if starts == NONE:
        return 0, 0
    length = least
    while True:
        longer = starts & ahead(word, length, side, ring)
        if longer == NONE:
            return lowest(starts), length
        starts = longer
        length += 1


@kernel(allocates=False)
def reach(at: int, side: int, ring: bool) -> int:
    """Return the longest side of a box that begins at `at`; a whole ring only begins at 0."""
    if not ring:
        return side - at
    return side if at == 0 else side - 1


@kernel(allocates=False)
def may_be_side(length: int, side: int, longest: int) -> bool:
    """Return whether a job's box may be so long; see `optsched.boxes.box.Grid.longest`."""
    return length <= longest or length == side


@kernel(allocates=False)
def nothing_in(rows: Words) -> bool:
    """Return whether no bit is set."""
    union = NONE
    for y in range(len(rows)):
        union |= rows[y]
    return union == NONE


@kernel
def slices_of(words: Words, ring: bool) -> Words:
    """Return the AND of the words of nx layers from x on as [x, nx - 1, y]; 0 beyond the grid."""
    sx, sy = words.shape
    slices = np.zeros((sx, sx, sy), dtype=np.uint64)
    for x in range(sx):
        slices[x, 0] = words[x]
        for nx in range(2, reach(x, sx, ring) + 1):
            layer = words[(x + nx - 1) % sx]
            for y in range(sy):
                slices[x, nx - 1, y] = slices[x, nx - 2, y] & layer[y]
            if nothing_in(slices[x, nx - 1]):
                break
    return slices


@kernel
def bounds_of(slices: Words, longest: int) -> Ints:
    """Return upper bounds on the free boxes of admitted nx layers from x on, as [x, nx - 1]."""
    sx, _, sy = slices.shape
    bounds = np.zeros((sx, sx), dtype=np.int64)
    for x in range(sx):
        for nx in range(1, sx + 1):
            if not may_be_side(nx, sx, longest):
                continue
            free = 0
            for y in range(sy):
                free += ones(slices[x, nx - 1, y])
            bounds[x, nx - 1] = nx * free
            if free == 0:
                break
    return bounds


@kernel(allocates=False)
def anchor_count(length: int, side: int, ring: bool) -> int:
    """Return the number of anchors, from 0 on, of boxes in one dimension."""
    if length >= side:
        return int(length == side)
    return side if ring else side - length + 1


@kernel(allocates=False)
def find_anchors(
    words: Words, nx: int, ny: int, nz: int, side: int, wrap: Wrap, found: Words, room: Words
) -> bool:
    """Find the anchors of free boxes, as bits of `found`; return whether there are any.

    `found`, shape (X, Y), and `room`, shape (2 X, 2 Y), are overwritten.
    """
    # each dimension in turn is reduced to the starts of runs as long as the box, of which each
    # step doubles the length
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
def anchors_of(words: Words, nx: int, ny: int, nz: int, side: int, wrap: Wrap) -> Ints:
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
def fullest(words: Words, anchors: Ints, nx: int, ny: int, nz: int, side: int) -> int:
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
    words: Words, shapes: Ints, side: int, wrap: Wrap, box: Ints, starts: Words, room: Words
) -> int:
    """Find the first free box of the first shape that has one; return the shape's number or -1.

    `box`, shape (6,), and `starts` and `room`, as in `find_anchors`, are overwritten.
    """
    sx, sy = words.shape
    for number in range(len(shapes)):
        nx, ny, nz = shapes[number, 0], shapes[number, 1], shapes[number, 2]
        if not find_anchors(words, nx, ny, nz, side, wrap, starts, room):
            continue
        for x in range(sx):
            for y in range(sy):
                if starts[x, y] != NONE:
                    put(box, x, y, lowest(starts[x, y]), nx, ny, nz)
                    return number
    return -1


@kernel
def first_fit(words: Words, shapes: Ints, side: int, wrap: Wrap) -> Ints:
    """Return the first free box of the first shape that has one; zeros if no shape has."""
    sx, sy = words.shape
    found = np.zeros(6, dtype=np.int64)
    starts = np.empty((sx, sy), dtype=np.uint64)
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    find_first_fit(words, shapes, side, wrap, found, starts, room)
    return found
