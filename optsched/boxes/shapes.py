"""Shapes of boxes that hold a job, the best first."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from itertools import pairwise

from optsched.boxes.box import Grid, Triple

Links = tuple[int, int, int]

EQUAL_LINKS: Links = (1, 1, 1)


@lru_cache(maxsize=4096)
def shapes(routers: int, grid: Grid, links: Links = EQUAL_LINKS) -> tuple[Triple, ...]:
    """Return the minimal shapes of at least `routers` routers, the best first.

    A shape is minimal if no shape within it is large enough. On a grid of convex boxes, all shapes
    are convex. The order is by fewest idle routers, then least half-perimeter, then largest
    bisection, where `links` are the speeds of a link of each dimension.

    >>> shapes(6, Grid((4, 4, 4), (True, True, True)))[:2]
    ((1, 2, 3), (1, 3, 2))
    """
    found = []
    along_x, along_y, along_z = (grid.sides(axis, side) for axis, side in enumerate(grid.shape))
    for shorter_x, nx in pairwise((0, *along_x)):
        for shorter_y, ny in pairwise((0, *along_y)):
            place = bisect_left(along_z, -(-routers // (nx * ny)))
            if place == len(along_z):
                continue
            nz = along_z[place]
            if shorter_x * ny * nz >= routers or nx * shorter_y * nz >= routers:
                continue  # a shape within it holds the job too
            found.append((nx, ny, nz))

    def rank(shape: Triple) -> tuple[float, ...]:
        nx, ny, nz = shape
        return (nx * ny * nz, nx + ny + nz, -bisection(shape, grid, links), *shape)

    return tuple(sorted(found, key=rank))


def bisection(shape: Triple, grid: Grid, links: Links = EQUAL_LINKS) -> float:
    """Return the bisection of a box: the least speed of all links between two halves.

    A box as long as a ring of more than two routers is cut in two places. The bisection of a single
    router is 0.
    """
    volume = shape[0] * shape[1] * shape[2]
    cuts = [
        volume / length * speed * (2 if wraps and length == side > 2 else 1)
        for length, side, wraps, speed in zip(shape, grid.shape, grid.wrap, links)
        if length > 1
    ]
    return min(cuts, default=0.0)
