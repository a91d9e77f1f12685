"""The shape that a job takes in a box which is filled layer by layer."""

from __future__ import annotations

from functools import lru_cache

from optsched.boxes.box import Triple


def layer_shape(routers: int, extent: Triple) -> Triple | None:
    """Return the shape of a job in a box of that extent; none if it does not fit.

    The layers of a box are its XZ planes. A job larger than one takes whole layers; any other takes
    a rectangle inside one, the smallest and then the most compact that holds it (Li et al. 2015,
    section 5.1). What the shape has more than the job is idle: the internal fragmentation.

    Parameters
    ----------
    routers : int
        Routers that the job takes.
    extent : (int, int, int)
        Routers of the box in each dimension.

    Examples
    --------
    >>> layer_shape(6, (4, 2, 4)), layer_shape(7, (4, 2, 4)), layer_shape(17, (4, 2, 4))
    ((3, 1, 2), (4, 1, 2), (4, 2, 4))
    """
    nx, ny, nz = extent
    if routers > nx * nz:
        layers = -(-routers // (nx * nz))
        return (nx, layers, nz) if layers <= ny else None
    width, height = rectangles(nx, nz)[routers]
    return width, 1, height


@lru_cache(maxsize=4096)
def rectangles(width: int, height: int) -> tuple[tuple[int, int], ...]:
    """Return the rectangle for each number of cells, from 0 to all of a layer.

    Of those within `width` x `height` with enough cells: the fewest cells, then the least
    half-perimeter, then the least height.
    """
    compact: dict[int, tuple[int, int]] = {}
    for high in range(1, height + 1):
        for wide in range(1, width + 1):
            known = compact.get(wide * high)
            if known is None or wide + high < sum(known):
                compact[wide * high] = wide, high
    table = [(width, height)] * (width * height + 1)
    for cells in range(width * height - 1, 0, -1):
        table[cells] = compact.get(cells, table[cells + 1])
    table[0] = (0, 0)
    return tuple(table)
