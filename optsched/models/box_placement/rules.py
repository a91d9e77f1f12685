"""Where a job may lie, from the maths: what a placement is verified by.

Nothing of it is shared with the program or with solvers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from optsched.boxes.box import Box, Triple
    from optsched.models.box_placement.problem import BoxPlacement

TAKEN = -1
"""Stands for the holder of routers that are not free."""


class AnchorRule:
    """Where the rule for anchors lets jobs lie; what is found of a shape is kept."""

    def __init__(self, problem: BoxPlacement) -> None:
        self._problem = problem
        self._cornered: dict[Triple, bool] = {}

    def admits(self, size: int, box: Box) -> bool:
        """Return whether a job of so many nodes may lie in a box.

        Under ``corners`` it may lie where it cannot slide; anywhere if no free box of an admitted
        shape is such a one.
        """
        if self._problem.anchors == "all" or not can_slide(self._problem, box):
            return True
        for shape in self._problem.admitted(size):
            if shape not in self._cornered:
                self._cornered[shape] = _has_corner(self._problem, shape)
            if self._cornered[shape]:
                return False
        return True


def can_slide(problem: BoxPlacement, box: Box) -> bool:
    """Return whether, in some dimension, nothing is next to the two faces of a box.

    That is no router that is not free, and no border. A box as long as the torus has no faces in
    that dimension.
    """
    grid = problem.grid
    for axis, (side, wraps) in enumerate(zip(grid.shape, grid.wrap)):
        length = box.extent[axis]
        if length == side:
            continue
        beside = [box.anchor[axis] - 1, box.anchor[axis] + length]
        if not wraps and not (beside[0] >= 0 and beside[1] < side):
            continue
        inside = list(grid.routers_of(box))
        along = [-1 if other == axis else 1 for other in range(3)]
        inside[axis] = np.array(beside).reshape(along) % side
        if problem.free[tuple(inside)].all():
            return True
    return False


def _has_corner(problem: BoxPlacement, shape: Triple) -> bool:
    """Return whether some free box of a shape cannot slide, by counting routers in use.

    All anchors are looked at together: ``counts(extent)[x, y, z]`` is how many routers in use the
    box of that extent at (x, y, z) holds.
    """
    grid = problem.grid
    admitted = np.ones(grid.shape, dtype=np.bool_)
    for axis, (length, side, wraps) in enumerate(zip(shape, grid.shape, grid.wrap)):
        at = np.arange(side).reshape([-1 if other == axis else 1 for other in range(3)])
        if length == side:
            admitted &= at == 0
            continue
        if wraps and problem.free.all():
            return False
        face = (*shape[:axis], 1, *shape[axis + 1 :])
        held = _counts(problem, face) > 0
        touched = np.roll(held, 1, axis) | np.roll(held, -length, axis)
        if not wraps:
            admitted &= at + length <= side
            touched |= (at == 0) | (at + length == side)
        admitted &= touched
    return bool((admitted & (_counts(problem, shape) == 0)).any())


def _counts(problem: BoxPlacement, extent: tuple[int, ...]) -> NDArray[np.int64]:
    counts = (~problem.free).astype(np.int64)
    for axis, length in enumerate(extent):
        side = counts.shape[axis]
        beyond = np.take(counts, np.arange(side + length - 1) % side, axis)
        sums = np.insert(beyond.cumsum(axis), 0, 0, axis)
        counts = np.take(sums, np.arange(side) + length, axis) - np.take(
            sums, np.arange(side), axis
        )
    return counts
