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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Ints
from optsched.boxes._rows import Sides, may_be_side, put
from optsched.boxes.box import Box, Grid, Triple
from optsched.compiled import kernel


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
    sides, longest = (extent, extent) if grid is None else (grid.shape, grid.longest)
    shape = [0, 0, 0]
    fits = find_layer_shape.plain()(routers, extent, sides, longest, shape)  # ready at once
    return (shape[0], shape[1], shape[2]) if fits else None


def largest_layered_box(free: Flags, grid: Grid, at_least: int = 1) -> Box | None:
    """Return the largest candidate over all nodes of the tree; None below `at_least` routers."""
    return next(iter(_bins(free, grid, max(at_least, 1), 1)), None)


def layered_bins(free: Flags, grid: Grid, at_least: int = 1) -> tuple[Box, ...]:
    """Return disjoint free boxes of `at_least` routers or more, the largest first.

    Each box is the `largest_layered_box` beside the earlier ones.
    """
    return _bins(free, grid, max(at_least, 1), grid.routers)


@lru_cache
def tree(layers: int) -> Ints:
    """Return the nodes of the tree over the layers, children before parents.

    A node is its first layer, number of layers, and the numbers of its children; for a leaf, its
    own number.

    >>> tree(3).tolist()
    [[0, 1, 0, 0], [1, 1, 1, 1], [2, 1, 2, 2], [1, 2, 1, 2], [0, 3, 0, 3]]
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
    return np.array(nodes)


def _bins(free: Flags, grid: Grid, at_least: int, most: int) -> tuple[Box, ...]:
    if free.shape != grid.shape:
        raise ValueError(f"free has shape {free.shape}; expected {grid.shape}")
    found = bins(free.copy(), tree(grid.shape[1]), at_least, most, grid.longest)
    return tuple(Box(*row) for row in found.tolist())


@kernel(allocates=False)
def cut(length: int, side: int, longest: int) -> int:
    """Return the longest side that a job's box may have within a length."""
    return length if may_be_side(length, side, longest) else longest


@kernel(allocates=False)
def largest_rectangle(
    layer: Flags, longest: Sides, bars: Ints, begin: Ints, height: Ints
) -> tuple[int, int, int, int]:
    """Return x, z, nx, nz of the first largest free rectangle of a layer; 0 x 0 if all is taken.

    Besides whole dimensions, no side exceeds the `longest` of its dimension.

    In each row, z has a bar: the number of consecutive free routers up to this row. A stack keeps
    the bars that may still grow to the right, each with the z at which a rectangle of its height
    begins. O(X Z). The arrays, of shape (Z + 1,), are overwritten.
    """
    sx, sz = layer.shape
    bars[:] = 0
    x, z, nx, nz = 0, 0, 0, 0
    for row in range(sx):
        depth = 0
        for at in range(sz + 1):
            bar = 0
            if at < sz:
                bars[at] = bars[at] + 1 if layer[row, at] else 0
                bar = bars[at]
            first = at
            while depth > 0 and height[depth - 1] >= bar:
                depth -= 1
                first = begin[depth]
                wide = cut(height[depth], sx, longest[0])
                high = cut(at - first, sz, longest[2])
                if wide * high > nx * nz:
                    x, z = row + 1 - height[depth], first
                    nx, nz = wide, high
            begin[depth], height[depth] = first, bar
            depth += 1
    return x, z, nx, nz


@kernel(allocates=False)
def free_in_all(one: Flags, other: Flags, both: Flags) -> int:
    """Find the routers that are free in two layers; return their number."""
    free = 0
    for x in range(both.shape[0]):
        for z in range(both.shape[1]):
            both[x, z] = one[x, z] & other[x, z]
            free += both[x, z]
    return free


@kernel
def bins(free: Flags, nodes: Ints, at_least: int, most: int, longest: Sides) -> Ints:
    """Return up to `most` disjoint boxes, each the largest over all nodes; overwrites `free`.

    The rows of `nodes` are those of `tree`, the rows of the result x, y, z, nx, ny, nz. Boxes of
    fewer than `at_least` routers are left out. The largest rectangle of a node is searched once no
    other node has a larger bound, which is the number of its free routers.
    """
    sx, sy, sz = free.shape
    layers = np.empty((len(nodes), sx, sz), dtype=np.bool_)
    candidates = np.empty((len(nodes), 6), dtype=np.int64)
    volumes = np.zeros(len(nodes), dtype=np.int64)
    is_bound = np.zeros(len(nodes), dtype=np.bool_)
    bars, begin, height = np.empty((3, sz + 1), dtype=np.int64)
    found = np.empty((min(most, free.size // at_least), 6), dtype=np.int64)
    changed, behind = 0, sy
    for count in range(len(found)):
        for node in range(len(nodes)):
            y, ny, left, right = nodes[node]
            if y < behind and y + ny > changed:
                one = free[:, y] if ny == 1 else layers[left]
                other = one if ny == 1 else layers[right]
                volumes[node] = ny * free_in_all(one, other, layers[node])
                is_bound[node] = True
        best = volumes.argmax()
        while is_bound[best] and volumes[best] >= at_least:
            ny = nodes[best, 1]
            x, z, nx, nz = largest_rectangle(layers[best], longest, bars, begin, height)
            put(candidates[best], x, nodes[best, 0], z, nx, ny, nz)
            volumes[best] = nx * ny * nz
            is_bound[best] = False
            best = volumes.argmax()
        if volumes[best] < at_least:
            return found[:count].copy()
        x, y, z, nx, ny, nz = candidates[best]
        found[count] = candidates[best]
        free[x : x + nx, y : y + ny, z : z + nz] = False
        changed, behind = y, y + ny
    return found


@kernel(allocates=False)
def find_layer_shape(routers: int, extent: Ints, sides: Sides, longest: Sides, shape: Ints) -> bool:
    """Find the shape of a job by `layer_shape`; return whether it fits.

    It overwrites `shape`, shape (3,), which is zero if the job does not fit. `extent`, shape (3,),
    is that of the box; `sides` and `longest` are those of the grid.
    """
    shape[0], shape[1], shape[2] = 0, 0, 0
    nx, ny, nz = extent[0], extent[1], extent[2]
    if routers > nx * nz:
        layers = -(-routers // (nx * nz))
        if layers <= ny and not may_be_side(layers, sides[1], longest[1]):
            layers = sides[1]
        if (
            layers > ny
            or not may_be_side(nx, sides[0], longest[0])
            or not may_be_side(nz, sides[2], longest[2])
        ):
            return False
        shape[0], shape[1], shape[2] = nx, layers, nz
        return True
    for high in range(1, nz + 1):
        wide = -(-routers // high)
        if wide <= nx and not may_be_side(wide, sides[0], longest[0]):
            wide = sides[0]
        if wide > nx or not may_be_side(high, sides[2], longest[2]):
            continue
        more = wide * high - shape[0] * shape[2]
        if shape[1] == 0 or more < 0 or (more == 0 and wide + high < shape[0] + shape[2]):
            shape[0], shape[1], shape[2] = wide, 1, high
    return bool(shape[1] > 0)


@kernel(allocates=False)
def write(grid: NDArray[Any], boxes: Ints, values: NDArray[Any]) -> None:
    """Write the value of each box (x, y, z, nx, ny, nz) at its routers, with wrap-around."""
    sx, sy, sz = grid.shape
    for number in range(len(boxes)):
        x0, y0, z0, nx, ny, nz = boxes[number]
        for x in range(x0, x0 + nx):
            for y in range(y0, y0 + ny):
                for z in range(z0, z0 + nz):
                    grid[x % sx, y % sy, z if z < sz else z - sz] = values[number]
