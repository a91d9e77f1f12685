"""Conservative backfilling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from optsched.registry import policies
from optsched.simulator.actions import Action, Start
from optsched.simulator.policy import Policy
from optsched.simulator.system import System


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
    The availability profile has at most two entries per running or waiting job. A submission costs
    one scan of the profile, an end one scan per waiting job. If all estimates are perfect, every
    reservation stays, and no end costs a scan.

    References
    ----------
    A. Mu'alem, D. Feitelson, "Utilization, predictability, workloads, and user runtime estimates
    in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001.
    """

    def begin(self, system: System) -> None:
        """Start with an empty profile and no reservations."""
        from optsched.policies.parts import _profile

        self._kernels = _profile
        self._times, self._free, self._count = _profile.new_profile(
            system.now, system.machine.size, capacity=64
        )
        self._processors = np.array(system.processors, dtype=np.int64)
        self._durations = np.array(system.requested_time, dtype=np.float64)
        self._starts = np.full(len(system.submit), np.inf)
        self._stable = True

    def decide(self, system: System) -> Iterable[Action]:
        """Update the profile, and start the jobs whose reservations begin."""
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
