"""How maps of the layers of a torus lie on paper, and the pieces of boxes on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from optsched.boxes.box import Box, Grid
from optsched.report import style

Corners = list[tuple[float, float]]

ACROSS = 6
"""Maps beside each other; a torus of more than so many rows of maps has more."""

LARGEST_CELL, HIGHEST = 0.24, 6.5
"""Side of a router on paper, and height of all maps together, in inches, at most."""

GAPS = (0.1, 0.2)
"""Inches between maps beside each other, and above each other."""

MARGIN = 0.3
"""Inches to the left of the maps and below them, for the coordinates of their corners."""

LABEL = 7.0
"""Size of the labels in boxes, in points."""

WIDE, TALL = 0.64 * LABEL / 72, 0.95 * LABEL / 72
"""Width of a character of a label and height of a label, in inches."""


class Sheet(NamedTuple):
    """How the maps of a grid lie on paper.

    Parameters
    ----------
    grid : Grid
        The routers.
    columns, rows : int
        Maps beside each other and above each other; Y grows to the right, then downwards.
    cell : float
        Side of a router in inches.
    """

    grid: Grid
    columns: int
    rows: int
    cell: float

    @classmethod
    def of(cls, grid: Grid) -> Sheet:
        """Return the sheet on which the maps are as large as there is room for."""
        wide, layers, tall = grid.shape
        rows = math.ceil(layers / max(ACROSS, math.isqrt(layers)))
        columns = math.ceil(layers / rows)
        width = style.WIDTH - 2 * MARGIN - (columns - 1) * GAPS[0]
        height = HIGHEST - (rows - 1) * GAPS[1]
        cell = min(LARGEST_CELL, width / (columns * wide), height / (rows * tall))
        return cls(grid, columns, rows, cell)

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height of all maps together, in inches."""
        wide, _, tall = self.grid.shape
        gap, line = GAPS
        return (
            self.columns * (wide * self.cell + gap) - gap,
            self.rows * (tall * self.cell + line) - line,
        )

    def origin(self, layer: int) -> tuple[float, float]:
        """Return where the map of a layer has its lower left corner, in inches."""
        wide, _, tall = self.grid.shape
        row, column = divmod(layer, self.columns)
        return (
            column * (wide * self.cell + GAPS[0]),
            (self.rows - 1 - row) * (tall * self.cell + GAPS[1]),
        )

    def rectangles(self, box: Box) -> Iterator[Rectangle]:
        """Yield the pieces of a box in its layers, cut where it wraps around."""
        x, y, z, nx, ny, nz = box
        wide, layers, tall = self.grid.shape
        for layer in range(y, y + ny):
            left, below = self.origin(layer % layers)
            for x0, x1, *cut_x in _spans(x, nx, wide):
                for z0, z1, *cut_z in _spans(z, nz, tall):
                    yield Rectangle(
                        left + x0 * self.cell,
                        left + x1 * self.cell,
                        below + z0 * self.cell,
                        below + z1 * self.cell,
                        (cut_x[0], cut_x[1], cut_z[0], cut_z[1]),
                    )


class Rectangle(NamedTuple):
    """A piece of a box on paper, in inches, and at which of these edges the box goes on."""

    left: float
    right: float
    low: float
    high: float
    cut: tuple[bool, bool, bool, bool] = (False, False, False, False)

    @property
    def corners(self) -> Corners:
        """The corners, the first one again as the last."""
        a, b, c, d, _ = self
        return [(a, c), (b, c), (b, d), (a, d), (a, c)]

    @property
    def middle(self) -> tuple[float, float]:
        """Its centre."""
        return (self.left + self.right) / 2, (self.low + self.high) / 2

    def is_crossed(self, line: Corners) -> bool:
        """Return whether a line, upright or level, runs through it."""
        (a, c), (b, d) = line
        across = min(a, b) < self.right and max(a, b) > self.left
        return across and min(c, d) < self.high and max(c, d) > self.low

    def turn(self, label: str) -> int | None:
        """Return by how many degrees a label is turned that fits into it; none if none does."""
        for turn in (0, 90):
            wide, tall = label_size(label, turn)
            if self.right - self.left >= wide and self.high - self.low >= tall:
                return turn
        return None

    @property
    def edges(self) -> Iterator[Corners]:
        """The edges at which the box ends."""
        a, b, c, d, cut = self
        lines = ([(a, c), (a, d)], [(b, c), (b, d)], [(a, c), (b, c)], [(a, d), (b, d)])
        return (line for line, goes_on in zip(lines, cut) if not goes_on)


def label_size(label: str, turn: int) -> tuple[float, float]:
    """Return width and height of a label that is turned by 0 or 90 degrees, in inches."""
    long = WIDE * len(label)
    return (TALL, long) if turn else (long, TALL)


def _spans(at: int, length: int, side: int) -> list[tuple[int, int, bool, bool]]:
    """Return begin, end, and whether it goes on there, for each piece of a stretch of a ring."""
    if at + length <= side:
        return [(at, at + length, False, False)]
    return [(at, side, False, True), (0, at + length - side, True, False)]
