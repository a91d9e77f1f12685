"""A reservation of contiguous nodes, and the jobs that may start without touching it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from optsched.machines.free_runs import FreeRuns, Run
from optsched.machines.nodes import Nodes
from optsched.policies.parts.reservation import reserve
from optsched.simulator.actions import Action, Start
from optsched.simulator.system import System


class SlotReservation(NamedTuple):
    """When a blocked job can start on contiguous nodes by the estimates, and on which.

    Parameters
    ----------
    shadow : float
        Shadow time in seconds: the earliest time at which the running jobs will have released a
        slot that is long enough.
    place : (int, int)
        The nodes that are kept for it, from the first up to the second; none are if both are equal.
    extra : int
        Nodes that jobs may hold beyond the shadow time.
    """

    shadow: float
    place: Run
    extra: int


def reserve_slot(system: System, job: int) -> SlotReservation:
    """Return the reservation of `job`, which no slot holds now.

    All releases of one instant count together. Of the slots that come about and are long enough it
    is in the smallest, at the end that overlaps fewer nodes that are free now.
    """
    machine, size = system.machine, system.processors[job]
    assert isinstance(machine, Nodes)
    line = machine.slots.copy()
    for estimated_end, releases in groupby(system.running.by_estimated_end, itemgetter(0)):
        released = [run for _, running in releases for run in system.held[running]]
        for start, stop in released:
            line.give(start, stop)
        slots = {line.around(start) for start, _ in released}
        place = _smallest(sorted(slots), size)
        if place is not None:
            start, stop = line.around(place)
            low, high = (start, start + size), (stop - size, stop)
            kept = high if _free(machine.slots, high) < _free(machine.slots, low) else low
            return SlotReservation(max(estimated_end, system.now), kept, machine.size)
    raise ValueError(f"job of {size} nodes on a machine of {machine.size}")


def reserve_anywhere(system: System, job: int) -> SlotReservation:
    """Return the reservation of a job that may be scattered: EASY's, on no nodes of its own."""
    shadow, extra = reserve(system, job)
    return SlotReservation(shadow, (0, 0), extra)


def backfill_slots(
    system: System, candidates: Iterable[int], reservation: SlotReservation
) -> Iterator[Action]:
    """Start the candidates that a slot holds and that leave the reservation alone, in their order.

    A job starts in the smallest slot that holds it. It must end by the shadow time, by its
    estimate, or keep off the nodes that are reserved, and take no more than the extra ones.

    Parameters
    ----------
    system : System
        The state.
    candidates : iterable of int
        Waiting jobs, the job with the reservation left out.
    reservation : SlotReservation
        Must not be delayed.
    """
    processors, requested_time = system.processors, system.requested_time
    machine = system.machine
    assert isinstance(machine, Nodes)
    longest, extra = reservation.shadow - system.now, reservation.extra
    slots = list(zip(machine.slots.starts, machine.slots.stops))
    apart = _without(slots, reservation.place)
    for job in candidates:
        size = processors[job]
        ends_in_time = requested_time[job] <= longest
        found = _smallest(slots if ends_in_time else apart, size)
        if found is None or not (ends_in_time or size <= extra):
            continue
        if not ends_in_time:
            extra -= size
        place = (found, found + size)
        yield Start(job, (place,))
        slots = _without(slots, place)
        if not slots:
            break
        apart = _without(apart, place)


def _free(slots: FreeRuns, place: Run) -> int:
    """Return how many nodes of a place are free."""
    start, stop = place
    overlaps = (min(stop, b) - max(start, a) for a, b in zip(slots.starts, slots.stops))
    return sum(overlap for overlap in overlaps if overlap > 0)


def _without(slots: list[Run], place: Run) -> list[Run]:
    """Return the slots with a place cut out."""
    start, stop = place
    left = []
    for a, b in slots:
        if b <= start or stop <= a:
            left.append((a, b))
            continue
        if a < start:
            left.append((a, start))
        if stop < b:
            left.append((stop, b))
    return left


def _smallest(slots: list[Run], size: int) -> int | None:
    """Return where the smallest slot that holds `size` nodes begins; none if there is none."""
    found, least = None, 0
    for start, stop in slots:
        length = stop - start
        if length >= size and (found is None or length < least):
            found, least = start, length
    return found
