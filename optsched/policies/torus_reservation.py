"""The reservation of a box for a job that no free box holds."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box
from optsched.boxes.free_boxes import anchors
from optsched.machines.torus import Torus
from optsched.policies.torus_fitting import Fitting
from optsched.simulator.system import System

Free = NDArray[np.bool_]


class BoxReservation(NamedTuple):
    """When a blocked job can start in a box by the estimates, and in which.

    Parameters
    ----------
    shadow : float
        Shadow time in seconds: the earliest estimated end at which a box is free that holds it.
    box : Box
        The box that is kept for it: of the best shape that is free then, where the fewest routers
        are free now.
    """

    shadow: float
    box: Box


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
        If no box holds it on the empty machine.
    """
    torus = system.machine
    assert isinstance(torus, Torus)
    ends = [
        (end, [system.held[job] for _, job in releases])
        for end, releases in groupby(system.running.by_estimated_end, itemgetter(0))
    ]

    def free_after(instants: int) -> Free:
        free = torus.boxes.free.copy()
        for _, boxes in ends[:instants]:
            for box in boxes:
                free[torus.grid.routers_of(box)] = True
        return free

    low, high = 0, len(ends)  # fits after `high` of them, does not after `low`
    while high - low > 1:
        middle = (low + high) // 2
        if fitting.fits(free_after(middle), routers):
            high = middle
        else:
            low = middle
    box = _place(torus, fitting, free_after(high), routers)
    if box is None or not high:
        raise ValueError(f"a reservation of {routers} routers, which are free or never will be")
    return BoxReservation(max(ends[high - 1][0], system.now), box)


def _place(torus: Torus, fitting: Fitting, free: Free, routers: int) -> Box | None:
    """Return the box of the best shape that is free then where the fewest routers are free now."""
    for shape in fitting.shapes(routers):
        at = anchors(free, torus.grid, shape)
        if len(at):
            taken = _sums(torus.boxes.free, shape)[tuple(at.T)]
            x, y, z = at[int(taken.argmin())].tolist()
            return Box(x, y, z, *shape)
    return None


def _sums(free: Free, shape: tuple[int, int, int]) -> NDArray[np.int64]:
    """Return the free routers in the box of a shape at each anchor, which may wrap around."""
    total = free.astype(np.int64)
    for axis, length in enumerate(shape):
        around = np.concatenate((total, total), axis=axis).cumsum(axis=axis)
        around = np.insert(around, 0, 0, axis=axis)
        side = total.shape[axis]
        ends = np.take(around, np.arange(length, length + side), axis=axis)
        total = ends - np.take(around, np.arange(side), axis=axis)
    return total
