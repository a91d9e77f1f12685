"""Boxes of routers on the grid of a three-dimensional torus, and the shapes that a job may get."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Triple = tuple[int, int, int]

TEXT = re.compile(r"(\d{1,9})x(\d{1,9})x(\d{1,9})@(\d{1,9}),(\d{1,9}),(\d{1,9})", re.ASCII)


class Box(NamedTuple):
    """Box of `nx` x `ny` x `nz` routers from (`x`, `y`, `z`) upwards.

    In a dimension that wraps around, the box may continue from the last router to the first.

    >>> box = Box(3, 0, 22, 2, 24, 4)
    >>> str(box), box.volume
    ('2x24x4@3,0,22', 192)
    """

    x: int
    y: int
    z: int
    nx: int
    ny: int
    nz: int

    def __str__(self) -> str:
        return f"{self.nx}x{self.ny}x{self.nz}@{self.x},{self.y},{self.z}"

    @property
    def anchor(self) -> Triple:
        """Router with the lowest coordinates, before the wrap-around."""
        return self[:3]

    @property
    def extent(self) -> Triple:
        """Routers in each dimension."""
        return self[3:]

    @property
    def volume(self) -> int:
        """Number of routers."""
        return self.nx * self.ny * self.nz


def box_of_text(text: str) -> Box | None:
    """Return the box of a text such as ``2x24x4@3,0,22``; None for any other text."""
    match = TEXT.fullmatch(text)
    if match is None:
        return None
    nx, ny, nz, x, y, z = map(int, match.groups())
    return Box(x, y, z, nx, ny, nz)


class Grid(NamedTuple):
    """Grid of routers in three dimensions, each a line or a ring.

    >>> grid = Grid((4, 4, 4), (True, False, True))
    >>> grid.overlap(Box(3, 0, 0, 2, 1, 1), Box(0, 0, 0, 1, 4, 1))
    True
    """

    shape: Triple  # routers in each dimension
    wrap: tuple[bool, bool, bool]  # whether each dimension wraps around
    # Whether boxes of jobs have to be convex: all shortest paths between two routers of the
    # box stay inside. Then a side of a box is a whole ring, or at most half of it, rounded
    # up; see `longest`. By default, a box may have any sides.
    convex: bool = False

    @property
    def routers(self) -> int:
        """Number of routers."""
        return math.prod(self.shape)

    @property
    def longest(self) -> Triple:
        """The longest side that a job's box may have in each dimension, besides a whole dimension.

        The ends of a side of s routers on a ring of n are s - 1 hops apart inside the box, and
        n - s + 1 hops around it. The way inside is the only shortest one if s - 1 < n / 2, that is
        if s is at most n / 2, rounded up. With s - 1 = n / 2, a second way of the same length
        leaves the box, and a router may take it, so that side is excluded. On a line there is no
        way around.

        >>> Grid((24, 5, 24), (True, True, False), convex=True).longest
        (12, 3, 24)
        """
        if not self.convex:
            return self.shape
        x, y, z = ((side + 1) // 2 if wraps else side for side, wraps in zip(self.shape, self.wrap))
        return x, y, z

    def sides(self, axis: int, most: int) -> tuple[int, ...]:
        """Return the sides of at most `most` routers that a job's box may have, ascending."""
        side, longest = self.shape[axis], self.longest[axis]
        whole = (side,) if longest < side <= most else ()
        return (*range(1, min(most, longest) + 1), *whole)

    def admits(self, extent: Triple) -> bool:
        """Return whether a job's box may have an extent; false only for one that is not convex."""
        return all(
            length <= longest or length == side
            for length, side, longest in zip(extent, self.shape, self.longest)
        )

    def mistake(self, box: Box) -> str:
        """Return the reason why a box does not lie on this grid; empty if the box does.

        A box as long as a ring is anchored at 0 in that dimension, so that no two boxes have the
        same routers.
        """
        x, y, z, nx, ny, nz = box
        sx, sy, sz = self.shape
        if 0 <= x <= sx - nx < sx and 0 <= y <= sy - ny < sy and 0 <= z <= sz - nz < sz:
            return ""  # as for most boxes
        for axis, at, length, side, wraps in zip(
            "xyz", box.anchor, box.extent, self.shape, self.wrap
        ):
            if not 1 <= length <= side:
                return f"{length} routers along {axis}; expected 1 to {side}"
            if not 0 <= at < side:
                return f"begins at {axis} = {at}; expected 0 to {side - 1}"
            if at + length > side and not wraps:
                return f"ends at {axis} = {at + length - 1}; the last is {side - 1}"
            if at and length == side:
                return f"a whole ring from {axis} = {at}; expected to begin at 0"
        return ""

    def overlap(self, one: Box, other: Box) -> bool:
        """Return whether two boxes of this grid have a router in common."""
        return all(
            (b - a) % side < n or (a - b) % side < m
            for a, n, b, m, side in zip(
                one.anchor, one.extent, other.anchor, other.extent, self.shape
            )
        )

    def meets(self, boxes: Any, others: Any) -> NDArray[np.bool_]:
        """Return which pairs of a box and another one overlap, shape (boxes, others)."""
        one = np.array(boxes, np.int64).reshape(-1, 1, 6)
        other = np.array(others, np.int64).reshape(1, -1, 6)
        ahead = (other[..., :3] - one[..., :3]) % self.shape
        behind = (one[..., :3] - other[..., :3]) % self.shape
        return np.asarray(((ahead < one[..., 3:]) | (behind < other[..., 3:])).all(axis=2))

    def overlapping(self, boxes: NDArray[np.int64], others: Any) -> NDArray[np.bool_]:
        """Return which of `boxes`, shape (boxes, 6), overlap any of the `others`, one or more."""
        return np.any(self.meets(boxes, others), axis=1)

    def are_disjoint(self, boxes: Collection[Box], besides: Iterable[Box] = ()) -> bool:
        """Return whether boxes share no router with each other, or with those `besides`."""
        free = self.free_of(besides)
        before = np.count_nonzero(free)
        for box in boxes:
            free[self.routers_of(box)] = False
        return bool(before - np.count_nonzero(free) == sum(box.volume for box in boxes))

    def routers_of(self, box: Box) -> tuple[slice | NDArray[np.int64], ...]:
        """Return the index of a box in an array over the grid, for reading and writing."""
        x, y, z, nx, ny, nz = box
        sx, sy, sz = self.shape
        if 0 <= x <= sx - nx and 0 <= y <= sy - ny and 0 <= z <= sz - nz:
            return slice(x, x + nx), slice(y, y + ny), slice(z, z + nz)  # much faster than arrays
        return _routers_of(self.shape, box)

    def cells(self, box: Box) -> NDArray[np.int64]:
        """Return the numbers of the routers of a box in row-major order, shape (volume,)."""
        x, y, z = _routers_of(self.shape, box)
        numbers: NDArray[np.int64] = (x * self.shape[1] + y) * self.shape[2] + z
        return numbers.ravel()

    def free_of(self, boxes: Any) -> NDArray[np.bool_]:
        """Return a mask of the routers outside all given boxes, shape of the grid."""
        free = np.ones(self.shape, dtype=np.bool_)
        for box in boxes:
            free[self.routers_of(box)] = False
        return free


@lru_cache(maxsize=2**14)
def _routers_of(shape: Triple, box: Box) -> tuple[NDArray[np.int64], ...]:
    # cached, because a policy reads the boxes of the running jobs at every decision
    return np.ix_(
        *(
            np.arange(at, at + length) % side
            for at, length, side in zip(box.anchor, box.extent, shape)
        )
    )


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
