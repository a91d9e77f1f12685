"""Conservative backfilling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optsched.machines.site import SiteMachine
from optsched.policies.parts.node_reservations import NodeReservations, ReservationsByKernel
from optsched.registry import policies
from optsched.simulator.actions import Action, Start
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.holds import COLUMNS
from optsched.simulator.policy import Policy
from optsched.simulator.system import System

if TYPE_CHECKING:
    from collections.abc import Callable


@policies.register("conservative")
@dataclass
class Conservative(Policy):
    """Every waiting job has a reservation, which later jobs may not delay.

    A submitted job gets the earliest reservation that delays no other. When a job ends, the waiting
    jobs are placed again one by one in order of submission; each reservation moves earlier or
    stays. That includes an end at the estimated time, unless the previous pass moved no job: a pass
    may leave a hole before a job that it had already placed. The policy decides at every event,
    since reservations begin at ends.

    Notes
    -----
    Like jobs that are adjacent in the queue move as one, and only reservations that can move are
    examined, see `optsched.policies.parts._reservations`. If an execution model slows jobs down, a
    reservation can pass, or begin on occupied processors; from then on, every waiting job is placed
    again after an end.

    On a site where jobs ask for more than cores, are held, or in several partitions, reservations
    are for certain nodes, see `optsched.policies.parts.node_reservations`. A job can then wait for
    one that would leave enough room on other nodes.

    References
    ----------
    A. Mu'alem, D. Feitelson, "Utilization, predictability, workloads, and user runtime estimates
    in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001.
    """

    machines = frozenset({"nodes", "site"})

    def begin(self, system: System) -> None:
        """Start with an empty profile and no reservations."""
        self._on_nodes: NodeReservations | ReservationsByKernel | None = None
        machine = system.machine
        if isinstance(machine, SiteMachine):
            holds = not COLUMNS.isdisjoint((*system.annotations, *system.texts))
            if holds or not (machine.requests.only_cores and machine.queues.is_one):
                self._on_nodes = NodeReservations(system, machine)
                return
        from optsched.policies.parts import _profile, _reservations

        self._kernels, self._by_runs = _profile, _reservations
        self._processors = np.array(system.processors, dtype=np.int64)
        self._durations = np.array(system.requested_time, dtype=np.float64)
        self._table = _reservations.no_reservations(
            self._processors, self._durations, system.machine.size
        )
        self._decide: Callable[..., int] | None = None
        self._is_kept = True
        self._promised: dict[int, float] = {}
        self._starts = np.full(len(system.submit), np.inf)
        self._started = np.empty(len(system.submit), dtype=np.int64)

    def decide(self, system: System) -> Iterable[Action]:
        """Update the reservations, and start the jobs whose reservations begin."""
        if self._on_nodes is not None:
            assert isinstance(self._on_nodes, NodeReservations)
            return self._on_nodes.decide()
        if self._is_kept and self._table.soonest[0] < system.now:
            self._leave_runs([])
        return self._keep(system) if self._is_kept else self._place_again(system)

    def promised(self, system: System) -> Mapping[int, float]:
        """Return the first reserved start of each job, which no later one may delay."""
        if self._on_nodes is not None:
            return self._on_nodes.promised
        if self._is_kept:  # afterwards, only what was promised before
            reserved = self._by_runs.reserved_starts(self._table)
            before = self._promised
            self._promised = {j: min(at, before.get(j, at)) for j, at in reserved.items()}
        return self._promised

    def _keep(self, system: System) -> Iterator[Action]:
        """Start jobs by the reservations of runs of jobs."""
        ended, submitted = (np.array(jobs, np.int64) for jobs in (system.ended, system.submitted))
        others = self._starts, ended, submitted, self._started
        if self._decide is None:
            self._decide = self._by_runs.decide.bound(self._table, numbers=(0.0, *others))
        count = self._decide(float(system.now), *others)
        refused = []
        for job in self._started[:count].tolist():
            if system.processors[job] <= system.machine.free:
                yield Start(job)
            else:
                refused.append(job)
        if refused:
            self._leave_runs(refused)

    def _leave_runs(self, refused: Sequence[int]) -> None:
        """Take over the profile and the reservations of the runs."""
        self._is_kept = False
        profile = self._table.profile
        here = slice(*profile.ends)
        self._times, self._free = profile.times[here].copy(), profile.free[here].copy()
        self._count = len(self._times)
        for job, start in self._by_runs.reserved_starts(self._table).items():
            self._starts[job] = start
        self._stable = bool(self._table.tally[self._by_runs.SETTLED]) and not refused

    def _place_again(self, system: System) -> Iterator[Action]:
        """Place every waiting job again after an end, and start the jobs whose time has come."""
        now = system.now
        self._make_room(2 * (len(system.running) + len(system.queue) + len(system.ended)) + 4)
        for job in system.ended:
            self._release(job, now)
        if system.ended and not self._stable:
            new = set(system.submitted)
            waited = [job for job in system.queue if job not in new]
            self._stable = not self._place(waited, now)
        if system.submitted:
            self._place(system.submitted, now)
        starts, processors = self._starts, system.processors
        for job in list(system.queue):
            if starts[job] <= now:
                if processors[job] <= system.machine.free:
                    yield Start(job)
                else:
                    self._stable = False
        self._count = self._kernels.forget(self._times, self._free, self._count, now)

    def _release(self, job: int, now: float) -> None:
        """Free the processors of an ended job in the profile until its estimated end."""
        estimated_end = self._starts[job] + self._durations[job]
        if estimated_end > now:
            self._stable = False
            self._count = self._kernels.change(
                self._times,
                self._free,
                self._count,
                float(now),
                estimated_end,
                self._processors[job],
            )

    def _place(self, jobs: Sequence[int], now: float) -> bool:
        """Place jobs, first or again; return whether any reservation has changed."""
        self._count, moved = self._kernels.place(
            self._times,
            self._free,
            self._count,
            float(now),
            np.array(jobs, dtype=np.int64),
            self._processors,
            self._durations,
            self._starts,
        )
        return bool(moved)

    def _make_room(self, entries: int) -> None:
        if entries + 2 > len(self._times):
            grow = entries + 2
            self._times = np.concatenate((self._times, np.zeros(grow)))
            self._free = np.concatenate((self._free, np.zeros(grow, dtype=np.int64)))

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel of the machine, unless jobs ask for licences or may end late.

        Nor is it for partitions of several tiers, or for reservations of the site.
        """
        machine, trace = run.machine, run.trace
        over = trace.runtime - trace.requested_time
        is_late = ((over > 0) & (over <= run.way.tolerance)).any()
        if self._on_nodes is None or not isinstance(machine, SiteMachine):
            is_late |= run.execution is not None or self.interval > 0
            return None if is_late else self._on_line(run)
        queues = machine.queues
        if is_late or machine.asked.licences.any() or queues.has_tiers or queues.reservations:
            return None
        self._on_nodes = ReservationsByKernel(run, machine)
        return self._on_nodes

    def _on_line(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel of a line, if it is on disk or worth compiling."""
        from optsched.kernel_cache import NotOnDiskError
        from optsched.policies.parts.line_decisions import LineDecisions, is_line

        if not is_line(run):
            return None
        kernels, table = self._by_runs, self._table
        log = np.zeros(2 * len(run.trace), dtype=np.int64)
        state = table, self._starts, self._started, log
        kept = log, table.tally, kernels.LOGGED
        try:
            return LineDecisions(run, kernels.decide_by_news, kernels.run, state, kept)
        except NotOnDiskError:
            return None
