"""Processor orderings: the routers of a grid in order on a line."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optsched.errors import UnknownNameError

Coordinates = NDArray[np.int64]
"""Coordinates of routers, with one row per router and one column per dimension."""


@lru_cache(maxsize=8)
def ordering(name: str, shape: tuple[int, ...]) -> Coordinates:
    """Return the coordinates of the routers in a processor ordering.

    Row ``p`` is the router at position ``p``. The array is shared between calls and read-only.

    >>> ordering("snake", (2, 3)).tolist()
    [[0, 0], [0, 1], [0, 2], [1, 2], [1, 1], [1, 0]]
    """
    if name not in ORDERINGS:
        raise UnknownNameError("ordering", name, ORDERINGS)
    coordinates = ORDERINGS[name](shape)
    coordinates.flags.writeable = False
    return coordinates


def row_major(shape: tuple[int, ...]) -> Coordinates:
    """Return the routers in row-major order: the last coordinate changes fastest."""
    steps = np.arange(math.prod(shape))
    return np.stack(np.unravel_index(steps, shape), axis=1).astype(np.int64)


def snake(shape: tuple[int, ...]) -> Coordinates:
    """Return the routers in boustrophedon order, in which consecutive routers are neighbors.

    Each coordinate goes up and down in turn: the reflected Gray code of mixed radix.
    """
    coordinates = row_major(shape)
    sweep = np.zeros(len(coordinates), dtype=np.int64)
    for axis, length in enumerate(shape):
        upwards = coordinates[:, axis].copy()
        downwards = sweep % 2 == 1
        coordinates[downwards, axis] = length - 1 - upwards[downwards]
        sweep = sweep * length + upwards
    return coordinates


def hilbert(shape: tuple[int, ...]) -> Coordinates:
    """Return the routers along the Hilbert curve.

    On a cube whose side is a power of two, consecutive routers are neighbors. On any other grid the
    curve is that of the smallest enclosing cube, without the routers outside the grid: the routers
    are sorted by Hilbert number, as Slurm sorts the nodes of a 3-D torus. Where the curve leaves
    the grid, the step may be longer than one hop.
    """
    coordinates = row_major(shape)
    bits = (max(shape) - 1).bit_length()
    return coordinates[np.argsort(hilbert_numbers(coordinates, bits))]


def hilbert_numbers(coordinates: Coordinates, bits: int) -> NDArray[np.int64]:
    """Return the positions of points on the Hilbert curve through a cube, from 0 at the origin.

    The side of the cube is ``2**bits``, with at most 63 bits in all dimensions together.

    J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707, 2004.
    doi:10.1063/1.1751381
    """
    axes: NDArray[np.int64] = coordinates.T.copy()
    first, last = axes[0], axes[-1]
    # every level of the curve is a rotated copy of the one above: undo the rotation
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        for axis in axes:
            upper = (axis >> bit) & 1 == 1
            exchanged = np.where(upper, 0, (first ^ axis) & below)
            first ^= np.where(upper, below, exchanged)
            axis ^= exchanged
    # the corners of a cube are visited in the order of a Gray code
    for before, axis in pairwise(axes):
        axis ^= before
    flipped = np.zeros_like(last)
    for bit in range(1, bits):
        flipped ^= ((last >> bit) & 1) * ((1 << bit) - 1)
    axes ^= flipped
    numbers = np.zeros(len(coordinates), dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            numbers = (numbers << 1) | ((axis >> bit) & 1)
    return numbers


ORDERINGS: dict[str, Callable[[tuple[int, ...]], Coordinates]] = {
    "row-major": row_major,
    "snake": snake,
    "hilbert": hilbert,
}
"""Processor orderings by name."""
