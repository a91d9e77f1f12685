"""Allocation of boxes of routers to jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from optsched.boxes.box import Box, Grid


class BoxAllocations:
    """Free routers of a torus on which jobs hold boxes.

    The mask `free`, of the shape of the grid, is True for routers that lie in no hole and that no
    job holds. It is read-only for callers; `changes` counts its changes.
    """

    def __init__(self, grid: Grid, holes: Iterable[Box]) -> None:
        self._grid = grid
        self._usable = grid.free_of(holes)
        self.free = self._usable.copy()
        self.changes = 0

    def claim(self, box: Box) -> None:
        """Take a box for a job."""
        mistake = self._grid.mistake(box)
        if mistake:
            raise ValueError(f"box {box}: {mistake}")
        if not self._grid.admits(box.extent):
            raise ValueError(f"box {box} is not convex")
        routers = self._grid.routers_of(box)
        if not self.free[routers].all():
            raise ValueError(f"box {box} is not free")
        self.free[routers] = False
        self.changes += 1

    def release(self, box: Box) -> None:
        """Take back the box of a job."""
        self.free[self._grid.routers_of(box)] = True
        self.changes += 1

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
