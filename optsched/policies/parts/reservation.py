"""The reservation of a blocked job, and the jobs that may start without touching it."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import NamedTuple

from optsched.simulator.actions import Action, Start
from optsched.simulator.system import System


class Reservation(NamedTuple):
    """When a blocked job can start by the estimates, and what it leaves free then.

    Parameters
    ----------
    shadow : float
        Shadow time in seconds: the earliest time at which the running jobs will have released
        enough processors.
    extra : int
        Processors that are free at that time beyond what the job takes.
    """

    shadow: float
    extra: int


def reserve(system: System, job: int) -> Reservation:
    """Return the reservation of `job`, which is too large for the free processors.

    All releases of one instant count together. A running job whose estimated end has come counts
    as free at once, though its end may still be to happen at this instant.
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


def backfill(
    system: System, candidates: Iterable[int], reservation: Reservation
) -> Generator[Action, None, Reservation]:
    """Start the candidates that leave the reservation alone, in their order (EASY).

    A job starts if it fits now and either ends by the shadow time, by its estimate, or takes no
    more than the extra processors.

    Parameters
    ----------
    system : System
        The state.
    candidates : iterable of int
        Waiting jobs, the job with the reservation left out.
    reservation : Reservation
        Must not be delayed.

    Returns
    -------
    Reservation
        What is left of it: fewer extra processors when some were taken.
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
    return Reservation(reservation.shadow, extra)
