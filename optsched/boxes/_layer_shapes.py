"""Shape of a job in a box that is filled layer by layer, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel


@kernel(allocates=False)
def find_layer_shape(routers: int, nx: int, ny: int, nz: int, shape: NDArray[np.int64]) -> bool:
    """Find the shape of a job by `optsched.boxes.layer_shapes.layer_shape`; return whether it fits.

    It overwrites `shape`, shape (3,), which is zero if the job does not fit.
    """
    shape[:] = 0
    if routers > nx * nz:
        layers = -(-routers // (nx * nz))
        if layers > ny:
            return False
        shape[0], shape[1], shape[2] = nx, layers, nz
        return True
    for high in range(1, nz + 1):
        wide = -(-routers // high)
        if wide > nx:
            continue
        more = wide * high - shape[0] * shape[2]
        if shape[1] == 0 or more < 0 or (more == 0 and wide + high < shape[0] + shape[2]):
            shape[0], shape[1], shape[2] = wide, 1, high
    return True
