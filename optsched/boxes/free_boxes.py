"""Free boxes on a torus: all maximal ones, the largest, and the anchors of a shape.

`free` is a bool array of the grid's shape: whether each router is free. Dimensions wrap around as
the grid says; a box as long as a ring is anchored at 0. On a grid of convex boxes, the largest box
and the bins are convex, while maximal boxes and shapes are as asked for. A row along Z has at most
64 routers: every function raises a ValueError for a longer one, or for a `free` of another shape.
These functions are exact, unlike the method of Li et al. 2015 in `optsched.boxes.layer_shapes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid, Triple

Free = NDArray[np.bool_]
Integers = NDArray[np.int64]

LONGEST_ROW = 64


def maximal_free_boxes(free: Free, grid: Grid) -> Integers:
    """Return all free boxes that no larger free box contains.

    Columns are x, y, z, nx, ny, nz; rows are ordered by x, nx, y, ny, z.

    >>> grid = Grid((1, 2, 4), (False, False, True))
    >>> maximal_free_boxes(np.array([[[1, 1, 0, 1], [0, 1, 0, 0]]], dtype=bool), grid)
    array([[0, 0, 3, 1, 1, 3],
           [0, 0, 1, 1, 2, 1]])
    """
    from optsched.boxes import _free_boxes as compiled

    boxes: Integers = compiled.maximal(words_of(free, grid), grid.shape[2], grid.wrap)
    return boxes


def largest_free_box(free: Free, grid: Grid) -> Box | None:
    """Return the largest free box, the first one on ties; None if no router is free."""
    return _largest(free, grid, 0, grid.routers)


def holds(free: Free, grid: Grid, routers: int) -> bool:
    """Return whether some free box has at least `routers` routers.

    If so, the box holds a job of that size in one of its `shapes`; otherwise no free box does.
    """
    return _largest(free, grid, max(routers, 1) - 1, routers) is not None


def disjoint_bins(free: Free, grid: Grid, at_least: int = 1) -> tuple[Box, ...]:
    """Return disjoint free boxes of `at_least` routers or more, the largest first.

    Each box is the `largest_free_box` beside the earlier ones.
    """
    from optsched.boxes import _free_boxes as compiled

    words = words_of(free, grid)
    found = compiled.bins(words, max(at_least, 1), grid.shape[2], grid.wrap, grid.longest)
    return tuple(Box(*row) for row in found.tolist())


def anchors(free: Free, grid: Grid, shape: Triple) -> Integers:
    """Return the anchors of the free boxes of a shape.

    Columns are x, y, z; rows are in row-major order. A side as long as a ring is at 0 only.
    """
    from optsched.boxes import _rows as compiled

    words = words_of(free, grid)
    found: Integers = compiled.anchors_of(words, *shape, grid.shape[2], grid.wrap)
    return found


def first_fit(free: Free, grid: Grid, shapes: Sequence[Triple] | Integers) -> Box | None:
    """Return the first free box of the first shape that has one, at the first of its `anchors`.

    The shapes are in order, the best first; as an array, they have the shape (shapes, 3).
    """
    from optsched.boxes import _rows as compiled

    ranked = np.asarray(shapes, dtype=np.int64).reshape(-1, 3)
    return _box(compiled.first_fit(words_of(free, grid), ranked, grid.shape[2], grid.wrap))


def fullest_box(free: Free, grid: Grid, shape: Triple, within: Free) -> Box:
    """Return the first box of a shape with the fewest free routers, of those free in `within`."""
    from optsched.boxes import _rows as compiled

    at = anchors(within, grid, shape)
    x, y, z = at[compiled.fullest(words_of(free, grid), at, *shape, grid.shape[2])].tolist()
    return Box(x, y, z, *shape)


def words_of(free: Free, grid: Grid) -> NDArray[np.uint64]:
    """Return the rows along Z as words, shape (X, Y); bit z is set if router (x, y, z) is free."""
    from optsched.boxes import _rows as compiled

    if free.shape != grid.shape:
        raise ValueError(f"free has shape {free.shape}; expected {grid.shape}")
    if grid.shape[2] > LONGEST_ROW:
        raise ValueError(f"{grid.shape[2]} routers along Z; expected at most {LONGEST_ROW}")
    words: NDArray[np.uint64] = compiled.words_of(free)
    return words


def _largest(free: Free, grid: Grid, more_than: int, enough: int) -> Box | None:
    from optsched.boxes import _free_boxes as compiled

    words, side = words_of(free, grid), grid.shape[2]
    return _box(compiled.largest_box(words, more_than, enough, side, grid.wrap, grid.longest))


def _box(row: Any) -> Box | None:
    return Box(*row.tolist()) if row[3] else None
