"""Shape of a job in a box that is filled layer by layer."""

from __future__ import annotations

from functools import lru_cache

from optsched.boxes.box import Grid, Triple


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
