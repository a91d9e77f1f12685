"""Largest free rectangle in the layers of a torus, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Integers = NDArray[np.int64]


@kernel
def largest_rectangle(layer: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Return x, z, nx, nz of the first largest free rectangle of a layer; 0 x 0 if all is taken.

    In each row, z has a bar: the number of consecutive free routers up to this row. A stack keeps
    the bars that may still grow to the right, each with the z at which a rectangle of its height
    begins. O(X Z).
    """
    sx, sz = layer.shape
    bars = np.zeros(sz, dtype=np.int64)
    begin = np.empty(sz + 1, dtype=np.int64)
    height = np.empty(sz + 1, dtype=np.int64)
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
                if height[depth] * (at - first) > nx * nz:
                    x, z = row + 1 - height[depth], first
                    nx, nz = height[depth], at - first
            begin[depth], height[depth] = first, bar
            depth += 1
    return x, z, nx, nz


@kernel
def bins(free: NDArray[np.bool_], nodes: Integers, at_least: int, most: int) -> Integers:
    """Return up to `most` disjoint boxes, each the largest over all nodes; overwrites `free`.

    The rows of `nodes` are those of `optsched.boxes.layered.tree`, the rows of the result x, y, z,
    nx, ny, nz. Boxes of fewer than `at_least` routers are left out.
    """
    sx, sy, sz = free.shape
    layers = np.empty((len(nodes), sx, sz), dtype=np.bool_)
    candidates = np.empty((len(nodes), 6), dtype=np.int64)
    volumes = np.empty(len(nodes), dtype=np.int64)
    found = np.empty((min(most, free.size), 6), dtype=np.int64)
    changed, behind = 0, sy
    for count in range(len(found)):
        for node in range(len(nodes)):
            y, ny, left, right = nodes[node]
            if y >= behind or y + ny <= changed:
                continue
            if ny == 1:
                layers[node] = free[:, y]
            else:
                layers[node] = layers[left] & layers[right]
            x, z, nx, nz = largest_rectangle(layers[node])
            candidates[node, 0], candidates[node, 1], candidates[node, 2] = x, y, z
            candidates[node, 3], candidates[node, 4], candidates[node, 5] = nx, ny, nz
            volumes[node] = nx * ny * nz
        best = volumes.argmax()
        if volumes[best] < at_least:
            return found[:count].copy()
        x, y, z, nx, ny, nz = candidates[best]
        found[count] = candidates[best]
        free[x : x + nx, y : y + ny, z : z + nz] = False
        changed, behind = y, y + ny
    return found
