"""Reservations of all waiting jobs on the nodes of a site, for conservative backfilling."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from optsched.machines.site import Held, SiteMachine
from optsched.simulator.actions import Action, Start, Wake
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.system import System
from optsched.sites.queues import Windows

if TYPE_CHECKING:
    from optsched.policies.parts._site_profile import Profile
    from optsched.policies.parts._site_reservations import OnNodes
    from optsched.simulator.problem_solver import NoProblems, ProblemSolver


class NodeReservations:
    """The start and the nodes that are reserved for each waiting job.

    A job is placed at the earliest time at which it delays no other, on the first nodes that have
    room for as long as it may run. When a job ends, the waiting jobs are placed again one by one in
    order of submission, those of a higher tier first; each starts earlier, or stays where it is.
    What is stated here is computed in less time by `ReservationsByKernel`, where that is enough.

    A reservation of the site is in the profile, as nodes that no job has. Its own jobs have a
    profile of their own, in which they have its nodes. A job without any time at which it could
    start within a reservation waits until a job has ended.

    Parameters
    ----------
    system : System
        The system before the first event.
    machine : SiteMachine
        Its machine.

    Attributes
    ----------
    promised : dict of int to float
        The earliest start that has been reserved for each waiting job.
    """

    def __init__(self, system: System, machine: SiteMachine) -> None:
        from optsched.machines._site_nodes import Place
        from optsched.policies.parts import _site_profile

        self.system, self.machine = system, machine
        self._kernels, self._new_place = _site_profile, Place
        self._queues = queues = machine.queues
        origin = queues.first - system.submit[0]
        windows = {each: queues.windows(each, origin) for each in {-1, *queues.reservation}}
        self._profiles = {each: self._with_closed(closed) for each, closed in windows.items()}
        edges = ((*closed.start, *closed.end) for closed in windows.values())
        self._changes = sorted({at for some in edges for at in some if math.isfinite(at)})
        self._starts: dict[int, float] = {}
        self.promised: dict[int, float] = {}
        self._places: dict[int, Held] = {}
        nodes = len(machine.site.nodes)
        self._place, self._other = (Place(*np.zeros((2, nodes), dtype=np.int64)) for _ in range(2))
        self._stable = True

    def decide(self) -> Iterator[Action]:
        """Update the reservations, and start the jobs whose reservations begin."""
        system, now = self.system, float(self.system.now)
        jobs = len(system.running) + len(system.queue) + len(system.ended)
        for each, profile in self._profiles.items():
            profile = self._profiles[each] = self._kernels.with_space(profile, 2 * jobs + 4)
            self._kernels.forget(profile, now)
        for job in system.ended:
            if self._end(job) > now:
                self._book(job, -1)
                self._stable = False
            del self._starts[job], self._places[job]
        lost = [job for job in system.rejected if job in self._starts]
        for job in lost:
            self._book(job, -1)
            self._stable = False
            del self._starts[job], self._places[job]
        new = {*system.submitted}
        if (system.ended or lost) and not self._stable:
            waiting = self._by_tier([job for job in system.queue if job not in new])
            self._stable = not self._place_again(waiting)
        for job in self._by_tier(system.submitted):
            self._reserve(job, np.inf)
        for job in system.queue[:]:
            if self._starts.get(job, np.inf) <= now:
                self.promised.pop(job, None)
                yield Start(job, self._places[job])
        if self._changes and system.queue:
            yield from (Wake(at) for at in self._changes if at > now)
            self._changes = []

    def _by_tier(self, jobs: list[int]) -> list[int]:
        """Return jobs in order, those of a higher tier first."""
        return sorted(jobs, key=lambda job: -self._queues.tier[job])

    def _place_again(self, jobs: Iterable[int]) -> bool:
        """Place jobs again, each at an earlier time if there is one; return whether any moved."""
        moved = False
        for job in jobs:
            if job not in self._starts:
                moved |= self._reserve(job, np.inf)
                continue
            self._book(job, -1)
            if not self._reserve(job, self._starts[job]):
                self._book(job, 1)
                continue
            moved = True
        return moved

    def _reserve(self, job: int, before: float) -> bool:
        """Reserve for a job at the earliest time before another; return whether there is one."""
        start, one, used = self._kernels.earliest(
            self._profiles[self._reservation_of(job)],
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
        self.promised[job] = min(start, self.promised.get(job, math.inf))
        self._book(job, 1)
        return True

    def _end(self, job: int) -> float:
        return self._starts[job] + self.system.requested_time[job]

    def _reservation_of(self, job: int) -> int:
        return self._queues.reservation[self._queues.of_job[job]]

    def _book(self, job: int, sign: int) -> None:
        """Take (1) or free (-1) what is reserved for a job; its licences in all profiles."""
        one, nodes, chunks = self._places[job]
        own, other = self._new_place(nodes, chunks), self._new_place(nodes[:0], chunks[:0])
        for each, profile in self._profiles.items():
            self._kernels.book(
                profile,
                self.machine.asked,
                one,
                own if each == self._reservation_of(job) else other,
                self._starts[job],
                float(self._end(job)),
                sign,
            )

    def _with_closed(self, windows: Windows) -> Profile:
        """Return the profile of the site on which no job runs, with closed nodes."""
        kernels, now = self._kernels, float(self.system.now)
        profile = kernels.new_profile(self.machine.nodes, now)
        profile = kernels.with_space(profile, 2 * len(windows.start) + 2)
        for start, end, closed in zip(*windows):
            if end <= now:
                continue
            first = kernels.split(profile, max(start, now))
            last = kernels.split(profile, end) if end < math.inf else profile.rows[0]
            profile.jobs[np.ix_(profile.row[first:last], closed)] = -1
            profile.ends[profile.row[first]] += 1  # so that these rows remain
            if end < math.inf:
                profile.ends[profile.row[last]] += 1
        return profile


class ReservationsByKernel(CompiledDecisions):
    """The same, where jobs ask for no licences and no tiers or reservations of the site count."""

    def __init__(self, run: CompiledRun, machine: SiteMachine) -> None:
        from optsched.policies.parts import _site_reservations

        self._kernels, self._run = _site_reservations, run
        requested = run.trace.requested_time.astype(np.float64)
        requests = np.array(machine.requests.numbers, dtype=np.int64)
        self._bind(
            _site_reservations.new_reservations(machine.asked, machine.nodes, requests, requested)
        )

    @property
    def promised(self) -> dict[int, float]:
        """The start that is reserved for each waiting job: none moves later."""
        table = self._tables.table
        jobs = table.order[: table.tally[self._kernels.WAITING]]
        return dict(zip(jobs.tolist(), table.start[jobs].tolist()))

    def answer(self, problem_solver: ProblemSolver | NoProblems) -> None:
        """Let the tables be longer."""
        self._bind(self._kernels.with_entries(self._tables))

    def place(self, job: int, value: float) -> Held:
        """Return the nodes that are reserved for a job."""
        from optsched.policies.parts._site_lines import NONE

        table = self._tables.table
        entries, entry = [], int(table.first[job])
        while entry != NONE:
            entries.append(entry)
            entry = int(table.next[entry])
        return Held(int(table.alternative[job]), table.node[entries], table.chunks[entries])

    def resources(self) -> Sequence[str]:
        """Return the nodes that each job held, as interval sets."""
        from optsched.policies.parts._site_log import texts

        return texts(self._tables.log)

    def _bind(self, tables: OnNodes) -> None:
        self._tables = tables
        self.decide = self._run.bind(self._kernels.decide, tables, self._run.news)
