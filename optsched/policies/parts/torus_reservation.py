"""Reservation of a box for a job that fits into no free box."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.boxes.box import Box
from optsched.machines.torus import Torus
from optsched.policies.parts.torus_fitting import Fitting
from optsched.simulator.system import System


@dataclass
class BoxReservation:
    """Reservation of a box for a blocked job.

    Parameters
    ----------
    shadow : float
        Shadow time in seconds: the earliest estimated end at which a large enough box is free.
    choose : callable
        Function that returns the box, called when the box is needed.
    """

    shadow: float
    choose: Callable[[], Box]

    @cached_property
    def box(self) -> Box:
        """Box reserved for the job."""
        return self.choose()


def reserve_box(system: System, fitting: Fitting, routers: int) -> BoxReservation:
    """Return the reservation of a job of `routers` routers (Li et al., section 6, steps 1 to 3).

    Running jobs end at their estimated ends, all of one instant together. Free routers only
    increase, so the first instant at which the job fits is found by bisection.

    Raises
    ------
    ValueError
        If the job does not fit even when all running jobs have ended.
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
    now, then = free.copy(), held_until <= ends[first]
    return BoxReservation(
        shadow=max(ends[first], system.now),
        choose=lambda: fitting.reserved(now, then, routers),
    )
