"""Reservations of all waiting jobs on the nodes of a site, for conservative backfilling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from optsched.machines.site import Held, SiteMachine
from optsched.simulator.actions import Action, Start
from optsched.simulator.system import System


class NodeReservations:
    """The start and the nodes that are reserved for each waiting job.

    A job is placed at the earliest time at which it delays no other, on the first nodes that have
    room for as long as it may run. When a job ends, the waiting jobs are placed again one by one in
    order of submission; each starts earlier, or stays where it is. What is stated here is computed
    in less time by `optsched.policies.parts._site_reservations`.

    Parameters
    ----------
    system : System
        The system before the first event.
    machine : SiteMachine
        Its machine.
    """

    def __init__(self, system: System, machine: SiteMachine) -> None:
        from optsched.machines._site_nodes import Place
        from optsched.policies.parts import _site_profile

        self.system, self.machine = system, machine
        self._kernels, self._new_place = _site_profile, Place
        self._profile = _site_profile.new_profile(machine.nodes, float(system.now))
        self._starts: dict[int, float] = {}
        self._places: dict[int, Held] = {}
        nodes = len(machine.site.nodes)
        self._place, self._other = (Place(*np.zeros((2, nodes), dtype=np.int64)) for _ in range(2))
        self._stable = True

    def decide(self) -> Iterator[Action]:
        """Update the reservations, and start the jobs whose reservations begin."""
        system, now = self.system, float(self.system.now)
        jobs = len(system.running) + len(system.queue) + len(system.ended)
        self._profile = self._kernels.with_space(self._profile, 2 * jobs + 4)
        self._kernels.forget(self._profile, now)
        for job in system.ended:
            if self._end(job) > now:
                self._book(job, -1)
                self._stable = False
            del self._starts[job], self._places[job]
        if system.ended and not self._stable:
            self._stable = not self._place_again(list(self._waiting()))
        for job in system.submitted:
            self._reserve(job, np.inf)
        for job in system.queue[:]:
            if self._starts[job] <= now:
                yield Start(job, self._places[job])

    def _waiting(self) -> Iterator[int]:
        """Yield the waiting jobs that have reservations, in order of submission."""
        return (job for job in self.system.queue if job in self._starts)

    def _place_again(self, jobs: Iterable[int]) -> bool:
        """Place jobs again, each at an earlier time if there is one; return whether any moved."""
        moved = False
        for job in jobs:
            self._book(job, -1)
            if not self._reserve(job, self._starts[job]):
                self._book(job, 1)
                continue
            moved = True
        return moved

    def _reserve(self, job: int, before: float) -> bool:
        """Reserve for a job at the earliest time before another; return whether there is one."""
        start, one, used = self._kernels.earliest(
            self._profile,
            self.machine.asked,
            self.system.demands[job],
            float(self.system.requested_time[job]),
            before,
            self._place,
            self._other,
        )
        if not used:
            return False
        nodes, chunks = self._place.node[:used].copy(), self._place.chunks[:used].copy()
        self._starts[job], self._places[job] = start, Held(one, nodes, chunks)
        self._book(job, 1)
        return True

    def _end(self, job: int) -> float:
        return self._starts[job] + self.system.requested_time[job]

    def _book(self, job: int, sign: int) -> None:
        """Take (1) or free (-1) what is reserved for a job."""
        one, nodes, chunks = self._places[job]
        self._kernels.book(
            self._profile,
            self.machine.asked,
            one,
            self._new_place(nodes, chunks),
            self._starts[job],
            float(self._end(job)),
            sign,
        )
