"""Shape of a job in a box that is filled layer by layer."""

from __future__ import annotations

from functools import lru_cache

from optsched.boxes.box import Triple


@lru_cache(maxsize=2**16)
def layer_shape(routers: int, extent: Triple) -> Triple | None:
    """Return the shape of a job in a box of a given extent; None if the job does not fit.

    The layers of a box are its XZ planes. A job larger than a layer takes whole layers. Any other
    job takes the smallest rectangle of one layer that holds the job, the most compact one on ties
    (Li et al. 2015, section 5.1). The routers of the shape beyond the job's size are idle: internal
    fragmentation.

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
    """Return the best rectangle for each number of routers, from 0 to a whole layer.

    The best rectangle within `width` x `height` with enough routers has the fewest routers, then
    the least half-perimeter, then the least height.
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
