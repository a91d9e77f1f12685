"""Shape of a job in a box that is filled layer by layer, and free boxes by layers.

Free boxes by layers are the divide and conquer of Li et al. 2015 (section 5.1):
The XZ layers of the torus are the leaves of a binary tree along Y; a router of an inner node is
free if it is free in both children. The largest free rectangle of a node, times the layers of the
node, is a candidate, and the largest candidate is the result. For a cube of side M the search takes
O(M^3).

Unlike `optsched.boxes.free_boxes`, the method misses boxes whose layers are not those of one node
of the tree (layers 1 and 2 of four, for instance), and boxes that wrap around, which the paper does
not have. An odd number of layers is split so that the lower half has fewer. On a grid of convex
boxes, the candidate of a node is its largest convex rectangle; the layers of a node are all, or at
most half of them, rounded up, so that the box is convex.

`free` is a bool array of the grid's shape: whether each router is free. A `free` of another shape
raises a ValueError.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid, Triple


@lru_cache(maxsize=2**16)
def layer_shape(routers: int, extent: Triple, grid: Grid | None = None) -> Triple | None:
    """Return the shape of a job in a box of a given extent; None if the job does not fit.

    The layers of a box are its XZ planes. A job larger than a layer takes whole layers. Any other
    job takes the smallest rectangle of one layer that holds the job, the most compact one on ties
    (Li et al. 2015, section 5.1). The routers of the shape beyond the job's size are idle: internal
    fragmentation. On a grid of convex boxes, the shape is convex; without a grid, a shape may have
    any sides.

    >>> layer_shape(6, (4, 2, 4)), layer_shape(7, (4, 2, 4)), layer_shape(17, (4, 2, 4))
    ((3, 1, 2), (4, 1, 2), (4, 2, 4))
    """
    nx, _, nz = extent
    widths, depths, heights = (
        tuple(range(1, length + 1)) if grid is None else grid.sides(axis, length)
        for axis, length in enumerate(extent)
    )
    if routers > nx * nz:
        layers = next((depth for depth in depths if depth * nx * nz >= routers), None)
        whole = widths[-1] == nx and heights[-1] == nz
        return (nx, layers, nz) if whole and layers is not None else None
    best = rectangles(widths, heights)
    if routers >= len(best):
        return None
    width, height = best[routers]
    return width, 1, height


@lru_cache(maxsize=4096)
def rectangles(widths: tuple[int, ...], heights: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return the best rectangle for each number of routers, from 0 to those of the largest one.

    The sides of a rectangle are one of the `widths` and one of the `heights`, both ascending. The
    best one with enough routers has the fewest routers, then the least half-perimeter, then the
    least height.
    """
    compact: dict[int, tuple[int, int]] = {}
    for high in heights:
        for wide in widths:
            known = compact.get(wide * high)
            if known is None or wide + high < sum(known):
                compact[wide * high] = wide, high
    largest = widths[-1], heights[-1]
    table = [largest] * (largest[0] * largest[1] + 1)
    for cells in range(len(table) - 2, 0, -1):
        table[cells] = compact.get(cells, table[cells + 1])
    table[0] = (0, 0)
    return tuple(table)


def largest_layered_box(free: NDArray[np.bool_], grid: Grid, at_least: int = 1) -> Box | None:
    """Return the largest candidate over all nodes of the tree; None below `at_least` routers."""
    return next(iter(_bins(free, grid, max(at_least, 1), 1)), None)


def layered_bins(free: NDArray[np.bool_], grid: Grid, at_least: int = 1) -> tuple[Box, ...]:
    """Return disjoint free boxes of `at_least` routers or more, the largest first.

    Each box is the `largest_layered_box` beside the earlier ones.
    """
    return _bins(free, grid, max(at_least, 1), grid.routers)


@lru_cache
def tree(layers: int) -> tuple[tuple[int, int, int, int], ...]:
    """Return the nodes of the tree over the layers, children before parents.

    A node is its first layer, number of layers, and the numbers of its children; for a leaf, its
    own number.

    >>> tree(3)
    ((0, 1, 0, 0), (1, 1, 1, 1), (2, 1, 2, 2), (1, 2, 1, 2), (0, 3, 0, 3))
    """
    nodes: list[tuple[int, int, int, int]] = []

    def add(first: int, height: int) -> int:
        left = right = len(nodes)
        if height > 1:
            left = add(first, height // 2)
            right = add(first + height // 2, height - height // 2)
        nodes.append((first, height, left, right))
        return len(nodes) - 1

    add(0, layers)
    return tuple(nodes)


def _bins(free: NDArray[np.bool_], grid: Grid, at_least: int, most: int) -> tuple[Box, ...]:
    from optsched.boxes import _layered as compiled

    if free.shape != grid.shape:
        raise ValueError(f"free has shape {free.shape}; expected {grid.shape}")
    found = compiled.bins(free.copy(), _nodes(grid.shape[1]), at_least, most, grid.longest)
    return tuple(Box(*row) for row in found.tolist())


@lru_cache
def _nodes(layers: int) -> NDArray[np.int64]:
    return np.array(tree(layers))
