"""Candidates of a box placement: the boxes that jobs may get, one variable of the program each.

Jobs of equal size and profit form a *class*. They have the same candidates, so one variable for a
candidate and a row that counts the jobs of the class replace a variable for each job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.free_boxes import anchors as free_anchors
from optsched.compiled import kernel
from optsched.errors import InputError

MOST = 40_000_000
"""Most routers of all candidates together, a limit on the entries of the program."""


class Candidates(NamedTuple):
    """Candidates by class, then by shape in rank order, then by anchor in row-major order."""

    grid: Grid
    jobs: tuple[tuple[int, ...], ...]  # the jobs of each class, in the order of the queue
    class_of: NDArray[np.int64]
    shapes: NDArray[np.int64]
    # Candidates ``start[p]`` to ``start[p + 1]`` are those of piece p, shape (pieces + 1,)
    start: NDArray[np.int64]
    at: NDArray[np.int64]  # the number of each anchor in row-major order, shape (candidates,)

    def piece(self, candidate: int) -> int:
        """Return the piece that a candidate belongs to."""
        return int(np.searchsorted(self.start, candidate, side="right")) - 1

    def box(self, candidate: int) -> Box:
        """Return the box of a candidate."""
        _, sy, sz = self.grid.shape
        x, rest = divmod(int(self.at[candidate]), sy * sz)
        return Box(x, *divmod(rest, sz), *self.shapes[self.piece(candidate)].tolist())

    def number(self, of_class: int, box: Box) -> int:
        """Return the number of the candidate with a given box."""
        _, sy, sz = self.grid.shape
        same = (self.class_of == of_class) & (self.shapes == box.extent).all(axis=1)
        for piece in np.flatnonzero(same):
            low, high = self.start[piece], self.start[piece + 1]
            at = (box.x * sy + box.y) * sz + box.z
            place = low + np.searchsorted(self.at[low:high], at)
            if place < high and self.at[place] == at:
                return int(place)
        raise InputError(f"{box} is no candidate of job {self.jobs[of_class][0] + 1}")

    def report(self) -> str:
        """Return the number of candidates and the size of the program as text."""
        entries, needed = covered(*self.as_arrays())
        rows = len(self.jobs) + np.count_nonzero(needed)
        total = len(self.at) + int(entries[needed].sum())
        return f"{len(self.at)} boxes in {rows} rows, {total} entries"

    def as_arrays(self) -> tuple[NDArray[np.int64], ...]:
        """Return the grid and the candidates as arguments of the kernels."""
        several = np.array([len(jobs) > 1 for jobs in self.jobs], dtype=np.int64)
        sides = np.array(self.grid.shape, dtype=np.int64)
        return sides, several, self.class_of, self.shapes, self.start, self.at


def candidates_of(
    grid: Grid,
    free: NDArray[np.bool_],
    queue: Iterable[tuple[int, int]],
    admitted: Callable[[int], Iterable[Triple]],
    *,
    corners: bool,
) -> Candidates:
    """Return the candidates of a queue of jobs, each with its size and profit.

    A job may have the shapes that `admitted` returns for its size, the best first; with `corners`,
    it gets only boxes that cannot slide, if it has any.
    """
    classes: dict[tuple[int, int], list[int]] = {}
    for job, same in enumerate(queue):
        classes.setdefault(same, []).append(job)
    anchors = _Anchors(grid, free, corners)
    pieces: list[tuple[int, Triple, NDArray[np.int64]]] = []
    routers = 0
    for number, (size, _) in enumerate(classes):
        found = anchors.of(admitted(size))
        for shape, at in found:
            routers += shape[0] * shape[1] * shape[2] * len(at)
            pieces.append((number, shape, at))
        if routers > MOST:
            raise InputError(
                f"the first {number + 1} of {len(classes)} kinds of jobs have boxes of {routers} "
                f"routers; expected at most {MOST}: fewer shapes or anchors = corners thin them"
            )
    return Candidates(
        grid,
        tuple(map(tuple, classes.values())),
        np.array([number for number, _, _ in pieces], dtype=np.int64),
        np.array([shape for _, shape, _ in pieces], dtype=np.int64).reshape(-1, 3),
        np.cumsum([0, *(len(at) for _, _, at in pieces)], dtype=np.int64),
        np.concatenate([np.empty(0, dtype=np.int64), *(at for _, _, at in pieces)]),
    )


class _Anchors:
    """Anchors of free boxes by shape, each shape searched once."""

    def __init__(self, grid: Grid, free: NDArray[np.bool_], corners: bool) -> None:
        self.grid = grid
        self.free = free
        self.corners = corners
        self.routers = np.count_nonzero(free)
        self.everywhere, self.cornered = cache(self._everywhere), cache(self._cornered)
        # prefix sums of unavailable routers over two copies of the torus in each dimension
        in_use = np.tile(~free, (2, 2, 2)).astype(np.int32)
        self._sums = np.pad(in_use, ((1, 0), (1, 0), (1, 0)))
        for axis in range(3):
            self._sums = self._sums.cumsum(axis, dtype=np.int32)

    def of(self, shapes: Iterable[Triple]) -> list[tuple[Triple, NDArray[np.int64]]]:
        """Return the anchors of a job with given shapes, by shape."""
        shapes = [shape for shape in shapes if np.prod(shape) <= self.routers]
        if self.corners:
            found = [(shape, at) for shape in shapes if len(at := self.cornered(shape))]
            if found:
                return found
        return [(shape, at) for shape in shapes if len(at := self.everywhere(shape))]

    def _everywhere(self, shape: Triple) -> NDArray[np.int64]:
        """Return the anchors of free boxes of a shape, as ascending numbers of routers."""
        x, y, z = free_anchors(self.free, self.grid, shape).T
        numbers: NDArray[np.int64] = (x * self.grid.shape[1] + y) * self.grid.shape[2] + z
        return numbers

    def _cornered(self, shape: Triple) -> NDArray[np.int64]:
        """Return the anchors of free boxes of a shape that cannot slide."""
        at = self.everywhere(shape)
        where = np.array(np.unravel_index(at, self.grid.shape))
        stays = np.ones(len(at), dtype=np.bool_)
        for axis, (length, side, wraps) in enumerate(zip(shape, self.grid.shape, self.grid.wrap)):
            if length == side:
                continue
            face = np.array(shape)
            face[axis] = 1
            below, above = where.copy(), where.copy()
            below[axis] = (where[axis] - 1) % side
            above[axis] = (where[axis] + length) % side
            touched = (self._in_use(below, face) > 0) | (self._in_use(above, face) > 0)
            if not wraps:
                touched |= (where[axis] == 0) | (where[axis] + length == side)
            stays &= touched
        return at[stays]

    def _in_use(self, low: NDArray[np.int64], extent: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the number of unavailable routers in each box; `low` has shape (3, boxes)."""
        (x, y, z), (a, b, c) = low, low + extent[:, None]
        s = self._sums
        upper = s[a, b, c] - s[x, b, c] - s[a, y, c] + s[x, y, c]
        lower = s[a, b, z] - s[x, b, z] - s[a, y, z] + s[x, y, z]
        return np.asarray(upper - lower)


@kernel
def covered(sides: Any, several: Any, class_of: Any, shapes: Any, start: Any, at: Any) -> Any:
    """Return the number of boxes that cover each router, and whether the router needs a row.

    A router needs a row if two of its boxes could be chosen together. Parameters are those of
    `Candidates`; `several` is the mask of the classes with more than one job.
    """
    sy, sz = sides[1], sides[2]
    routers = sides[0] * sy * sz
    count = np.zeros(routers, dtype=np.int64)
    first = np.zeros(routers, dtype=np.int64)
    needed = np.zeros(routers, dtype=np.bool_)
    for piece in range(len(class_of)):
        of_class = class_of[piece]
        for box in range(start[piece], start[piece + 1]):
            x, y, z = at[box] // (sy * sz), at[box] // sz % sy, at[box] % sz
            for i in range(x, x + shapes[piece, 0]):
                for j in range(y, y + shapes[piece, 1]):
                    row = (i % sides[0] * sy + j % sy) * sz
                    for k in range(z, z + shapes[piece, 2]):
                        router = row + (k if k < sz else k - sz)
                        if count[router] == 0:
                            first[router] = of_class
                        elif first[router] != of_class or several[of_class]:
                            needed[router] = True
                        count[router] += 1
    return count, needed


@kernel
def listed(
    sides: Any, class_of: Any, shapes: Any, start: Any, at: Any, position: Any, columns: Any
) -> None:
    """Write the boxes that cover each router into `columns`, from its entry of `position` on.

    A negative entry of `position` skips the router.
    """
    sy, sz = sides[1], sides[2]
    for piece in range(len(class_of)):
        for box in range(start[piece], start[piece + 1]):
            x, y, z = at[box] // (sy * sz), at[box] // sz % sy, at[box] % sz
            for i in range(x, x + shapes[piece, 0]):
                for j in range(y, y + shapes[piece, 1]):
                    row = (i % sides[0] * sy + j % sy) * sz
                    for k in range(z, z + shapes[piece, 2]):
                        router = row + (k if k < sz else k - sz)
                        if position[router] >= 0:
                            columns[position[router]] = box
                            position[router] += 1
