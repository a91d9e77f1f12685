"""Shape of a job in a box that is filled layer by layer, compiled."""

from __future__ import annotations

from optsched.boxes._rows import Integers, Sides, may_be_side
from optsched.compiled import kernel


@kernel(allocates=False)
def find_layer_shape(
    routers: int,
    extent: Integers,
    sides: Sides,
    longest: Sides,
    shape: Integers,
) -> bool:
    """Find the shape of a job by `optsched.boxes.layer_shapes.layer_shape`; return whether it fits.

    It overwrites `shape`, shape (3,), which is zero if the job does not fit. `extent`, shape (3,),
    is that of the box; `sides` and `longest` are those of the grid.
    """
    shape[:] = 0
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
