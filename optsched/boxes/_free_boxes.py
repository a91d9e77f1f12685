"""Free boxes of a torus on rows of bits, compiled.

Bit z of word [x, y] says that router (x, y, z) is free. A box is free where the AND of the words of
its rows has a run of ones as long as the box. Constants and shifts are unsigned: numba makes floats
of a signed and an unsigned integer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Wrap = tuple[bool, bool, bool]

NONE = np.uint64(0)
ONE = np.uint64(1)
PAIRS = np.uint64(0x5555555555555555)
FOURS = np.uint64(0x3333333333333333)
EIGHTS = np.uint64(0x0F0F0F0F0F0F0F0F)
BYTES = np.uint64(0x0101010101010101)


@kernel
def words_of(free: NDArray[np.bool_]) -> Words:
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
def ones(word: np.uint64) -> np.int64:
    """Return how many bits are set."""
    word = word - ((word >> ONE) & PAIRS)
    word = (word & FOURS) + ((word >> np.uint64(2)) & FOURS)
    word = (word + (word >> np.uint64(4))) & EIGHTS
    return np.int64((word * BYTES) >> np.uint64(56))


@kernel
def lowest(word: np.uint64) -> np.int64:
    """Return the number of the lowest bit that is set."""
    return ones(~word & (word - ONE))


@kernel
def full(side: int) -> np.uint64:
    """Return the word of a row whose routers are all free."""
    return ~NONE >> np.uint64(64 - side)


@kernel
def ahead(word: np.uint64, steps: int, side: int, ring: bool) -> np.uint64:
    """Return which bits have one set so many steps ahead, 0 < steps < side."""
    near = word >> np.uint64(steps)
    if not ring:
        return near
    return near | ((word << np.uint64(side - steps)) & full(side))


@kernel
def starts_of(word: np.uint64, length: int, side: int, ring: bool) -> np.uint64:
    """Return where runs of so many ones begin; a whole ring begins at 0."""
    if length == side:
        return ONE if word == full(side) else NONE
    done = 1
    while done < length and word != NONE:
        steps = min(done, length - done)
        word &= ahead(word, steps, side, ring)
        done += steps
    return word


@kernel
def longest_run(word: np.uint64, least: int, side: int, ring: bool) -> tuple[int, int]:
    """Return begin and length of the first longest run of at least so many ones, or length 0."""
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


@kernel
def slices_of(words: Words, ring: bool) -> Words:
    """Return the AND of the words of nx layers from x on as [x, nx - 1, y]; 0 where there are none.

    All layers of a ring begin at 0.
    """
    sx, sy = words.shape
    slices = np.zeros((sx, sx, sy), dtype=np.uint64)
    for x in range(sx):
        slices[x, 0] = words[x]
        for nx in range(2, reach(x, sx, ring) + 1):
            slices[x, nx - 1] = slices[x, nx - 2] & words[(x + nx - 1) % sx]
    return slices


@kernel
def reach(at: int, side: int, ring: bool) -> int:
    """Return how long a box from there on may be; a whole ring only begins at 0."""
    if not ring:
        return side - at
    return side if at == 0 else side - 1


@kernel
def maximal(words: Words, side: int, wrap: Wrap) -> Integers:
    """Return all maximal free boxes, ordered by x, nx, y, ny, z.

    A run of ones of the AND of a box's rows is a maximal box if it has a bit that is not set in the
    rows next to it, on each of its four sides.
    """
    sx, sy = words.shape
    slices = slices_of(words, wrap[0])
    nothing = np.zeros(sy, dtype=np.uint64)
    found = np.empty((1024, 6), dtype=np.int64)
    count = 0
    for x in range(sx):
        for nx in range(1, reach(x, sx, wrap[0]) + 1):
            rows = slices[x, nx - 1]
            inside = nx < sx and wrap[0]
            before = words[(x - 1) % sx] if inside or (nx < sx and x > 0) else nothing
            behind = words[(x + nx) % sx] if inside or x + nx < sx else nothing
            for y in range(sy):
                below = rows[(y - 1) % sy] if wrap[1] or y > 0 else NONE
                word, beside_x, behind_x = ~NONE, NONE, NONE
                for ny in range(1, reach(y, sy, wrap[1]) + 1):
                    last = (y + ny - 1) % sy
                    word &= rows[last]
                    beside_x |= ~before[last]
                    behind_x |= ~behind[last]
                    if ny == sy:
                        below, above = NONE, NONE
                    else:
                        above = rows[(last + 1) % sy] if wrap[1] or last + 1 < sy else NONE
                    if word == NONE or (y > 0 and word & ~below == NONE):
                        break
                    if (
                        word & ~below == NONE
                        or word & ~above == NONE
                        or word & beside_x == NONE
                        or word & behind_x == NONE
                    ):
                        continue
                    # the run that goes on behind the last router is the last one
                    over = NONE
                    rest = word
                    if wrap[2] and word != full(side) and (word >> np.uint64(side - 1)) != NONE:
                        over = word & ~(word + ONE)
                        rest = word & ~over
                    while rest != NONE:
                        lowest_bit = rest & (~rest + ONE)
                        run = rest & ~(rest + lowest_bit)
                        rest &= ~run
                        if rest == NONE:
                            run |= over
                        if (
                            run & ~below == NONE
                            or run & ~above == NONE
                            or run & beside_x == NONE
                            or run & behind_x == NONE
                        ):
                            continue
                        if count == len(found):
                            longer = np.empty((2 * count, 6), dtype=np.int64)
                            longer[:count] = found
                            found = longer
                        found[count, 0] = x
                        found[count, 1] = y
                        found[count, 2] = ones(lowest_bit - ONE)
                        found[count, 3] = nx
                        found[count, 4] = ny
                        found[count, 5] = ones(run)
                        count += 1
    return found[:count].copy()


@kernel
def best_from(
    rows: Words, nx: int, y: int, best: int, side: int, wrap: Wrap
) -> tuple[int, int, int, int]:
    """Return the largest free box of more than `best` routers that begins in row y.

    Returns
    -------
    bound : int
        No free box from there on is larger.
    ny, z, nz : int
        The box; ny is 0 if there is none.
    """
    sy = len(rows)
    furthest = reach(y, sy, wrap[1])
    word = ~NONE
    bound, best_ny, best_z, best_nz = 0, 0, 0, 0
    for ny in range(1, furthest + 1):
        word &= rows[(y + ny - 1) % sy]
        free = nx * ones(word)
        if free * furthest <= best:
            return max(bound, free * furthest), best_ny, best_z, best_nz
        if free * ny > best:
            least = best // (nx * ny) + 1
            z, nz = longest_run(word, least, side, wrap[2])
            if nz == 0:
                bound = max(bound, nx * ny * (least - 1))
            else:
                best = bound = nx * ny * nz
                best_ny, best_z, best_nz = ny, z, nz
        else:
            bound = max(bound, free * ny)
    return bound, best_ny, best_z, best_nz


@kernel
def bounds_of(slices: Words, wrap: Wrap) -> Integers:
    """Return what no free box of nx layers from (x, y) on exceeds, as [x, nx - 1, y]."""
    bounds = np.empty(slices.shape, dtype=np.int64)
    sx, _, sy = slices.shape
    for x in range(sx):
        for nx in range(1, sx + 1):
            for y in range(sy):
                free = nx * ones(slices[x, nx - 1, y])
                bounds[x, nx - 1, y] = free * reach(y, sy, wrap[1])
    return bounds


@kernel
def largest(
    slices: Words, bounds: Integers, best: int, enough: int, side: int, wrap: Wrap
) -> Integers:
    """Return the first largest free box of more than `best` routers; all zeros if there is none.

    Parameters
    ----------
    slices : uint64 array, shape (X, X, Y)
        What `slices_of` returns.
    bounds : int64 array, shape (X, X, Y)
        What no free box from there on exceeds; made tighter.
    best : int
        Smaller boxes are not looked for.
    enough : int
        The search ends at the first box of so many routers.
    side : int
        Routers along Z.
    wrap : (bool, bool, bool)
        Whether each dimension wraps around.
    """
    sx, _, sy = slices.shape
    found = np.zeros(6, dtype=np.int64)
    for x in range(sx):
        for nx in range(1, reach(x, sx, wrap[0]) + 1):
            for y in range(sy):
                if bounds[x, nx - 1, y] <= best:
                    continue
                bound, ny, z, nz = best_from(slices[x, nx - 1], nx, y, best, side, wrap)
                bounds[x, nx - 1, y] = bound
                if ny == 0:
                    continue
                best = bound
                found[0], found[1], found[2] = x, y, z
                found[3], found[4], found[5] = nx, ny, nz
                if best >= enough:
                    return found
    return found


@kernel
def bins(words: Words, at_least: int, side: int, wrap: Wrap) -> Integers:
    """Return the first largest free box again and again; `words` are used up.

    What was free can only become less, so what no box exceeded once none exceeds later.
    """
    sx, sy = words.shape
    slices = slices_of(words, wrap[0])
    bounds = bounds_of(slices, wrap)
    found = np.empty((words.size * side, 6), dtype=np.int64)
    count = 0
    while True:
        most = bounds.argmax()
        row = most // sy
        known, _, _, _ = best_from(
            slices[row // sx, row % sx], row % sx + 1, most % sy, 0, side, wrap
        )
        bounds.ravel()[most] = known
        floor = max(known, at_least) - 1
        box = largest(slices, bounds, floor, words.size * side, side, wrap)
        if box[3] == 0:
            return found[:count].copy()
        found[count] = box
        count += 1
        run = full(box[5])
        taken = run << np.uint64(box[2])
        if box[2] + box[5] > side:
            taken = (taken & full(side)) | (run >> np.uint64(side - box[2]))
        for x in range(box[0], box[0] + box[3]):
            for y in range(box[1], box[1] + box[4]):
                words[x % sx, y % sy] &= ~taken
        slices = slices_of(words, wrap[0])


@kernel
def starts_in(rows: Words, ny: int, nz: int, side: int, wrap: Wrap) -> Words:
    """Return where a free rectangle of ny rows and nz routers in each begins."""
    sy = len(rows)
    if ny > sy or nz > side:
        return np.zeros_like(rows)
    starts = rows.copy()
    done = 1
    while done < ny:
        steps = min(done, ny - done)
        fewer = starts.copy()
        for y in range(sy):
            if y + steps < sy:
                starts[y] &= fewer[y + steps]
            elif wrap[1]:
                starts[y] &= fewer[y + steps - sy]
            else:
                starts[y] = NONE
        done += steps
    if ny == sy:
        starts[1:] = NONE
    for y in range(sy):
        if starts[y] != NONE:
            starts[y] = starts_of(starts[y], nz, side, wrap[2])
    return starts


@kernel
def anchors_of(words: Words, shape: tuple[int, int, int], side: int, wrap: Wrap) -> Integers:
    """Return where a box of that shape is free, in row-major order."""
    sx, sy = words.shape
    nx, ny, nz = shape
    found = np.empty((words.size * side, 3), dtype=np.int64)
    count = 0
    for x in range(sx):
        if reach(x, sx, wrap[0]) < nx:
            continue
        rows = words[x].copy()
        for layer in range(x + 1, x + nx):
            rows &= words[layer % sx]
        starts = starts_in(rows, ny, nz, side, wrap)
        for y in range(sy):
            word = starts[y]
            while word != NONE:
                found[count, 0], found[count, 1], found[count, 2] = x, y, lowest(word)
                count += 1
                word &= word - ONE
    return found[:count].copy()


@kernel
def first_fit(words: Words, shapes: Integers, side: int, wrap: Wrap) -> Integers:
    """Return the first anchor of the first shape that is free somewhere; zeros if none is."""
    sx, sy = words.shape
    slices = slices_of(words, wrap[0])
    found = np.zeros(6, dtype=np.int64)
    for nx, ny, nz in shapes:
        for x in range(sx):
            if reach(x, sx, wrap[0]) < nx:
                continue
            starts = starts_in(slices[x, nx - 1], ny, nz, side, wrap)
            for y in range(sy):
                if starts[y] != NONE:
                    found[0], found[1], found[2] = x, y, lowest(starts[y])
                    found[3], found[4], found[5] = nx, ny, nz
                    return found
    return found
