"""The order in which Slurm takes pending jobs, and which come before another."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.numbers import whole_number
from optsched.sites.slurm_notation import seconds
from optsched.slurm.access import open_partitions, partitions_of
from optsched.slurm.queue import Queue, QueuedJob
from optsched.slurm.requests import blocked_by_rule
from optsched.slurm.running import started_of
from optsched.slurm.supply import Supply

Floats = NDArray[np.float64]


def rank(job: QueuedJob, supply: Supply) -> tuple[int, int, int]:
    """Return the place of a job in the order of Slurm: by tier, then priority, then number."""
    tier = max((supply.tiers.get(name, 0) for name in job.partitions), default=0)
    return -tier, -job.priority, job.job_id


def ahead_by(job: QueuedJob, others: Iterable[QueuedJob]) -> int:
    """Return how far a job is raised to be before others.

    It goes twice as far as needed: priorities move until the job starts, and none is shown below 1.
    """
    return 2 * (max(other.priority for other in others) - job.priority + 1)


def age(job: QueuedJob, now: int) -> int:
    """Return for how many seconds a pending job could have started."""
    since = job.eligible or job.submit
    return 0 if since is None else max(0, now - since)


def new_priority(job: QueuedJob, queue: Queue, supply: Supply) -> tuple[int, str]:
    """Return the priority that Slurm would give a job now, and in words what is assumed for it.

    It has no age yet. All other factors are those of the last job of its kind that waits.
    """
    waiting = [each for each in queue.pending if each.priority and each.job_id != job.job_id]
    waiting = [each for each in waiting if not each.held]
    lowest = min((each.priority for each in waiting), default=1)
    if supply.settings.get("prioritytype", "").endswith("basic"):
        return max(1, lowest - 1), "below all others, as by priority/basic"
    alike = [each for each in waiting if each.partitions == job.partitions]
    alike = [each for each in alike if not each.priority_by_operator]
    alike = [each for each in alike if job.qos in ("", each.qos)]
    own = [each for each in alike if each.user == job.user != ""]
    own = [each for each in own if job.account in ("", each.account)]
    for kind, jobs in (("user, account, QOS", own), ("QOS", alike if job.qos else ())):
        if jobs:
            one = max(jobs, key=lambda each: (each.submit or 0, each.job_id))
            priority = max(1, one.priority + one.nice - job.nice - _of_age(one, supply))
            like = f"that of job {one.label}, of the same {kind} and partition, without its age"
            return priority, like
    return lowest, "the lowest of the queue"


class Aging(NamedTuple):
    """How the priority of a pending job grows with its age, as Slurm's settings have it."""

    weight: int  # most points of priority for the age
    longest: float  # age in seconds from which a job has all of them
    always: bool  # whether its age counts from submission, or only while it may start

    def of(self, seconds: Floats) -> Floats:
        """Return the points of priority for ages in seconds."""
        return self.weight * np.minimum(1.0, seconds / self.longest)

    def accrued(self, job: QueuedJob, now: int) -> int:
        """Return the age of a job that counts now, in seconds."""
        if self.always:
            return max(0, now - (job.submit or now))
        return 0 if job.dependency and job.eligible is None else age(job, now)


def aging(settings: Mapping[str, str]) -> Aging:
    """Return how priorities grow by the settings of a cluster."""
    weight = whole_number(settings.get("priorityweightage", ""))
    if settings.get("prioritytype", "").endswith("basic"):
        weight = 0
    longest = time_of(settings, "prioritymaxage", math.inf) or math.inf
    flags = settings.get("priorityflags", "").upper().split(",")
    return Aging(weight or 0, longest, "ACCRUE_ALWAYS" in flags)


def time_of(settings: Mapping[str, str], name: str, default: float) -> float:
    """Return a time of the settings in seconds, or the default where none is stated."""
    try:
        return seconds(settings.get(name, ""))
    except InputError:
        return default


def _of_age(job: QueuedJob, supply: Supply) -> int:
    """Return how much of the priority of a pending job is for its age."""
    grows = aging(supply.settings)
    return round(grows.of(np.array([grows.accrued(job, supply.time)], dtype=np.float64)).item())


def tasks(jobs: Iterable[QueuedJob]) -> int:
    """Return the number of jobs, in which each task of a job array counts."""
    return sum(max(1, len(job.array_tasks)) for job in jobs)


class _Kind(NamedTuple):
    """The jobs of the same partitions, those that come first in front."""

    keys: list[tuple[int, int]]  # minus the priority, and the number
    jobs: list[QueuedJob]
    upto: list[int]  # number of jobs and tasks before each, and at the end of all


@dataclass(frozen=True, eq=False)
class Order:
    """Which pending jobs are before others: they want the same nodes and come first.

    That is, partitions of both share nodes, and the partition of the other is of a higher tier, or
    of the same one and its priority is higher, or that is the same and its number is lower. Jobs,
    and tasks of an array, that a rule keeps from starting now are before none.
    """

    queue: Queue
    supply: Supply  # the site and what is free now

    def before(self, job: QueuedJob, *, of_tier: bool = False) -> tuple[QueuedJob, ...]:
        """Return the jobs before one, or one task, the first one first; only those of its tier."""
        found = list[QueuedJob]()
        for kind, stop, is_higher in self._spans(job):
            found += () if of_tier and is_higher else kind.jobs[:stop]
        tiers = self._tiers(job)
        found.sort(key=lambda each: (-_tier(each.partitions, tiers), -each.priority, each.job_id))
        own = self._tasks_before(job)
        same = next((each for each in self._free if each.job_id == job.job_id), job)
        return (*found, *((replace(same, array_tasks=own),) if own else ()))

    def number_before(self, job: QueuedJob) -> int:
        """Return the number of `before`, in which each task of an array counts."""
        others = sum(kind.upto[stop] for kind, stop, _ in self._spans(job))
        return others + len(self._tasks_before(job))

    def _spans(self, job: QueuedJob) -> Iterator[tuple[_Kind, int, bool]]:
        """Yield how many of each kind are before a job, and whether their tier is higher."""
        tiers = self._tiers(job)
        own = _tier(job.partitions, tiers)
        for names, kind in self._kinds.items():
            tier = _tier(names, tiers)
            if tier > own:
                yield kind, len(kind.jobs), True
            elif tier == own > 0:
                yield kind, bisect_left(kind.keys, (-job.priority, job.job_id)), False

    def _tasks_before(self, job: QueuedJob) -> tuple[int, ...]:
        """Return the tasks of its own array that are before a task."""
        there = self._tasks.get(job.job_id, ()) if job.array_tasks else ()
        return there[: bisect_left(there, job.array_tasks[0])] if there else ()

    @cached_property
    def _free(self) -> tuple[QueuedJob, ...]:
        """The pending jobs that no rule keeps from starting now, with the tasks that may."""
        found = list[QueuedJob]()
        for job in self.queue.pending:
            started = started_of(job, self.queue, self.supply)
            if blocked_by_rule(job, self.supply, started):
                continue
            most = job.array_limit - started if job.array_limit else len(job.array_tasks)
            found.append(replace(job, array_tasks=job.array_tasks[:most]))
        return tuple(found)

    @cached_property
    def _tasks(self) -> Mapping[int, tuple[int, ...]]:
        return {job.job_id: job.array_tasks for job in self._free if job.array_tasks}

    @cached_property
    def _kinds(self) -> Mapping[tuple[str, ...], _Kind]:
        of_kind: dict[tuple[str, ...], list[QueuedJob]] = {}
        for job in sorted(self._free, key=lambda job: (-job.priority, job.job_id)):
            of_kind.setdefault(job.partitions, []).append(job)
        return {
            names: _Kind(
                [(-job.priority, job.job_id) for job in jobs],
                jobs,
                [*accumulate((tasks([job]) for job in jobs), initial=0)],
            )
            for names, jobs in of_kind.items()
        }

    def _tiers(self, job: QueuedJob) -> Mapping[str, int]:
        """Return 1 and the tier of each partition that shares nodes with those of a job."""
        parts = open_partitions(job, self.supply) or partitions_of(job, self.supply)
        names = tuple(each.name for each in parts)
        if names not in self._shared:
            mine = {node for each in parts for node in each.nodes.tolist()}
            self._shared[names] = {
                each.name: 1 + each.priority_tier
                for each in self.supply.site.partitions
                if not mine.isdisjoint(each.nodes.tolist())
            }
        return self._shared[names]

    _shared: dict[tuple[str, ...], Mapping[str, int]] = field(default_factory=dict, repr=False)


def _tier(partitions: Iterable[str], tiers: Mapping[str, int]) -> int:
    """Return the highest of the tiers of partitions that share nodes; 0 if none does."""
    return max((tiers.get(name, 0) for name in partitions), default=0)
