"""Reservation of a blocked job by number of processors, and backfilling around it."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from typing import NamedTuple

from optsched.simulator.actions import Action, Start
from optsched.simulator.system import System


class Reservation(NamedTuple):
    """Shadow time and extra processors of a blocked job."""

    shadow: float  # earliest time at which the running jobs will have released enough processors
    extra: int  # processors that are free then beyond those that the job needs


def reserve(system: System, job: int) -> Reservation:
    """Return the reservation of `job`, which is too large for the free processors.

    All releases of one instant count together. The processors of a running job whose estimated end
    has come count as free, even if its end event of this instant is still to follow.
    """
    processors, now = system.processors, system.now
    needed = processors[job] - system.machine.free
    releases = iter(system.running.by_estimated_end)
    shadow = now
    for end, running in releases:
        needed -= processors[running]
        shadow = end
        if needed <= 0:
            break
    for end, running in releases:
        if end > shadow and end > now:
            break
        needed -= processors[running]
    return Reservation(max(shadow, now), -needed)


def promise(
    promised: Mapping[int, float], job: int, reservation: Reservation
) -> Mapping[int, float]:
    """Return the promise of a reservation, or an earlier one that the job has already."""
    return {job: min(reservation.shadow, promised.get(job, math.inf))}


def backfill(
    system: System, candidates: Iterable[int], reservation: Reservation
) -> Generator[Action, None, Reservation]:
    """Start the candidates that do not delay the reservation, in order (EASY).

    The blocked job itself is not a candidate. The reservation is returned with the extra processors
    that remain.
    """
    processors, requested_time = system.processors, system.requested_time
    free, longest = system.machine.free, reservation.shadow - system.now
    extra = reservation.extra
    for job in candidates:
        size = processors[job]
        if size > free:
            continue
        if requested_time[job] > longest:
            if size > extra:
                continue
            extra -= size
        free -= size
        yield Start(job)
        if not free:
            break
    return reservation if extra == reservation.extra else reservation._replace(extra=extra)
