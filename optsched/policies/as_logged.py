"""The waits of the log, as a baseline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.machines.site import SiteMachine
from optsched.metrics.measure import Group, measures_in
from optsched.policies.site.partition_queues import SiteRoom
from optsched.registry import policies
from optsched.simulator.policy import Action, Policy, Start, Wake
from optsched.simulator.system import System
from optsched.traces.trace import UNKNOWN


@policies.register("as-logged")
@dataclass
class AsLogged(Policy):
    """Each job starts after the wait that the log states: what the scheduler of the log did.

    A job is due at its submission plus its logged wait, and at its submission if the log states
    no wait. A job that does not fit when it is due, as the machine or an earlier start differs
    from the log, starts as soon as it fits. Such late jobs are tried in the order in which they
    are due; those that fit may pass those that do not (first fit). The reservations of a site hold,
    if it states any.
    """

    machines = frozenset({"nodes", "site"})

    def begin(self, system: System) -> None:
        """Compute when each job is due."""
        if not (system.logged_wait != UNKNOWN).any():
            raise InputError(
                "no job of the trace has a logged wait, which policy as-logged repeats; expected "
                "a log with starts or waits",
                field="wait",
            )
        machine = system.machine
        self._room = SiteRoom(system, machine) if isinstance(machine, SiteMachine) else None
        waits = np.maximum(system.logged_wait, 0)
        self._due: list[float] = (np.array(system.submit) + waits).tolist()
        self._coming: list[tuple[float, int]] = []  # heap of due times and jobs
        self._late: list[int] = []  # in the order in which they were due

    def decide(self, system: System) -> Iterable[Action]:
        """Start the jobs that are due and fit; after an end, try late ones first."""
        now, demands, machine = system.now, system.demands, system.machine
        changed = bool(system.ended)
        if self._room is not None:
            self._room.hear(system)
            changed |= self._room.change_now
            yield from self._room.ask_again()
        for job in system.submitted:
            heappush(self._coming, (self._due[job], job))
            if self._due[job] > now:
                yield Wake(self._due[job])
        if gone := {*system.rejected}:
            self._coming = sorted(pair for pair in self._coming if pair[1] not in gone)
            self._late = [job for job in self._late if job not in gone]
        due = []
        while self._coming and self._coming[0][0] <= now:
            due.append(heappop(self._coming)[1])
        if changed:  # else late jobs still do not fit
            due = [*self._late, *due]
            self._late = []
        for job in due:
            if self._room is not None and (place := self._room.place_now(job)) is not None:
                yield from self._room.start(job, place)
            elif self._room is None and machine.fits(demands[job]):
                yield Start(job)
            else:
                self._late.append(job)

    measures = measures_in(
        Group.POLICY,
        started_late=("jobs started later than logged", "jobs",
            "Jobs that started after their submission plus logged wait."),
        mean_delay=("mean delay from the logged start", "seconds",
            "Mean time from submission plus logged wait to start, over the jobs with a logged wait"
            " that started."),
        without_logged_wait=("jobs without a logged wait", "jobs",
            "Jobs whose wait the log leaves out."),
    )  # fmt: skip

    def figures(self, system: System) -> dict[str, Any]:
        """Return how far the run is from the log."""
        known = system.logged_wait != UNKNOWN
        start = np.array(system.start, dtype=np.float64)  # nan for a job that never started
        delays = (start - self._due)[known & ~np.isnan(start)]
        return {
            "started_late": int((delays > 0).sum()),
            "mean_delay": float(delays.mean()) if len(delays) else None,
            "without_logged_wait": int((~known).sum()),
        }
