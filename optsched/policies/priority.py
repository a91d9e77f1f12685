"""Priority policies: the queue sorted by a score, with or without EASY backfilling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.policies.parts.reservation import backfill, reserve
from optsched.registry import policies
from optsched.simulator.actions import Action, Start
from optsched.simulator.policy import Policy
from optsched.simulator.system import System

Column = NDArray[np.float64]
SERIAL = 1e-9
"""Replacement of the logarithm of one processor, 0, in a denominator."""


class Waiting(NamedTuple):
    """The waiting jobs as float64 arrays of shape (jobs,), with times in seconds."""

    processors: Column
    requested: Column
    submit: Column
    now: float

    @property
    def wait(self) -> Column:
        """Seconds since the submission of each job."""
        return self.now - self.submit


@dataclass
class PriorityOrder(Policy):
    """Waiting jobs start in order of a score, the lowest first; ties by submission.

    Parameters
    ----------
    backfill : {"none", "easy"}
        With ``easy`` the first job that does not fit has a reservation, and later jobs may start
        if they do not delay that job.
    """

    backfill: Literal["none", "easy"] = "none"

    def begin(self, system: System) -> None:
        """Store the sizes and requested times of all jobs as arrays."""
        self._processors = np.array(system.processors, dtype=np.float64)
        self._requested = np.array(system.requested_time, dtype=np.float64)
        self._submit = np.array(system.submit, dtype=np.float64)

    def decide(self, system: System) -> Iterable[Action]:
        """Sort the queue, start jobs while they fit, and backfill behind the first blocked job."""
        if not system.queue or not system.machine.free:
            return
        jobs = np.array(system.queue[:], dtype=np.int64)
        columns = self._processors[jobs], self._requested[jobs], self._submit[jobs]
        scores = self.scores(Waiting(*columns, system.now))
        ordered = jobs[np.argsort(scores, kind="stable")].tolist()
        started = 0
        for job in ordered:
            if system.processors[job] > system.machine.free:
                break
            yield Start(job)
            started += 1
        behind = ordered[started + 1 :]
        if self.backfill == "easy" and behind and system.machine.free:
            yield from backfill(system, behind, reserve(system, ordered[started]))

    @abstractmethod
    def scores(self, jobs: Waiting) -> Column:
        """Return the score of each waiting job; the lowest starts first."""


@policies.register("sjf")
@dataclass
class SJF(PriorityOrder):
    """Shortest job first, by requested time."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``r``."""
        return jobs.requested


@policies.register("saf")
@dataclass
class SAF(PriorityOrder):
    """Smallest area first: requested time times processors."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``r n``."""
        return jobs.requested * jobs.processors


@policies.register("wfp3")
@dataclass
class WFP3(PriorityOrder):
    """WFP3: the longest wait first, in favor of short and large jobs.

    References
    ----------
    W. Tang, Z. Lan, N. Desai, D. Buettner, "Fault-aware, utility-based job scheduling on Blue
    Gene/P systems", IEEE Cluster 2009.
    """

    def scores(self, jobs: Waiting) -> Column:
        """Return ``-(w / r)^3 n`` for a wait w."""
        return -((jobs.wait / jobs.requested) ** 3) * jobs.processors


@policies.register("unicef")
@dataclass
class UNICEF(PriorityOrder):
    """UNICEF: fast response for small and short jobs; serial jobs come first.

    References
    ----------
    The paper of `WFP3`.
    """

    def scores(self, jobs: Waiting) -> Column:
        """Return ``-w / (log2(n) r)`` for a wait w."""
        return -jobs.wait / (np.maximum(np.log2(jobs.processors), SERIAL) * jobs.requested)


class _Regression(PriorityOrder):
    """Score by a nonlinear function that was fitted to simulated queues.

    The submission time counts from the first job of the trace, and is at least 1 s.

    References
    ----------
    D. Carastan-Santos, R. Y. de Camargo, "Obtaining dynamic scheduling policies with simulation
    and machine learning", SC 2017, table 3.
    """

    def begin(self, system: System) -> None:
        """Store sizes and requested times, and the logarithms of the submission times."""
        super().begin(system)
        since_first = self._submit - (self._submit[0] if len(self._submit) else 0.0)
        self._submit = np.log10(np.maximum(since_first, 1.0))


@policies.register("f1")
@dataclass
class F1(_Regression):
    """F1 of Carastan-Santos and de Camargo (2017)."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``log10(r) n + 870 log10(s)``."""
        return np.log10(jobs.requested) * jobs.processors + 870 * jobs.submit


@policies.register("f2")
@dataclass
class F2(_Regression):
    """F2 of Carastan-Santos and de Camargo (2017)."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``sqrt(r) n + 25600 log10(s)``."""
        return np.sqrt(jobs.requested) * jobs.processors + 25_600 * jobs.submit


@policies.register("f3")
@dataclass
class F3(_Regression):
    """F3 of Carastan-Santos and de Camargo (2017)."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``r n + 6860000 log10(s)``."""
        return jobs.requested * jobs.processors + 6_860_000 * jobs.submit


@policies.register("f4")
@dataclass
class F4(_Regression):
    """F4 of Carastan-Santos and de Camargo (2017)."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``r sqrt(n) + 530000 log10(s)``."""
        return jobs.requested * np.sqrt(jobs.processors) + 530_000 * jobs.submit
