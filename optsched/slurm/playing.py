"""The policies and the machine by which a forecast plays a queue on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Ints
from optsched.machines.site import SiteMachine
from optsched.numbers import whole_number
from optsched.policies.conservative import Conservative, NodeReservations
from optsched.policies.priority import Column, PriorityOrder
from optsched.policies.site import _reservations, _tables
from optsched.simulator.compiled_decisions import CompiledDecisions, CompiledRun
from optsched.simulator.policy import Action, Start
from optsched.simulator.system import System
from optsched.sites.requests import Chunks, Queues, Requests, Windows
from optsched.sites.site import Site
from optsched.slurm.order import Aging, Floats, Usage
from optsched.slurm.queue import QueuedJob

TASKS = "bf_max_job_array_resv"

OWNERS: Mapping[str, Callable[[QueuedJob], Hashable]] = {
    "bf_job_part_count_reserve": lambda job: job.partitions[:1],
    "bf_max_job_test": lambda job: "all",
    "bf_max_job_part": lambda job: job.partitions[:1],
    "bf_max_job_user": lambda job: job.user,
    "bf_max_job_user_part": lambda job: (job.user, job.partitions[:1]),
    "bf_max_job_assoc": lambda job: job.association,
    TASKS: lambda job: job.array_id,
}
"""What has a quota of blocked jobs, by the name of the setting; the first counts reservations.

A job in several partitions counts in the first one.
"""

NO_QUOTA = 2**60  # more than all kinds of quotas of all jobs

DEFAULTS = {"bf_max_job_test": 500, TASKS: 20}

HEEDED = frozenset((*OWNERS, "bf_window", "bf_min_age_reserve", "bf_min_prio_reserve"))
"""Settings that a forecast heeds in which each blocked job may have a reservation."""

UNHEEDED = frozenset(("bf_one_resv_per_job",))  # settings on reservations that no forecast heeds


class Backfill(NamedTuple):
    """The SchedulerParameters on reservations."""

    window: int  # seconds within which a reservation has to begin
    least_age: int  # seconds for which a job has waited that has one
    least_priority: int  # of a job that has one
    quotas: Mapping[str, int]  # by the names of `OWNERS`

    @property
    def changes(self) -> bool:
        """Whether a job may get a reservation as it ages."""
        return self.least_age > 0 or self.least_priority > 0

    def quotas_of(self, jobs: Sequence[QueuedJob | None]) -> tuple[Ints, Ints]:
        """Return the quotas of each job, shape (jobs, kinds), and how many jobs each allows.

        There are none if no job is beyond one. None stands for a job that runs.
        """
        kinds, most = list[list[int]](), [NO_QUOTA]
        for name, owner in OWNERS.items():
            allowed = self.quotas.get(name, NO_QUOTA)
            owners = [None if job is None else owner(job) for job in jobs]
            count = Counter(filter(None, owners))
            binds = max(count.values(), default=0) > allowed
            number = {each: at for at, each in enumerate(count if binds else (), len(most))}
            kinds.append([number.get(each, 0) for each in owners])
            most += [allowed] * len(number)
        kept = kinds if len(most) > 1 else []
        quotas = np.array(kept, dtype=np.int64).reshape(len(kept), len(jobs))
        return quotas.T.copy(), np.array(most)


def stated(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the SchedulerParameters of a cluster by name."""
    each = [one.partition("=") for one in settings.get("schedulerparameters", "").split(",")]
    return {name.strip(): text.strip() for name, _, text in each}


def backfill(settings: Mapping[str, str]) -> Backfill:
    """Return the settings of a cluster on reservations, with the defaults of Slurm."""
    numbers = {name: whole_number(text) for name, text in stated(settings).items()}
    found = {name: number for name, number in numbers.items() if number is not None}
    quotas = {name: found[name] for name in OWNERS if found.get(name, -1) >= (name != TASKS)}
    if "bf_max_job_assoc" in quotas:  # which Slurm then heeds instead
        quotas.pop("bf_max_job_user", None)
    return Backfill(
        60 * (found.get("bf_window") or 1440),
        found.get("bf_min_age_reserve", 0),
        found.get("bf_min_prio_reserve", 0),
        DEFAULTS | quotas,
    )


class Gate:
    """Lets the waiting jobs into the queue that limits admit, in order of the rows."""

    def __init__(self, limited: _tables.Limited) -> None:
        self._limited = limited._replace(left=limited.left.copy())
        self._outside = list[int]()

    def admit(self, system: System) -> list[int]:
        """Return the jobs that come into the queue now."""
        ended = np.array(system.ended, dtype=np.int64)
        _tables.give_back(self._limited, ended, len(ended))
        rows = np.array(sorted([*self._outside, *system.submitted]), dtype=np.int64)
        count = _tables.admit(self._limited, rows, len(rows))
        self._outside = rows[count:].tolist()
        found: list[int] = rows[:count].tolist()
        return found


@dataclass(eq=False)
class ByPriority:
    """The order of the rows: those that run, then the others by age and fair share."""

    grows: Aging
    usage: Usage | None  # None if no fair share changes
    waiting: Ints
    priority: Floats
    ages: Floats
    waited: Floats  # for how long each could have started
    are_set: Flags  # whether operators have set the priorities, which do not change then
    rows: int

    def __post_init__(self) -> None:
        self._fixed = self.priority - self._changing(self.ages, 0, ())
        self._since = np.zeros(self.rows)  # when each came into the queue
        self._rank = np.arange(self.rows, dtype=np.float64)

    def rank(self, system: System) -> Floats:
        """Return the place of each row at a time at which some come into the queue."""
        now = system.now
        self._since[system.submitted] = now
        self._there = now - self._since[self.waiting]
        ages = self.ages + (now if self.grows.always else self._there)
        self.priority = np.floor(self._fixed + self._changing(ages, now, system.ended))
        order = np.argsort(-self.priority, kind="stable")
        self._rank[self.waiting[order]] = self.waiting
        return self._rank

    def limit(self, ahead: Floats, backfill: Backfill) -> None:
        """Let rows reserve within the window that are old and high enough, and others not."""
        is_old = self.waited + self._there >= backfill.least_age
        is_high = self.priority >= backfill.least_priority
        ahead[self.waiting] = np.where(is_old & is_high, backfill.window, 0)

    def noting(self, actions: Iterable[Action]) -> Iterator[Action]:
        """Yield actions, and note the jobs that they start."""
        for action in actions:
            yield action
            if self.usage is not None and isinstance(action, Start):
                self.usage.start(action.job)

    def _changing(self, ages: Floats, now: float, ended: Iterable[int]) -> Floats:
        """Return the points of each waiting job for its age and its fair share."""
        found = self.grows.of(ages)
        if self.usage is not None:
            found = found + self.usage.points(now, ended)[self.usage.owner[self.waiting]]
        return np.where(self.are_set, 0.0, found)


@dataclass
class Reserving(Conservative):
    """Reservations in order of the rows, as by Slurm's backfill scheduler."""

    gate: Gate | None  # None if no limits hold jobs back
    by_priority: ByPriority | None  # None if the order stays
    backfill: Backfill
    quotas: tuple[Ints, Ints]

    def begin(self, system: System) -> None:
        """Start with no reservations."""
        assert isinstance(system.machine, SiteMachine)
        self._on_nodes = NodeReservations(system, system.machine)
        self._on_nodes.tables.replans[0] = _reservations.IF_LATE  # as Slurm does in each cycle
        self._on_nodes.look_ahead(self.backfill.window, *self.quotas)

    def decide(self, system: System) -> Iterable[Action]:
        """Reserve for the jobs that limits admit, and start those whose time has come."""
        assert self._on_nodes is not None
        if self.by_priority is not None:
            self._on_nodes.order_by(self.by_priority.rank(system))
            self.by_priority.limit(self._on_nodes.tables.turns.ahead, self.backfill)
        submitted = system.submitted if self.gate is None else self.gate.admit(system)
        news = SimpleNamespace(
            now=system.now, submitted=submitted, ended=system.ended, rejected=system.rejected
        )
        actions = self._on_nodes.actions(news)  # type: ignore[arg-type]
        return actions if self.by_priority is None else self.by_priority.noting(actions)

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel, unless limits admit jobs later, or their order changes."""
        assert self._on_nodes is not None
        is_fixed = self.gate is None and self.by_priority is None
        return self._on_nodes.compiled(run) if is_fixed else None


@dataclass
class Backfilling(PriorityOrder):
    """In order of the rows, with a reservation for the first blocked job of each queue, or none."""

    gate: Gate | None = None
    by_priority: ByPriority | None = None

    def begin(self, system: System) -> None:
        """Prepare for the machine."""
        super().begin(system)
        self._admitted = np.zeros(len(system.submit), dtype=bool)

    def scores_now(self, jobs: NDArray[np.int64], system: System) -> Column:
        """Return the rows of jobs, which are in order."""
        return jobs.astype(np.float64)

    def decide(self, system: System) -> Iterable[Action]:
        """Start and backfill jobs in order, those that limits admit."""
        queues = self._queues
        assert queues is not None
        self._admitted[system.submitted if self.gate is None else self.gate.admit(system)] = True
        jobs = [job for job in system.queue if self._admitted[job]]
        if self.by_priority is None:
            return queues.actions(system, jobs)
        jobs.sort(key=self.by_priority.rank(system).__getitem__)
        return self.by_priority.noting(queues.actions(system, jobs))

    def compiled(self, run: CompiledRun) -> CompiledDecisions | None:
        """Bind the decision kernel, unless limits admit jobs later, or their order changes."""
        is_fixed = self.gate is None and self.by_priority is None
        return self._bound(run) if is_fixed else None


class PlayedSite(SiteMachine):
    """The nodes of a site, whose jobs are those of a queue."""

    def __init__(
        self,
        site: Site,
        ways: Iterable[Sequence[tuple[Chunks, Flags]]],
        runs: Flags,
        closing: Floats,
    ) -> None:
        super().__init__(site)
        self._ways, self._runs, self._closing = ways, runs, closing

    def demands(self, jobs: Mapping[str, NDArray[Any]]) -> Sequence[int]:
        """Return the number of the request of each row."""
        if not hasattr(self, "requests"):
            none = {name: np.zeros(0, dtype=np.int64) for name in ("processors", "requested_time")}
            self._stated = Requests(self.site, none)
            for ways in self._ways:
                self._stated.add(ways)
            self._lines = PlayedQueues(self.site, jobs, self._runs, self._closing)
        self.serve(self._stated, self._lines)
        return self.requests.numbers


class PlayedQueues(Queues):
    """The queues of the pending jobs, after what runs; drains close nodes to further starts."""

    def __init__(
        self, site: Site, jobs: Mapping[str, NDArray[Any]], runs: Flags, closing: Floats
    ) -> None:
        super().__init__(site, jobs)
        self._closing = closing
        first = max(self.tier, default=0) + 1
        self.tier = [first if is_running else at for at, is_running in zip(self.tier, runs)]

    def windows(self, reservation: int, origin: float) -> Windows:
        """Return when nodes are closed to the jobs of a reservation, or of none (-1)."""
        times = np.unique(self._closing[np.isfinite(self._closing)])
        drains = Windows(
            times - origin,
            np.full(len(times), np.inf),
            np.ones(len(times), dtype=bool),
            self._closing == times[:, None],
        )
        found = super().windows(reservation, origin)
        if reservation >= 0:  # jobs may start until it ends, and are ended with it
            own = self.reservations[reservation]
            after = (found.start == own.end - origin) & (found.end == math.inf)
            found = found._replace(of_starts=found.of_starts | (after & found.closed.all(axis=1)))
        return Windows(*(np.concatenate(parts) for parts in zip(found, drains)))
