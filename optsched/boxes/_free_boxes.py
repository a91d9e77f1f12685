"""Maximal and largest free boxes of a torus on rows of bits, compiled."""

from __future__ import annotations

import numpy as np

from optsched.boxes._rows import (
    NONE,
    ONE,
    Integers,
    Words,
    Wrap,
    bounds_of,
    full,
    longest_run,
    nothing_in,
    ones,
    reach,
    slices_of,
)
from optsched.compiled import kernel


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
            if nothing_in(rows):
                break
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
def best_in(
    rows: Words, nx: int, best: int, side: int, wrap: Wrap
) -> tuple[int, int, int, int, int]:
    """Return the first largest free box of nx layers that has more than `best` routers.

    Returns
    -------
    bound : int
        No free box of these layers is larger.
    y, ny, z, nz : int
        The box; ny is 0 if there is none.
    """
    sy = len(rows)
    bound, best_y, best_ny, best_z, best_nz = 0, 0, 0, 0, 0
    for y in range(sy):
        if y > 0 and rows[y] & ~rows[y - 1] == NONE:
            continue  # whatever begins here is part of what begins before
        furthest = reach(y, sy, wrap[1])
        word = ~NONE
        for ny in range(1, furthest + 1):
            word &= rows[(y + ny - 1) % sy]
            free = nx * ones(word)
            if free * furthest <= best:
                bound = max(bound, free * furthest)
                break
            if free * ny <= best:
                bound = max(bound, free * ny)
                continue
            least = best // (nx * ny) + 1
            z, nz = longest_run(word, least, side, wrap[2])
            if nz == 0:
                bound = max(bound, nx * ny * (least - 1))
            else:
                best = bound = nx * ny * nz
                best_y, best_ny, best_z, best_nz = y, ny, z, nz
    return bound, best_y, best_ny, best_z, best_nz


@kernel
def largest(
    slices: Words, bounds: Integers, best: int, enough: int, side: int, wrap: Wrap
) -> Integers:
    """Return the first largest free box of more than `best` routers; all zeros if there is none.

    Layers are looked at in order of what they may hold, until none may hold more.

    Parameters
    ----------
    slices : uint64 array, shape (X, X, Y)
        What `slices_of` returns.
    bounds : int64 array, shape (X, X)
        What no free box of these layers exceeds; made tighter.
    best : int
        Boxes that are no larger are not looked for.
    enough : int
        The search ends at the first box of so many routers.
    side : int
        Routers along Z.
    wrap : (bool, bool, bool)
        Whether each dimension wraps around.
    """
    sx = len(slices)
    found = np.zeros(6, dtype=np.int64)
    while True:
        most = int(bounds.argmax())
        x, nx = most // sx, most % sx + 1
        if bounds[x, nx - 1] <= best:
            break
        bound, y, ny, z, nz = best_in(slices[x, nx - 1], nx, best, side, wrap)
        bounds[x, nx - 1] = bound
        if ny == 0:
            continue
        best = bound
        found[0], found[1], found[2], found[3], found[4], found[5] = x, y, z, nx, ny, nz
        if best >= enough:
            return found
    # another of that size may come before it
    for x in range(found[0] + 1):
        for nx in range(1, sx + 1 if x < found[0] else found[3]):
            if bounds[x, nx - 1] < best:
                continue
            bound, y, ny, z, nz = best_in(slices[x, nx - 1], nx, best - 1, side, wrap)
            bounds[x, nx - 1] = bound
            if ny > 0:
                found[0], found[1], found[2], found[3], found[4], found[5] = x, y, z, nx, ny, nz
                return found
    return found


@kernel
def take(slices: Words, box: Integers, side: int) -> None:
    """Let the routers of a box be free no longer."""
    sx, _, sy = slices.shape
    run = full(box[5])
    taken = run << np.uint64(box[2])
    if box[2] + box[5] > side:
        taken = (taken & full(side)) | (run >> np.uint64(side - box[2]))
    for x in range(sx):
        nearest = (box[0] - x) % sx if (x - box[0]) % sx >= box[3] else 0
        for nx in range(nearest + 1, sx + 1):
            for y in range(box[1], box[1] + box[4]):
                slices[x, nx - 1, y % sy] &= ~taken


@kernel
def bins(words: Words, at_least: int, side: int, wrap: Wrap) -> Integers:
    """Return the first largest free box again and again.

    What is free only becomes less, so what no box exceeded once none exceeds later.
    """
    slices = slices_of(words, wrap[0])
    bounds = bounds_of(slices)
    found = np.empty((words.size * side, 6), dtype=np.int64)
    for count in range(len(found)):
        box = largest(slices, bounds, at_least - 1, words.size * side, side, wrap)
        if box[3] == 0:
            return found[:count].copy()
        found[count] = box
        take(slices, box, side)
    return found
