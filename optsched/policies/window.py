"""Window-based locality-aware scheduling."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter, sub
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from optsched.errors import InputError
from optsched.machines.free_runs import FreeRuns, Run
from optsched.machines.machine import Machine
from optsched.machines.nodes import Nodes
from optsched.models.fields import read_only
from optsched.models.window_mkp import NOT_PLACED, WindowMKP
from optsched.policies.reservation import reserve
from optsched.registry import policies
from optsched.simulator.actions import Action, Start
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System


@policies.register("window")
@dataclass
class Window(Policy):
    """The first jobs of the queue are placed into contiguous slots, all in one decision.

    Jobs that no slot can hold wait, equation (7). Slots that can hold no job are left out, equation
    (8), and so are the smallest ones if there are more slots than jobs. The rest is a 0-1 multiple
    knapsack problem for the chosen solver. Within a slot, jobs are in the order of the queue from
    the low end.

    Parameters
    ----------
    window : int
        Number of jobs from the queue head that are decided on together.
    interval : float
        Seconds between two decisions, each on one window. With 0, a decision follows every event,
        on successive windows until one starts no job.
    backfill : {"none", "easy"}
        With ``none``, only jobs of the window start, and all wait behind a head that no slot can
        hold: the strict reading of the paper, under which waits are many times longer. With
        ``easy``, later jobs may start after the window if the queue head is blocked, each in
        the smallest slot that holds it, without delay of the head. The head has a reservation of
        contiguous nodes, by estimated ends, which backfilled jobs respect, but not the window.
    scatter : {"never", "head"}
        Whether a queue head that no slot can hold starts on scattered nodes, of the largest slots
        first, if enough are free. Its reservation is then that of EASY, by number.

    Raises
    ------
    InputError
        If the window holds no job or the interval is negative.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.
    """

    window: int = 5
    interval: float = 30.0
    backfill: Literal["none", "easy"] = "easy"
    scatter: Literal["never", "head"] = "never"

    models: ClassVar[Mapping[str, Answers]] = {"window-mkp": Answers("branch-and-bound", "greedy")}

    def __post_init__(self) -> None:
        if self.window < 1:
            raise InputError(f"window {self.window}; expected a whole number from 1")
        if not self.interval >= 0:
            raise InputError(f"interval {self.interval}; expected seconds from 0")

    def decide(self, system: System) -> Iterable[Action]:
        """Start the jobs placed by the solver, in one window or, without ticks, in several."""
        scatters = self.scatter == "head"
        if scatters:
            yield from self._scatter(system)
        placed = yield from self._decide_window(system)
        while placed and not self.interval:
            placed = yield from self._decide_window(system)
        if scatters:
            yield from self._scatter(system)
        if self.backfill == "easy":
            yield from self._backfill(system)

    def _scatter(self, system: System) -> Iterator[Action]:
        """Start queue heads that no slot can hold, on nodes of the largest slots."""
        machine, processors, queue = system.machine, system.processors, system.queue
        assert isinstance(machine, Nodes)
        while queue and _largest_slot(machine) < processors[queue[0]] <= machine.free:
            missing = processors[queue[0]]
            place = []
            for start, stop in sorted(machine.slots, key=lambda run: run[0] - run[1]):
                place.append((start, min(stop, start + missing)))
                missing -= stop - start
                if missing <= 0:
                    break
            yield Start(queue[0], tuple(place))

    def _backfill(self, system: System) -> Iterator[Action]:
        """Start jobs behind the blocked queue head in slots."""
        machine, processors, queue = system.machine, system.processors, system.queue
        largest = _largest_slot(machine)
        if not queue or processors[queue[0]] <= largest:
            return  # a head that fits is left to the next window, with the slots unchanged
        small = [job for job in queue[1:] if processors[job] <= largest]
        if small:
            reserved = reserve_anywhere if self.scatter == "head" else reserve_slot
            yield from backfill_slots(system, small, reserved(system, queue[0]))

    def _decide_window(self, system: System) -> Generator[Action, None, int]:
        """Pose the window and the slots as a knapsack problem; return the number of starts."""
        machine, processors = system.machine, system.processors
        assert isinstance(machine, Nodes)
        if not system.queue or not machine.free:
            return 0
        lengths = _lengths(machine)
        largest = max(lengths)
        jobs = [job for job in system.queue[: self.window] if processors[job] <= largest]
        if not jobs:
            return 0
        weights = [processors[job] for job in jobs]
        smallest = min(weights)
        useful = [slot for slot, length in enumerate(lengths) if length >= smallest]
        if len(useful) > len(jobs):
            by_length = sorted(useful, key=lengths.__getitem__, reverse=True)
            useful = sorted(by_length[: len(jobs)])
        first_free = [machine.slots.starts[slot] for slot in useful]
        sizes = read_only(np.array(weights, dtype=np.int64))
        problem = WindowMKP.trusted(
            weights=sizes,
            capacities=read_only(np.array([lengths[slot] for slot in useful], dtype=np.int64)),
            profits=sizes,
            jobs=tuple([system.job_id[job] for job in jobs]),
            slots=tuple(first_free),
        )
        placed = 0
        for job, weight, slot in zip(jobs, weights, system.pose(problem)):
            if slot != NOT_PLACED:
                start = first_free[slot]
                first_free[slot] = start + weight
                placed += 1
                yield Start(job, ((start, start + weight),))
        return placed


def _lengths(machine: Nodes) -> list[int]:
    """Return the number of nodes of each slot."""
    return list(map(sub, machine.slots.stops, machine.slots.starts))


def _largest_slot(machine: Machine) -> int:
    assert isinstance(machine, Nodes)
    return max(_lengths(machine), default=0)


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
    """Start jobs that end by the shadow time or avoid the reserved nodes, in smallest slots."""
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
