"""Room for waiting jobs, now and at the estimated ends of running jobs.

Policies that order the queue reserve for a blocked job and backfill. On a line of processors
numbers suffice; on a site, nodes and what they have do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from optsched.machines.site import Held, SiteMachine
from optsched.policies.parts.reservation import backfill, reserve
from optsched.simulator.actions import Action, Start
from optsched.simulator.system import System


class Room(ABC):
    """Room for waiting jobs, of which one may have a reservation.

    Parameters
    ----------
    system : System
        The state of the simulation.
    """

    def __init__(self, system: System) -> None:
        self.system = system

    def update(self) -> None:  # noqa: B027 (a line of processors keeps nothing)
        """Note which jobs have ended; called once in each decision."""

    def start(self, job: int) -> Iterator[Action]:
        """Start a job that fits."""
        yield Start(job)

    @abstractmethod
    def reserve(self, job: int) -> None:
        """Reserve for a blocked job, at the earliest time at which it fits by estimated ends."""

    @abstractmethod
    def backfill(self, jobs: Sequence[int]) -> Iterator[Action]:
        """Start those of `jobs` that fit and do not delay the reserved job, in order."""


class ProcessorRoom(Room):
    """Room by number of processors."""

    def reserve(self, job: int) -> None:
        """Reserve shadow time and extra processors."""
        self._reservation = reserve(self.system, job)

    def backfill(self, jobs: Sequence[int]) -> Iterator[Action]:
        """Start jobs that end by the shadow time or need extra processors only."""
        self._reservation = yield from backfill(self.system, jobs, self._reservation)


class NodeRoom(Room):
    """Room by nodes of a site, with all their resources, and licences.

    The reserved job fits at the shadow time, on any nodes, if the running jobs end as estimated. A
    job is backfilled if it fits now and the reserved job still fits then: because the job ends by
    the shadow time, or holds amounts that the reserved job can do without. In the latter case it
    takes first those amounts, in the order of the nodes, that cost the reserved job no chunk.
    """

    def __init__(self, system: System, machine: SiteMachine) -> None:
        from optsched.machines._site_nodes import Free, Place
        from optsched.policies.parts import _site_backfilling

        super().__init__(system)
        self.machine = machine
        self._kernels, self._new_place = _site_backfilling, Place
        self._requests = np.array(system.demands, dtype=np.int64)
        self._requested = np.array(system.requested_time, dtype=np.float64)
        self._running, self._held = _site_backfilling.nothing_runs()
        self._shortages = _site_backfilling.no_shortages(len(machine.requests.alternatives))
        self._then = Free(*(part.copy() for part in machine.nodes))
        nodes = len(machine.site.nodes)
        self._reservation = _site_backfilling.no_reservation(machine.asked, nodes)
        self._shadow = system.now
        self._on_node, *place = np.zeros((3, nodes), dtype=np.int64)
        self._place = Place(*place)

    def update(self) -> None:
        """Remove the jobs that have ended from the running ones."""
        machine = self.machine
        tables = self._running, self._held, self._shortages, self._reservation
        state = machine.asked, machine.nodes, self._then
        for job in self.system.ended:
            self._kernels.remove(*tables, *state, job)

    def start(self, job: int, place: Held | None = None) -> Iterator[Action]:
        """Start a job that fits, by default on the first nodes; there is no reservation then."""
        self._kernels.forget(self._reservation)
        yield from self._start(job, place)

    def _start(self, job: int, place: Held | None) -> Iterator[Action]:
        """Start a job, and note where it runs."""
        yield Start(job, place)
        one, nodes, chunks = self.system.held[job]
        end = float(self.system.running.estimated_end(job))
        entry = end, job, one, self._new_place(nodes, chunks), len(nodes)
        if not self._kernels.add(self._running, self._held, *entry):
            tables = self._running, self._held
            self._running, self._held = self._kernels.with_room(*tables, len(nodes))
            self._kernels.add(self._running, self._held, *entry)

    def start_beside(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job on nodes that are free, unless that delays the reserved job."""
        where = self._new_place(place.nodes, place.chunks)
        asked, one = self.machine.asked, place.alternative
        if not self._is_late(job) or self._kernels.spare(
            asked, self._then, one, self._reservation, where
        ):
            yield from self._start_beside(job, place)

    def _start_beside(self, job: int, place: Held) -> Iterator[Action]:
        """Start a job beside the reserved one."""
        late = self._is_late(job)
        yield from self._start(job, place)
        end = float(self.system.running.estimated_end(job))
        self._kernels.doubt(self._reservation, end, late)

    def _is_late(self, job: int) -> bool:
        """Return whether a job that starts now may run beyond the shadow time."""
        return bool(self._requested[job] > self._shadow - self.system.now)

    def survey(self, jobs: Sequence[int]) -> tuple[list[int], int]:
        """Return the alternative of each job that fits now, or -1, and how many fit together.

        These are the first ones, placed one after the other. There must be no reservation.
        """
        chosen = np.zeros(len(jobs), dtype=np.int64)
        self._kernels.forget(self._reservation)
        asked, free = self.machine.asked, self.machine.nodes
        requests = self._requests[np.array(jobs, dtype=np.int64)]
        together = self._kernels.survey(asked, free, self._then, requests, chosen, self._place)
        return chosen.tolist(), together

    def reserve(self, job: int) -> None:
        """Reserve the earliest time at which enough nodes have room for the job."""
        self._shadow = self._kernels.reserve(
            self.machine.asked,
            self.machine.nodes,
            self._then,
            self._running,
            self._held,
            self._requests[job],
            float(self.system.now),
            self._reservation,
        )

    def backfill(self, jobs: Sequence[int]) -> Iterator[Action]:
        """Start jobs that fit now and leave room for the reserved job at the shadow time."""
        candidates, at = np.array(jobs, dtype=np.int64), 0
        failed = np.zeros((2, len(self.machine.requests.first)), dtype=np.int64)
        while at < len(candidates):
            at, one, used = self._kernels.next_backfilled(
                self.machine.asked,
                self.machine.nodes,
                self._then,
                self._shortages,
                self._reservation,
                candidates,
                at,
                len(candidates),
                self._requests,
                self._requested,
                self._shadow - self.system.now,
                failed,
                self._on_node,
                self._place,
            )
            if used:
                nodes, chunks = self._place.node[:used].copy(), self._place.chunks[:used].copy()
                yield from self._start_beside(int(candidates[at]), Held(one, nodes, chunks))
                at += 1


def room_of(system: System) -> Room:
    """Return the room of the machine of a simulation."""
    if isinstance(system.machine, SiteMachine):
        return NodeRoom(system, system.machine)
    return ProcessorRoom(system)
