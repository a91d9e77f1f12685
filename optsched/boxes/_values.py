"""Values of boxes, written onto a grid, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel


@kernel(allocates=False)
def write(grid: NDArray[np.float64], boxes: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    """Write the value of each box (x, y, z, nx, ny, nz) at its routers, with wrap-around."""
    sx, sy, sz = grid.shape
    for number in range(len(boxes)):
        x0, y0, z0, nx, ny, nz = boxes[number]
        for x in range(x0, x0 + nx):
            for y in range(y0, y0 + ny):
                for z in range(z0, z0 + nz):
                    grid[x % sx, y % sy, z % sz] = values[number]
