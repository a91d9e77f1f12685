"""Jobs in boxes of routers: who holds which, and the boxes behind sets of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid
from optsched.boxes.shapes import bisection

if TYPE_CHECKING:
    from optsched.machines.torus import Torus


class BoxAllocations:
    """The free routers of a torus on which jobs hold boxes.

    Parameters
    ----------
    grid : Grid
        The routers.
    holes : iterable of Box
        Routers that no job can have.

    Attributes
    ----------
    free : bool array, shape of the grid
        Which routers no job holds, holes left out; to be read, not changed.
    """

    def __init__(self, grid: Grid, holes: Iterable[Box]) -> None:
        self._grid = grid
        self._usable = grid.free_of(holes)
        self.free = self._usable.copy()

    def claim(self, box: Box) -> None:
        """Take a box for a job.

        Raises
        ------
        ValueError
            If it is none of the grid, or not all of it is free.
        """
        mistake = self._grid.mistake(box)
        if mistake:
            raise ValueError(f"box {box}: {mistake}")
        routers = self._grid.routers_of(box)
        if not self.free[routers].all():
            raise ValueError(f"box {box} is not free")
        self.free[routers] = False

    def release(self, box: Box) -> None:
        """Take back the box of a job."""
        self.free[self._grid.routers_of(box)] = True

    def violations(self, held: Mapping[int, Box]) -> list[str]:
        """Compare the free routers with the boxes that the running jobs hold."""
        grid = self._grid
        holders = np.zeros(grid.shape, np.int64)
        found = []
        for job, box in held.items():
            routers = grid.routers_of(box)
            if holders[routers].any():
                others = [str(other) for other in held if grid.overlap(held[other], box)]
                found.append(f"jobs {' and '.join(others)} share routers of {box}")
            if not self._usable[routers].all():
                found.append(f"job {job} holds a hole in {box}")
            holders[routers] += 1
        lost = self._usable & (holders == 0) & ~self.free
        invented = self.free & (~self._usable | (holders > 0))
        for wrong, what in ((lost, "lost"), (invented, "free and held")):
            if wrong.any():
                first = tuple(np.argwhere(wrong)[0].tolist())
                found.append(f"{int(wrong.sum())} routers are {what}, {first} first")
        return found


class BoxMeasures(NamedTuple):
    """What a torus measures of boxes, arrays of shape (allocations,).

    Parameters
    ----------
    box : array of str
        The box, ``2x24x4@3,0,22`` for instance.
    held_nodes : int64 array
        Nodes of its routers.
    half_perimeter : int64 array
        Sum of its sides, in routers.
    bisection : float64 array
        Speed of all links between its halves, see `optsched.boxes.shapes.bisection`.
    """

    box: NDArray[np.object_]
    held_nodes: NDArray[np.int64]
    half_perimeter: NDArray[np.int64]
    bisection: NDArray[np.float64]


def measure_boxes(torus: Torus, allocations: Sequence[str]) -> BoxMeasures:
    """Measure allocations that are boxes."""
    boxes = boxes_of(torus, allocations)
    extents = boxes[:, 3:]
    return BoxMeasures(
        box=np.array([str(Box(*box)) for box in boxes.tolist()], dtype=object),
        held_nodes=extents.prod(axis=1) * torus.nodes_per_router,
        half_perimeter=extents.sum(axis=1),
        bisection=np.array(
            [bisection((a, b, c), torus.grid, torus.links) for a, b, c in extents.tolist()],
            dtype=np.float64,
        ),
    )


def boxes_of(torus: Torus, allocations: Sequence[str]) -> NDArray[np.int64]:
    """Return the smallest boxes around allocations, shape (allocations, 6): x y z nx ny nz.

    Parameters
    ----------
    torus : Torus
        The machine.
    allocations : sequence of str
        Positions as interval sets, ``0-3 16-19`` for instance, none of them empty; each all nodes
        of a box.
    """
    from optsched.machines._interval_text import interval_runs

    jobs = len(allocations)
    boxes = np.zeros((jobs, 6), np.int64)
    if not jobs:
        return boxes
    text = np.frombuffer(("\n".join(allocations) + "\n").encode("ascii"), np.uint8)
    first, last, runs = interval_runs(text, jobs)
    starts, stops = (runs // torus.nodes_per_router).T  # whole routers, so both divide
    lengths = stops - starts
    job_of_run = np.repeat(np.arange(jobs), last - first)
    job = np.repeat(job_of_run, lengths)
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    position = np.repeat(starts, lengths) + np.arange(len(job)) - before
    coordinates = torus.coordinates[position]
    for axis, side in enumerate(torus.shape):
        there = np.zeros((jobs, side), np.bool_)
        there[job, coordinates[:, axis]] = True
        begins = there & ~np.roll(there, 1, axis=1)
        boxes[:, axis] = np.where(begins.any(axis=1), begins.argmax(axis=1), 0)
        boxes[:, 3 + axis] = there.sum(axis=1)
    return boxes


def nodes_text(torus: Torus, box: Box) -> str:
    """Return the nodes of a box as an interval set of positions on the line."""
    positions = np.sort(torus.position_of[torus.grid.routers_of(box)].ravel())
    breaks = np.flatnonzero(np.diff(positions) != 1) + 1
    firsts = positions[np.concatenate(([0], breaks))] * torus.nodes_per_router
    lasts = (positions[np.concatenate((breaks - 1, [-1]))] + 1) * torus.nodes_per_router - 1
    return " ".join(
        f"{first}-{last}" if last > first else f"{first}"
        for first, last in zip(firsts.tolist(), lasts.tolist())
    )
