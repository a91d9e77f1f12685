"""Fair shares of users, which change as jobs run: Slurm's Fair Tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optsched.numbers import whole_number
from optsched.policies.multifactor import WEEK, used_after
from optsched.sites.parts import Ints
from optsched.slurm.limits import Limits
from optsched.slurm.order import time_of
from optsched.slurm.queue import QueuedJob
from optsched.slurm.supply import Supply

Floats = NDArray[np.float64]

OF_PARENT = 2**31 - 1
"""What Slurm writes for the shares of those that have the shares of their account."""

PERIOD = 300.0
"""Seconds between two calculations of priorities by default."""


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
    if settings.get("priorityusageresetperiod", "NONE").upper() != "NONE" or not _is_whole(limits):
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


def _is_whole(limits: Limits) -> bool:
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
