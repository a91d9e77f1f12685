"""Priority policies: the queue sorted by a score, with or without EASY backfilling."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.policies.reservation import QueuePolicy
from optsched.registry import policies
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.system import System
from optsched.traces.trace import UNKNOWN

Column = NDArray[np.float64]
SERIAL = 1e-9
"""Replacement of the logarithm of one processor, 0, in a denominator."""


class Waiting(NamedTuple):
    """The waiting jobs, or all jobs, as float64 arrays of shape (jobs,), with times in seconds."""

    processors: Column
    requested: Column
    submit: Column
    now: float

    @property
    def wait(self) -> Column:
        """Seconds since the submission of each job."""
        return self.now - self.submit


@dataclass
class PriorityOrder(QueuePolicy):
    """Waiting jobs start in order of a score, the lowest first; ties by submission.

    Parameters
    ----------
    backfill : {"none", "easy"}
        With ``easy`` the first job that does not fit has a reservation, and later jobs may start
        if they do not delay that job. On a site there is such a job for each partition, or set of
        partitions that share nodes.
    """

    backfill: Literal["none", "easy"] = "none"

    @property
    def backfills(self) -> bool:
        """Whether jobs are backfilled."""
        return self.backfill == "easy"

    def ordered(self, system: System) -> list[int]:
        """Return the waiting jobs, the lowest score first."""
        jobs = np.array(system.queue[:], dtype=np.int64)
        ordered: list[int] = jobs[np.argsort(self.scores_now(jobs, system), kind="stable")].tolist()
        return ordered

    @abstractmethod
    def scores_now(self, jobs: NDArray[np.int64], system: System) -> Column:
        """Return the scores of waiting jobs, shape (jobs,); the lowest starts first."""


@policies.register("priority")
@dataclass
class Priority(PriorityOrder):
    """The highest priority first, as the column `priority` of the trace states it.

    These are the priorities that the scheduler of the log gave. They stay as they are; jobs of
    unknown priority are behind all others.
    """

    def begin(self, system: System) -> None:
        """Store the priorities, if the trace states any."""
        super().begin(system)
        priorities = system.annotations.get("priority", np.array([UNKNOWN]))
        if (priorities == UNKNOWN).all():
            raise InputError(
                "no job of the trace has a priority, by which policy priority orders; expected a "
                "log that states priorities",
                field="priority",
            )
        self._scores = -priorities.astype(np.float64)

    def scores_now(self, jobs: NDArray[np.int64], system: System) -> Column:
        """Return minus the priorities."""
        return self._scores[jobs]


class ScoreOrder(PriorityOrder):
    """An order by a score of sizes and times."""

    def begin(self, system: System) -> None:
        """Store the sizes and times of all jobs as arrays."""
        super().begin(system)
        columns = (system.processors, system.requested_time, system.submit)
        processors, requested, submit = (np.array(one, dtype=np.float64) for one in columns)
        self._jobs = Waiting(processors, requested, submit, system.now)

    def scores_now(self, jobs: NDArray[np.int64], system: System) -> Column:
        """Return the scores of waiting jobs."""
        processors, requested, submit = (column[jobs] for column in self._jobs[:3])
        return self.scores(Waiting(processors, requested, submit, system.now))

    @abstractmethod
    def scores(self, jobs: Waiting) -> Column:
        """Return the score of each job; the lowest starts first."""


class FixedOrder(ScoreOrder):
    """An order by scores that do not change while jobs wait.

    All jobs of the trace are scored once.
    """

    def begin(self, system: System) -> None:
        """Score all jobs."""
        super().begin(system)
        self._scores = self.scores(self._jobs)

    def scores_now(self, jobs: NDArray[np.int64], system: System) -> Column:
        """Return the scores of waiting jobs."""
        return self._scores[jobs]

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel of the machine, unless the scores change."""
        if type(self).scores_now is not FixedOrder.scores_now:
            return None
        return self._bound(run, rank=self._scores)


class WaitOrder(ScoreOrder):
    """An order by ``-(w / u)^k v`` for a wait w, with a unit u and a weight v of each job."""

    power: ClassVar[int] = 1  # or 3

    @abstractmethod
    def terms(self, processors: Column, requested: Column) -> tuple[Column, Column]:
        """Return the unit and the weight of each job, shapes (jobs,)."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``-(w / u)^k v``."""
        unit, weight = self.terms(jobs.processors, jobs.requested)
        waits = jobs.wait / unit
        # not **: its last bit differs between machines
        return -(waits * waits * waits if self.power == 3 else waits) * weight

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel of a line, unless the scores are others."""
        own = type(self)
        is_own = own.scores is WaitOrder.scores and own.scores_now is WaitOrder.scores_now
        if self._queues is not None or not is_own:
            return None
        unit, weight = self.terms(*self._jobs[:2])
        return self._bound(run, power=self.power, unit=unit, weight=weight)


@policies.register("sjf")
@dataclass
class SJF(FixedOrder):
    """Shortest job first, by requested time."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``r``."""
        return jobs.requested


@policies.register("saf")
@dataclass
class SAF(FixedOrder):
    """Smallest area first: requested time times processors."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``r n``."""
        return jobs.requested * jobs.processors


@policies.register("wfp3")
@dataclass
class WFP3(WaitOrder):
    """WFP3: the longest wait first, in favor of short and large jobs.

    References
    ----------
    W. Tang, Z. Lan, N. Desai, D. Buettner, "Fault-aware, utility-based job scheduling on Blue
    Gene/P systems", IEEE Cluster 2009.
    """

    power = 3

    def terms(self, processors: Column, requested: Column) -> tuple[Column, Column]:
        """Return r and n: the score is ``-(w / r)^3 n``."""
        return requested, processors


@policies.register("unicef")
@dataclass
class UNICEF(WaitOrder):
    """UNICEF: fast response for small and short jobs; serial jobs come first.

    References
    ----------
    The paper of `WFP3`.
    """

    def terms(self, processors: Column, requested: Column) -> tuple[Column, Column]:
        """Return ``log2(n) r`` and 1: the score is ``-w / (log2(n) r)``."""
        return np.maximum(np.log2(processors), SERIAL) * requested, np.ones_like(requested)


def log_since_first(jobs: Waiting) -> Column:
    """Return ``log10(s)``: s counts from the first job of the trace, and is at least 1 s."""
    logarithm: Column = np.log10(np.maximum(jobs.submit - jobs.submit[:1], 1.0))
    return logarithm


@policies.register("f1")
@dataclass
class F1(FixedOrder):
    """F1 of Carastan-Santos and de Camargo (2017).

    F1 to F4 were fitted to simulated queues.

    References
    ----------
    D. Carastan-Santos, R. Y. de Camargo, "Obtaining dynamic scheduling policies with simulation
    and machine learning", SC 2017, table 3.
    """

    def scores(self, jobs: Waiting) -> Column:
        """Return ``log10(r) n + 870 log10(s)``."""
        return np.log10(jobs.requested) * jobs.processors + 870 * log_since_first(jobs)


@policies.register("f2")
@dataclass
class F2(FixedOrder):
    """F2 of Carastan-Santos and de Camargo (2017)."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``sqrt(r) n + 25600 log10(s)``."""
        return np.sqrt(jobs.requested) * jobs.processors + 25_600 * log_since_first(jobs)


@policies.register("f3")
@dataclass
class F3(FixedOrder):
    """F3 of Carastan-Santos and de Camargo (2017)."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``r n + 6860000 log10(s)``."""
        return jobs.requested * jobs.processors + 6_860_000 * log_since_first(jobs)


@policies.register("f4")
@dataclass
class F4(FixedOrder):
    """F4 of Carastan-Santos and de Camargo (2017)."""

    def scores(self, jobs: Waiting) -> Column:
        """Return ``r sqrt(n) + 530000 log10(s)``."""
        return jobs.requested * np.sqrt(jobs.processors) + 530_000 * log_since_first(jobs)
