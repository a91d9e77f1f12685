"""The reservation of a box for a job that no free box holds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.free_boxes import anchors
from optsched.machines.torus import Torus
from optsched.policies.torus_fitting import Fitting
from optsched.simulator.system import System

Free = NDArray[np.bool_]


@dataclass
class BoxReservation:
    """When a blocked job can start in a box by the estimates, and in which.

    Parameters
    ----------
    shadow : float
        Shadow time in seconds: the earliest estimated end at which a box is free that holds it.
    free : bool array, shape of the torus
        Which routers are free now.
    free_then : bool array, shape of the torus
        Which are free at the shadow time.
    grid : Grid
        The routers.
    shapes : sequence of (int, int, int)
        The shapes that the job may have, the best first.
    """

    shadow: float
    free: Free
    free_then: Free
    grid: Grid
    shapes: Sequence[Triple]

    @cached_property
    def box(self) -> Box:
        """The box that is kept: of the best shape, where the fewest routers are free now."""
        for shape in self.shapes:
            at = anchors(self.free_then, self.grid, shape)
            if len(at):
                free_now = _sums(self.free, shape)[tuple(at.T)]
                x, y, z = at[int(free_now.argmin())].tolist()
                return Box(x, y, z, *shape)
        raise AssertionError("a job fits, but has no box")


def reserve_box(system: System, fitting: Fitting, routers: int) -> BoxReservation:
    """Return the reservation of a job (section 6 of Li et al., steps 1 to 3).

    Running jobs end at their estimates, all of one instant at once. What is free only grows, so the
    first instant is found by bisection.

    Parameters
    ----------
    system : System
        The state; the machine is a torus.
    fitting : Fitting
        Says whether a job fits.
    routers : int
        Routers that the job takes.

    Raises
    ------
    ValueError
        If no box holds it when all running jobs have ended.
    """
    torus = system.machine
    assert isinstance(torus, Torus)
    free = torus.boxes.free
    held_until = np.where(free, -np.inf, np.inf)
    for job in system.running:
        held_until[torus.grid.routers_of(system.held[job])] = system.running.estimated_end(job)
    ends = sorted({end for end, _ in system.running.by_estimated_end})
    first = bisect_left(ends, True, key=lambda end: fitting.fits(held_until <= end, routers))
    if first == len(ends):
        raise ValueError(f"no box of {routers} routers, even when all running jobs have ended")
    return BoxReservation(
        shadow=max(ends[first], system.now),
        free=free.copy(),
        free_then=held_until <= ends[first],
        grid=torus.grid,
        shapes=fitting.shapes(routers),
    )


def _sums(free: Free, shape: Triple) -> NDArray[np.int64]:
    """Return the free routers in the box of a shape at each anchor, which may wrap around."""
    total = free.astype(np.int64)
    for axis, length in enumerate(shape):
        around = np.concatenate((total, total), axis=axis).cumsum(axis=axis)
        around = np.insert(around, 0, 0, axis=axis)
        side = total.shape[axis]
        ends = np.take(around, np.arange(length, length + side), axis=axis)
        total = ends - np.take(around, np.arange(side), axis=axis)
    return total
