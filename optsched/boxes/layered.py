"""Free partitions by layers: the divide and conquer of Li et al. 2015 (section 5.1).

The XZ layers of the torus are the leaves of a binary tree along Y; an inner node is free where both
its children are. The largest free rectangle of a node's layer, as high as the node, is a candidate;
the largest candidate is the partition. For a cube of side M this takes O(M^3).

What it misses, where `optsched.boxes.free_boxes` is exact: boxes whose layers are not those of one
node of the tree (layers 1 and 2 of four have no node of their own), and boxes that go on behind the
last router, since the paper has no wrap-around. Sides that are no power of two are split in halves;
of an odd number of layers the lower half has fewer.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid


def largest_layered_box(free: NDArray[np.bool_], grid: Grid) -> Box | None:
    """Return the largest free rectangle times height over all nodes of the tree, if any.

    Parameters
    ----------
    free : bool array, shape of the grid
        Whether each router is free.
    grid : Grid
        Its wrap-around is not used.

    Raises
    ------
    ValueError
        `free` has not the shape of the grid.
    """
    return next(iter(_bins(free, grid, 1, 1)), None)


def layered_bins(free: NDArray[np.bool_], grid: Grid, at_least: int = 1) -> tuple[Box, ...]:
    """Return free boxes without a common router: the `largest_layered_box` again and again.

    Parameters
    ----------
    free : bool array, shape of the grid
        Whether each router is free.
    grid : Grid
        Its wrap-around is not used.
    at_least : int
        Smaller boxes are left out.

    Returns
    -------
    tuple of Box
        The largest first.

    Raises
    ------
    ValueError
        `free` has not the shape of the grid.
    """
    return _bins(free, grid, max(at_least, 1), grid.routers)


@lru_cache
def tree(layers: int) -> tuple[tuple[int, int, int, int], ...]:
    """Return the nodes of the tree over so many layers, children before their parents.

    Returns
    -------
    tuple of (first, layers, left, right)
        The first layer and how many there are; the numbers of the children, its own for a leaf.

    Examples
    --------
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
    nodes = np.array(tree(grid.shape[1]))
    return tuple(Box(*row) for row in compiled.bins(free.copy(), nodes, at_least, most).tolist())
