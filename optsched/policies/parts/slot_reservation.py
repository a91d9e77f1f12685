"""Reservation of contiguous nodes for a blocked job, and backfilling around it."""

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
    """Shadow time and reserved nodes of a blocked job."""

    shadow: float  # earliest time at which the running jobs will have released a long enough slot
    place: Run  # range of nodes, without its end; empty if both numbers are equal
    extra: int  # nodes that other jobs may hold beyond the shadow time


def reserve_slot(system: System, job: int) -> SlotReservation:
    """Return the reservation of `job`, which no slot holds now.

    All releases of one instant count together. The reservation is in the smallest slot of that
    time that is long enough, at the end that overlaps fewer nodes that are free now.
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
    """Return the reservation of a job that may be scattered: that of EASY, by number only."""
    shadow, extra = reserve(system, job)
    return SlotReservation(shadow, (0, 0), extra)


def backfill_slots(
    system: System, candidates: Iterable[int], reservation: SlotReservation
) -> Iterator[Action]:
    """Start the candidates that fit into a slot and do not delay the reservation, in order.

    A job starts in the smallest slot that is long enough. Its estimated end must be by the shadow
    time, or the job must avoid the reserved nodes and need no more than the extra nodes. The
    blocked job itself is not a candidate.
    """
    processors, requested_time = system.processors, system.requested_time
    machine = system.machine
    assert isinstance(machine, Nodes)
    longest, extra = reservation.shadow - system.now, reservation.extra
    slots = list(machine.slots)
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
    """Return the number of free nodes of a place."""
    start, stop = place
    overlaps = (min(stop, b) - max(start, a) for a, b in slots)
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
    """Return the start of the smallest slot of at least `size` nodes; None without one."""
    found, least = None, 0
    for start, stop in slots:
        length = stop - start
        if length >= size and (found is None or length < least):
            found, least = start, length
    return found
