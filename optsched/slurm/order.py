"""The order in which Slurm takes pending jobs, which come before others, and fair shares."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Ints
from optsched.errors import InputError
from optsched.numbers import whole_number
from optsched.policies.multifactor import WEEK, used_after
from optsched.sites.slurm_notation import seconds
from optsched.slurm.access import open_partitions, partitions_of
from optsched.slurm.limits import Limits
from optsched.slurm.queue import QueuedJob, SlurmQueue
from optsched.slurm.requests import blocked_by_rule
from optsched.slurm.running import started_of
from optsched.slurm.supply import Supply

Floats = NDArray[np.float64]


def rank(job: QueuedJob, supply: Supply) -> tuple[int, int, int]:
    """Return the place of a job in the order of Slurm: by tier, then priority, then number."""
    return -_tier(job.partitions, supply.tiers), -job.priority, job.job_id


def ahead_by(job: QueuedJob, others: Iterable[QueuedJob]) -> int:
    """Return how far a job is raised to be before others.

    It goes twice as far as needed: priorities move until the job starts, and none is shown below 1.
    """
    return 2 * (max(other.priority for other in others) - job.priority + 1)


def age(job: QueuedJob, now: int) -> int:
    """Return for how many seconds a pending job could have started."""
    since = job.eligible or job.submit
    return 0 if since is None else max(0, now - since)


def new_priority(job: QueuedJob, queue: SlurmQueue, supply: Supply) -> tuple[int, str]:
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
            grows = aging(supply.settings)
            ages = np.array([grows.accrued(one, supply.time)], dtype=np.float64)
            of_age = round(grows.of(ages).item())
            priority = max(1, one.priority + one.nice - job.nice - of_age)
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

    queue: SlurmQueue
    supply: Supply  # the site and what is free now

    def before(self, job: QueuedJob, *, of_tier: bool = False) -> tuple[QueuedJob, ...]:
        """Return the jobs before one, or one task, the first one first; only those of its tier."""
        found = list[QueuedJob]()
        for kind, stop, is_higher in self._spans(job):
            found += () if of_tier and is_higher else kind.jobs[:stop]
        tiers = self._tiers(job)
        found.sort(key=lambda each: (-_tier(each.partitions, tiers), -each.priority, each.job_id))
        if own := self._tasks_before(job):
            found.append(replace(self._free[job.job_id], array_tasks=own))
        return tuple(found)

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
        there = self._free.get(job.job_id, job).array_tasks
        return there[: bisect_left(there, job.array_tasks[0])] if job.array_tasks else ()

    @cached_property
    def _free(self) -> Mapping[int, QueuedJob]:
        """By number, pending jobs that no rule keeps from starting now, with tasks that may."""
        found = dict[int, QueuedJob]()
        for job in self.queue.pending:
            started = started_of(job, self.queue, self.supply)
            if not blocked_by_rule(job, self.supply, started):
                most = job.array_limit - started if job.array_limit else len(job.array_tasks)
                found[job.job_id] = replace(job, array_tasks=job.array_tasks[:most])
        return found

    @cached_property
    def _kinds(self) -> Mapping[tuple[str, ...], _Kind]:
        of_kind: dict[tuple[str, ...], list[QueuedJob]] = {}
        for job in sorted(self._free.values(), key=lambda job: (-job.priority, job.job_id)):
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


OF_PARENT = 2**31 - 1
"""What Slurm writes for the shares of those that have the shares of their account."""

PERIOD = 300.0  # seconds between two calculations of priorities by default


class FairTree:
    """The tree of accounts and users, in which `factors` ranks the users by usage.

    Those of the same account, its siblings, are in order of their level fair share: the share of
    their shares over the share of their usage. The users of an account come together, and the
    rank of a user from the last, over the number of users, is the fair share. See SchedMD, "Fair
    tree fairshare algorithm", https://slurm.schedmd.com/fair_tree.html.
    """

    def __init__(self, limits: Limits) -> None:
        self.number = {key: at for at, key in enumerate(limits.shares)}
        shares = [each.shares for each in limits.shares.values()]
        self.above = []  # the numbers of each and of the accounts above it, the highest one last
        for at, (account, user, _) in enumerate(limits.shares):
            chain = [self.number[name, "", ""] for name in limits.accounts_above(account)]
            self.above.append(np.array([at, *chain] if user else chain))
        count = len(shares)
        is_user = np.array([bool(user) for _, user, _ in limits.shares])
        of_parent = np.array([each == OF_PARENT for each in shares])
        # the account whose shares are divided among an association and its siblings
        self._account = np.full(count, -1)
        self._users_below = np.zeros(count, dtype=np.int64)
        for at, above in enumerate(self.above):
            accounts = above[1:]
            if len(accounts):
                self._account[at] = next((n for n in accounts if not of_parent[n]), accounts[-1])
            if is_user[at]:
                self._users_below[above] += 1
        stated = np.where(of_parent, 0, shares)
        total = np.bincount(self._account + 1, stated, count + 1)[self._account + 1]
        self._shares = np.divide(stated, total, out=np.zeros(count), where=total > 0)
        # level fair shares that do not depend on usage; an account that has the shares of the one
        # above comes last, as its users are siblings of its own
        fixed = np.where(is_user, np.inf, -1)
        self._level = np.where(of_parent, fixed, np.where(self._shares > 0, np.nan, 0))
        depth = np.array([len(each) for each in self.above])
        self._levels = [np.flatnonzero(depth == each) for each in range(2, depth.max() + 1)]
        self._is_account = ~is_user
        self._users = np.flatnonzero(is_user)

    def factors(self, usage: Floats) -> Floats:
        """Return the fair share of each user by the usage of all, and 0 for accounts."""
        account, below = self._account, self._users_below
        of_account = usage[account]
        used = np.divide(usage, of_account, out=np.zeros(len(usage)), where=of_account > 0)
        level = np.divide(self._shares, used, out=np.full(len(used), np.inf), where=used > 0)
        level = np.where(np.isnan(self._level), level, self._level)
        order = np.lexsort((self._is_account, -level, account))
        starts = np.diff(account[order], prepend=-2) > 0
        ahead = np.cumsum(below[order]) - below[order]
        ahead -= np.maximum.accumulate(np.where(starts, ahead, 0))
        is_tied = ~starts
        is_tied[1:] &= level[order][1:] == level[order][:-1]
        # users that come before, and whether it has the rank of the last one of them
        before, tied, is_first = (np.empty_like(each) for each in (ahead, is_tied, starts))
        before[order], tied[order], is_first[order] = ahead, is_tied, starts
        for nodes in self._levels:
            before[nodes] += before[account[nodes]]
            tied[nodes] |= is_first[nodes] & tied[account[nodes]]
        users = self._users[np.argsort(before[self._users])]
        found = np.zeros(len(usage))
        last = np.maximum.accumulate(np.where(tied[users], 0, before[users]))
        found[users] = (len(users) - last) / len(users)
        return found


@dataclass(frozen=True, eq=False)
class FairShares:
    """What Slurm has for the fair shares of jobs, which it calculates after each period."""

    tree: FairTree
    weight: int  # most points of priority for the fair share
    half_life: float  # of usage, in seconds; 0 for no decay
    period: float  # in seconds
    usage: Floats  # of each association now
    factors: Floats  # the fair share of each in the priorities of now


def fair_shares(supply: Supply) -> FairShares | None:
    """Return the fair shares of a cluster; None if there are none, or not all is known of them."""
    settings, limits = supply.settings, supply.limits
    weight = whole_number(settings.get("priorityweightfairshare", ""))
    flags = settings.get("priorityflags", "").upper().split(",")
    if not weight or not settings.get("prioritytype", "").endswith("multifactor"):
        return None
    if not {"NO_FAIR_TREE", "INCR_ONLY"}.isdisjoint(flags):
        return None
    if settings.get("priorityusageresetperiod", "NONE").upper() != "NONE" or not is_whole(limits):
        return None
    tree, stated = FairTree(limits), limits.shares.values()
    usage = np.array([each.usage for each in stated])
    # Slurm shows the fair shares in two decimals; of the ranks that it may mean, the nearest one
    users = sum(bool(user) for _, user, _ in limits.shares)
    shown = np.array([each.factor for each in stated]) * users
    low, high = np.ceil(shown - users / 200 - 1e-6), np.floor(shown + users / 200 + 1e-6)
    factors = np.clip(np.rint(tree.factors(usage) * users), low, high) / users
    half_life = time_of(settings, "prioritydecayhalflife", WEEK)
    period = max(1.0, time_of(settings, "prioritycalcperiod", PERIOD))
    return FairShares(tree, weight, half_life, period, usage, factors)


def is_whole(limits: Limits) -> bool:
    """Return whether the tree of associations is known, with a user and the share of each."""
    above = (limits.accounts_above(account) for account, _, _ in limits.associations)
    highest = {name for accounts in above for name in accounts[-1:]}
    users = any(user for _, user, _ in limits.shares)
    alone = len(highest) == 1 and limits.parents.get(*highest) == ""
    return users and alone and limits.shares.keys() == limits.associations.keys()


class Usage:
    """The usage of associations while jobs run, and the points of priority for their shares."""

    def __init__(self, fair: FairShares, jobs: Sequence[QueuedJob | None], supply: Supply) -> None:
        self._fair, self._usage, self._factors = fair, fair.usage, fair.factors
        self._rate = np.zeros(len(fair.usage))
        self._since = self._calculated = 0.0
        keys = [None if job is None else supply.limits.association(job) for job in jobs]
        number = fair.tree.number
        # the association of each job, -1 for one that is not known
        self.owner: Ints = np.array([-1 if key is None else number[key] for key in keys])
        self._billing = [0.0 if job is None else _billing(job, supply) for job in jobs]

    def start(self, row: int) -> None:
        """Count a job from now on."""
        self._add(row, 1)

    def points(self, now: float, ended: Iterable[int]) -> Floats:
        """Return the points of each association, and 0 for none, once some jobs have ended."""
        last = now // self._fair.period * self._fair.period
        if last > self._calculated:
            self._advance(last)
            self._calculated, self._factors = last, self._fair.tree.factors(self._usage)
        self._advance(now)
        for row in ended:
            self._add(row, -1)
        return np.append(self._fair.weight * self._factors, 0)

    def _advance(self, now: float) -> None:
        passed, self._since = now - self._since, now
        self._usage = used_after(passed, self._usage, self._rate, self._fair.half_life)

    def _add(self, row: int, times: int) -> None:
        if self.owner[row] >= 0:
            self._rate[self._fair.tree.above[self.owner[row]]] += times * self._billing[row]


def _billing(job: QueuedJob, supply: Supply) -> float:
    """Return the usage of a job in each second."""
    amount = job.tres.get("billing", job.tres.get("cpu", 0))
    return amount * supply.qos_usage.get(job.qos, 1.0)
