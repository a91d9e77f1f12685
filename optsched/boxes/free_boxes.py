"""Free boxes on a torus: all maximal ones, the largest, and the anchors of a shape.

`free` is a bool array of the grid's shape: whether each router is free. Dimensions wrap around as
the grid says; a box as long as a ring is anchored at 0. On a grid of convex boxes, the largest box
and the bins are convex, while maximal boxes and shapes are as asked for. A row along Z has at most
64 routers: every function raises a ValueError for a longer one, or for a `free` of another shape.
These functions are exact, unlike the method of Li et al. 2015 in `optsched.boxes.layer_shapes`.
Kernels work on rows of bits, see `optsched.boxes._rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optsched.arrays import Flags, Ints, Words
from optsched.boxes import _rows
from optsched.boxes._rows import (
    NONE,
    ONE,
    Sides,
    Wrap,
    bounds_of,
    full,
    longest_run,
    lowest,
    may_be_side,
    nothing_in,
    ones,
    put,
    reach,
    run_of,
    slices_of,
    starts_of,
)
from optsched.boxes.box import Box, Grid, Triple
from optsched.compiled import kernel

LONGEST_ROW = 64


def maximal_free_boxes(free: Flags, grid: Grid) -> Ints:
    """Return all free boxes that no larger free box contains.

    Columns are x, y, z, nx, ny, nz; rows are ordered by x, nx, y, ny, z.

    >>> grid = Grid((1, 2, 4), (False, False, True))
    >>> maximal_free_boxes(np.array([[[1, 1, 0, 1], [0, 1, 0, 0]]], dtype=bool), grid)
    array([[0, 0, 3, 1, 1, 3],
           [0, 0, 1, 1, 2, 1]])
    """
    boxes: Ints = maximal(words_of(free, grid), grid.shape[2], grid.wrap)
    return boxes


def largest_free_box(free: Flags, grid: Grid) -> Box | None:
    """Return the largest free box, the first one on ties; None if no router is free."""
    return _largest(free, grid, 0, grid.routers)


def holds(free: Flags, grid: Grid, routers: int) -> bool:
    """Return whether some free box has at least `routers` routers.

    If so, the box holds a job of that size in one of its `shapes`; otherwise no free box does.
    """
    return _largest(free, grid, max(routers, 1) - 1, routers) is not None


def disjoint_bins(free: Flags, grid: Grid, at_least: int = 1) -> tuple[Box, ...]:
    """Return disjoint free boxes of `at_least` routers or more, the largest first.

    Each box is the `largest_free_box` beside the earlier ones.
    """
    words = words_of(free, grid)
    found = bins(words, max(at_least, 1), grid.shape[2], grid.wrap, grid.longest)
    return tuple(Box(*row) for row in found.tolist())


def anchors(free: Flags, grid: Grid, shape: Triple) -> Ints:
    """Return the anchors of the free boxes of a shape.

    Columns are x, y, z; rows are in row-major order. A side as long as a ring is at 0 only.
    """
    words = words_of(free, grid)
    found: Ints = _rows.anchors_of(words, *shape, grid.shape[2], grid.wrap)
    return found


def first_fit(free: Flags, grid: Grid, shapes: Sequence[Triple] | Ints) -> Box | None:
    """Return the first free box of the first shape that has one, at the first of its `anchors`.

    The shapes are in order, the best first; as an array, they have the shape (shapes, 3).
    """
    ranked = np.asarray(shapes, dtype=np.int64).reshape(-1, 3)
    return _box(_rows.first_fit(words_of(free, grid), ranked, grid.shape[2], grid.wrap))


def fullest_box(free: Flags, grid: Grid, shape: Triple, within: Flags) -> Box:
    """Return the first box of a shape with the fewest free routers, of those free in `within`."""
    at = anchors(within, grid, shape)
    x, y, z = at[_rows.fullest(words_of(free, grid), at, *shape, grid.shape[2])].tolist()
    return Box(x, y, z, *shape)


def words_of(free: Flags, grid: Grid) -> Words:
    """Return the rows along Z as words, shape (X, Y); bit z is set if router (x, y, z) is free."""
    if free.shape != grid.shape:
        raise ValueError(f"free has shape {free.shape}; expected {grid.shape}")
    if grid.shape[2] > LONGEST_ROW:
        raise ValueError(f"{grid.shape[2]} routers along Z; expected at most {LONGEST_ROW}")
    words: Words = _rows.words_of(free)
    return words


def _largest(free: Flags, grid: Grid, more_than: int, enough: int) -> Box | None:
    words, side = words_of(free, grid), grid.shape[2]
    return _box(largest_box(words, more_than, enough, side, grid.wrap, grid.longest))


def _box(row: Any) -> Box | None:
    return Box(*row.tolist()) if row[3] else None


@kernel
def maximal(words: Words, side: int, wrap: Wrap) -> Ints:
    """Return all maximal free boxes, ordered by x, nx, y, ny, z.

    A run of ones in the AND of a box's rows is a maximal box if each of the four neighboring sides
    lacks one of its bits.
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
            ring = wrap[0] and nx < sx
            before = words[(x - 1) % sx] if ring or (x > 0 and nx < sx) else nothing
            behind = words[(x + nx) % sx] if ring or x + nx < sx else nothing
            for y in range(sy):
                not_below = ~rows[(y - 1) % sy] if wrap[1] or y > 0 else ~NONE
                word, not_before, not_behind = ~NONE, NONE, NONE
                for ny in range(1, reach(y, sy, wrap[1]) + 1):
                    last = (y + ny - 1) % sy
                    word &= rows[last]
                    if word == NONE or (y > 0 and word & not_below == NONE):
                        break  # the run is free below too, and so in all higher boxes
                    not_before |= ~before[last]
                    not_behind |= ~behind[last]
                    not_above = ~rows[(last + 1) % sy] if wrap[1] or last + 1 < sy else ~NONE
                    if ny == sy:
                        not_below, not_above = ~NONE, ~NONE
                    if not meets_all(word, not_before, not_behind, not_below, not_above):
                        continue
                    over = ones_over(word, side, wrap[2])
                    rest = word & ~over
                    while rest != NONE:
                        z = lowest(rest)
                        run = rest & ~(rest + (ONE << np.uint64(z)))
                        rest &= ~run
                        if rest == NONE:
                            run |= over  # the last run continues over the end
                        if meets_all(run, not_before, not_behind, not_below, not_above):
                            if count == len(found):
                                found = np.concatenate((found, np.empty_like(found)))
                            put(found[count], x, y, z, nx, ny, ones(run))
                            count += 1
    return found[:count].copy()


@kernel
def meets_all(
    word: np.uint64, one: np.uint64, two: np.uint64, three: np.uint64, four: np.uint64
) -> bool:
    """Return whether a word has a bit in common with each of four others."""
    return (
        word & one != NONE and word & two != NONE and word & three != NONE and word & four != NONE
    )


@kernel
def ones_over(word: np.uint64, side: int, ring: bool) -> np.uint64:
    """Return the ones at the beginning of a row that continue a run from its end."""
    if not ring or word == full(side) or (word >> np.uint64(side - 1)) == NONE:
        return NONE
    return word & ~(word + ONE)


@kernel
def best_in(
    rows: Words, nx: int, best: int, side: int, wrap: Wrap, longest: Sides
) -> tuple[int, int, int, int, int]:
    """Return bound, y, ny, z, nz of the first largest free box of nx layers.

    Besides whole dimensions, no side exceeds the `longest` of its dimension. The bound is one on
    the routers of any free box of these layers; ny is 0 if no box is larger than `best`.
    """
    sy = len(rows)
    bound, best_y, best_ny, best_z, best_nz = 0, 0, 0, 0, 0
    for y in range(sy):
        if y > 0 and rows[y] & ~rows[y - 1] == NONE:
            continue  # a box from here is part of one that begins earlier
        furthest = reach(y, sy, wrap[1])
        word = ~NONE
        for ny in range(1, furthest + 1):
            last = y + ny - 1
            word &= rows[last if last < sy else last - sy]
            if not may_be_side(ny, sy, longest[1]):
                continue
            free = nx * ones(word)
            if free * furthest <= best:
                bound = max(bound, free * furthest)
                break
            if free * ny <= best:
                bound = max(bound, free * ny)
                continue
            least = best // (nx * ny) + 1
            z, nz = longest_run(word, least, side, wrap[2])
            if not may_be_side(nz, side, longest[2]):
                nz = longest[2] if longest[2] >= least else 0
                z = lowest(starts_of(word, longest[2], side, wrap[2]))
            if nz == 0:
                bound = max(bound, nx * ny * (least - 1))
            else:
                best = bound = nx * ny * nz
                best_y, best_ny, best_z, best_nz = y, ny, z, nz
    return bound, best_y, best_ny, best_z, best_nz


@kernel(allocates=False)
def highest_of(values: Ints) -> int:
    """Return the highest value; `max` of numpy takes several times as long."""
    highest = values[0]
    for at in range(1, len(values)):
        highest = max(highest, values[at])
    return highest


@kernel(allocates=False)
def first_of(values: Ints, value: int) -> int:
    """Return the first place of a value."""
    at = 0
    while values[at] != value:
        at += 1
    return at


@kernel
def largest(
    slices: Words, bounds: Ints, best: int, enough: int, side: int, wrap: Wrap, longest: Sides
) -> Ints:
    """Return the first largest free box of more than `best` routers; all zeros without one.

    Layers are searched in order of their `bounds` (see `bounds_of`), which the search tightens,
    until no bound exceeds the largest box, or a box has at least `enough` routers.
    """
    sx = len(slices)
    found = np.zeros(6, dtype=np.int64)
    highest = np.empty(sx, dtype=np.int64)  # bound of each x
    for x in range(sx):
        highest[x] = highest_of(bounds[x])
    while True:
        x = first_of(highest, highest_of(highest))
        if highest[x] <= best:
            break
        nx = first_of(bounds[x], highest[x]) + 1
        bound, y, ny, z, nz = best_in(slices[x, nx - 1], nx, best, side, wrap, longest)
        bounds[x, nx - 1] = bound
        highest[x] = highest_of(bounds[x])
        if ny == 0:
            continue
        best = bound
        put(found, x, y, z, nx, ny, nz)
        if best >= enough:
            return found
    # another box of that size may come earlier
    for x in range(found[0] + 1):
        if highest[x] < best:
            continue
        for nx in range(1, sx + 1 if x < found[0] else found[3]):
            if bounds[x, nx - 1] < best:
                continue
            bound, y, ny, z, nz = best_in(slices[x, nx - 1], nx, best - 1, side, wrap, longest)
            bounds[x, nx - 1] = bound
            if ny > 0:
                put(found, x, y, z, nx, ny, nz)
                return found
    return found


@kernel
def take(slices: Words, box: Ints, side: int) -> None:
    """Mark the routers of a box as taken."""
    sx, _, sy = slices.shape
    taken = run_of(box[2], box[5], side)
    for x in range(sx):
        nearest = (box[0] - x) % sx if (x - box[0]) % sx >= box[3] else 0
        for nx in range(nearest + 1, sx + 1):
            for y in range(box[1], box[1] + box[4]):
                slices[x, nx - 1, y if y < sy else y - sy] &= ~taken


@kernel
def largest_box(
    words: Words, best: int, enough: int, side: int, wrap: Wrap, longest: Sides
) -> Ints:
    """Return the `largest` free box of more than `best` routers."""
    slices = slices_of(words, wrap[0])
    return largest(slices, bounds_of(slices, longest[0]), best, enough, side, wrap, longest)


@kernel
def bins(words: Words, at_least: int, side: int, wrap: Wrap, longest: Sides) -> Ints:
    """Return disjoint free boxes, each the first largest one beside the earlier ones.

    Free routers only decrease, so an upper bound stays valid.
    """
    slices = slices_of(words, wrap[0])
    bounds = bounds_of(slices, longest[0])
    found = np.empty((words.size * side, 6), dtype=np.int64)
    for count in range(len(found)):
        box = largest(slices, bounds, at_least - 1, words.size * side, side, wrap, longest)
        if box[3] == 0:
            return found[:count].copy()
        found[count] = box
        take(slices, box, side)
    return found
