"""Limits of QOS and associations on waiting jobs, and how much of them is in use.

Slurm looks at the QOS of the partition, at the QOS of the job, at the association of the user and
at the accounts above it, in this order. Of two that limit the same, the first one counts, but all
count what runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from optsched.errors import InputError
from optsched.numbers import parse_number, whole_number
from optsched.sites.slurm_files import read_text
from optsched.slurm.queue import QueuedJob

KINDS = {
    **dict.fromkeys(("GrpJobs", "MaxJobs", "MaxJobsPU", "MaxJobsPA"), "jobs"),
    **dict.fromkeys(("GrpTRES", "MaxTRESPU", "MaxTRESPA"), "amounts"),
    **dict.fromkeys(("GrpTRESRunMins", "MaxTRESRunMinsPU", "MaxTRESRunMinsPA"), "minutes left"),
    "GrpTRESMins": "minutes used",
    "GrpWall": "time used",
    "MaxWallPJ": "time",
    "MaxTRESPJ": "of a job",
    "MaxTRESPN": "of a node",
    "MaxTRESMinsPJ": "minutes of a job",
    "MinTRESPJ": "least of a job",
}
"""What each limit is on; other keys of a record are no limits on the start of a job."""

OF_RUNNING = ("jobs", "amounts", "minutes left")
"""Kinds of limits on what the running jobs have together."""

SHADOWED = {"MaxJobs": ("MaxJobsPU", "MaxJobsPA")}
"""Limits of an association that those of a QOS replace, beside those of the same name."""

_PAIR = re.compile(r"(?:^|\s)(\w+)=(\S*)")
_AMOUNT = re.compile(r"([^,=]+)=(N|[0-9]{1,20})(?:\(([0-9]{1,20})\))?")
_COUNT = re.compile(r"()(?:(N|[0-9]{1,20})(?:\(([0-9]{1,20})(?:\.[0-9]+)?\))?)?")
_NAME = re.compile(r"([^(]*)(?:\(-?[0-9]+\))?")
_SHARE = re.compile(
    r" SharesRaw/Norm/Level/Factor=([0-9]{1,10})/[^/ ]*/[^/ ]*/([01]\.[0-9]{2})"
    r" UsageRaw/Norm/Efctv=([0-9]{1,20}\.[0-9]{2})/"
)


class Limit(NamedTuple):
    """A limit: whose it is, its name, the resource, how much it allows, and how much is in use."""

    owner: str
    name: str
    resource: str
    most: int
    used: int

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from all others."""
        return self.owner, self.name, self.resource


class Share(NamedTuple):
    """What an association has of shares, and what counts of its usage."""

    shares: int
    factor: float  # its fair share when Slurm last ranked the users, in two decimals
    usage: float  # decayed, in seconds of billing


@dataclass(frozen=True)
class Limits:
    """Limits of the QOS and the associations of a site."""

    # Limits of each QOS; None if no limits are enforced, or known. Those on the jobs of a
    # user or an account have its name in the key: ``two``, and ``two user ada`` or ``two
    # account ai``. ``two user`` has those of each user of whom nothing is in use; it is not
    # there if nobody has used the QOS, as Slurm shows the limits with what is in use of them.
    qos: Mapping[str, tuple[Limit, ...]] | None = None
    # Limits of each association by account, user and partition; the last two may be empty
    associations: Mapping[tuple[str, str, str], tuple[Limit, ...]] = field(default_factory=dict)
    # The association of each number
    numbers: Mapping[int, tuple[str, str, str]] = field(default_factory=dict)
    # The account above each account; empty for the highest one
    parents: Mapping[str, str] = field(default_factory=dict)
    # The share of each association, in the order of Slurm
    shares: Mapping[tuple[str, str, str], Share] = field(default_factory=dict)
    # Whether jobs start only if what is left of a budget suffices for their time limits
    safe: bool = False
    # What is to be added to what is in use, by keys of limits: of jobs that are to start,
    # and, negative, of jobs that have ended by the time in question
    started: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    names: frozenset[str] = frozenset()  # of all QOS, also where no limits are enforced

    @property
    def known(self) -> bool:
        """Whether limits are enforced, and known."""
        return self.qos is not None

    def broken(
        self, job: QueuedJob, amounts: Mapping[str, int], own_qos: str, *, idle: bool = False
    ) -> Iterator[tuple[Limit, str]]:
        """Yield the limits that keep a job from starting, perhaps even if no job runs, and how.

        `amounts`: what it takes, by names such as ``cpu``, ``mem`` (in MB), ``node`` and
        ``gres/gpu``; `own_qos`: the QOS of the partition, if any.
        """
        for limit in self.on(job, own_qos):
            if idle and KINDS[limit.name] in OF_RUNNING:
                limit = limit._replace(used=0)
            if why := _exceeded(limit, job, amounts, self.safe):
                yield limit, why

    def on(self, job: QueuedJob, own_qos: str) -> Iterator[Limit]:
        """Yield the limits on a job with what is in use now; of two on the same, the first one."""
        replaced: set[tuple[str, str]] = set()
        for holder in self._holders(job, own_qos):
            for limit in holder:
                names = (limit.name, *SHADOWED.get(limit.name, ()))
                if replaced.isdisjoint((name, limit.resource) for name in names):
                    used = limit.used + self.started.get(limit.key, 0)
                    yield limit._replace(used=used)
            replaced |= {(limit.name, limit.resource) for limit in holder}

    def counted(
        self, job: QueuedJob, amounts: Mapping[str, int], own_qos: Iterable[str], seconds: float
    ) -> dict[Limit, int]:
        """Return how much of each limit a job takes that runs for some time."""
        minutes = 0 if math.isinf(seconds) else math.ceil(seconds / 60)
        found: dict[Limit, int] = {}
        for own in own_qos:
            for limit in (limit for holder in self._holders(job, own) for limit in holder):
                many = amounts.get(limit.resource, 0)
                counts = dict(zip(OF_RUNNING, (1, many, many * minutes)))
                found[limit] = counts.get(KINDS[limit.name], 0)
        return found

    def with_job(
        self,
        job: QueuedJob,
        amounts: Mapping[str, int],
        own_qos: Iterable[str],  # the QOS of the partitions in which it may start
        seconds: float,  # for how long it runs, or would still have run
        *,
        ends: bool = False,  # whether it has ended
    ) -> Limits:
        """Return the limits once a job has started, which then runs for some time, or has ended."""
        started = dict(self.started)
        for limit, count in self.counted(job, amounts, own_qos, seconds).items():
            started[limit.key] = started.get(limit.key, 0) + (-count if ends else count)
        return replace(self, started=started)

    def has_changed(self, job: QueuedJob, own_qos: Iterable[str]) -> bool:
        """Return whether less of a limit of a job is in use than when Slurm was asked, or more."""
        holders = (holder for own in own_qos for holder in self._holders(job, own))
        return any(self.started.get(limit.key) for holder in holders for limit in holder)

    def unknown(self, job: QueuedJob, own_qos: str) -> Iterator[str]:
        """Yield which limits on a job are not known."""
        if self.qos is None:
            return
        absent = "which assoc_mgr.txt does not have"
        for name in filter(None, dict.fromkeys((job.qos, own_qos))):
            if name not in self.qos:
                yield f"limits of QOS {name}, {absent}"
                continue
            hidden = [each for each in ("user", "account") if f"{name} {each}" not in self.qos]
            if hidden:
                yield f"limits of QOS {name} on each {' and '.join(hidden)}, not shown until used"
        if not self.association(job):
            yield f"limits of user {job.user or '-'} in account {job.account or '-'}, {absent}"
        for account in self.accounts_above(job.account):
            if account not in self.parents:
                yield f"limits of account {account}, {absent}"

    def knows_above(self, account: str) -> bool:
        """Return whether all accounts above an account are known."""
        return all(each in self.parents for each in self.accounts_above(account))

    def accounts_above(self, account: str) -> tuple[str, ...]:
        """Return an account and those above it."""
        found: list[str] = []
        while account and account not in found:
            found.append(account)
            account = self.parents.get(account, "")
        return tuple(found)

    def association(self, job: QueuedJob) -> tuple[str, str, str] | None:
        """Return the association of a job; None if it is not known."""
        if job.association and self.numbers:
            return self.numbers.get(job.association)
        for partition in (*job.partitions, ""):
            key = job.account, job.user, partition
            if key in self.associations:
                return key
        return None

    def _holders(self, job: QueuedJob, own_qos: str) -> Iterator[tuple[Limit, ...]]:
        """Yield what limits a job, in the order in which Slurm looks at it."""
        if self.qos is None:
            return
        for name in dict.fromkeys((own_qos, job.qos)):
            if name:
                users = self._of_each(name, "user", job.user)
                accounts = self._of_each(name, "account", job.account)
                yield (*self.qos.get(name, ()), *users, *accounts)
        if key := self.association(job):
            yield self.associations[key]
        for account in self.accounts_above(job.account):
            above = self.associations.get((account, "", ""), ())
            yield tuple(limit for limit in above if limit.name.startswith("Grp"))

    def _of_each(self, qos: str, what: str, whose: str) -> tuple[Limit, ...]:
        """Return the limits of a QOS on the jobs of a user or an account."""
        found = self.qos or {}
        each = found.get(f"{qos} {what}", ())
        owner = f"QOS {qos} for {what} {whose}"
        unused = tuple(limit._replace(owner=owner) for limit in each)
        return found.get(f"{qos} {what} {whose}", unused)


def _exceeded(limit: Limit, job: QueuedJob, amounts: Mapping[str, int], safe: bool) -> str:
    """Return how a job exceeds a limit; empty if it does not."""
    kind, most, used = KINDS[limit.name], limit.most, limit.used
    many = amounts.get(limit.resource, 0)
    minutes = 0 if job.limit is None else job.limit / 60
    all_minutes = many * minutes if many else 0  # none of a job of no end that asks for none
    if kind == "least of a job":
        what = f"at least {most:,} {limit.resource}, and it asks for {many:,}"
        return "" if many >= most else f"{limit.owner} requires {what} ({limit.name})"
    of_running: dict[str, float] = {
        **dict(zip(OF_RUNNING, (1, many, all_minutes))),
        "minutes used": all_minutes if safe else min(many, 1),
        "time used": minutes if safe else 1,
    }
    alone: dict[str, float] = {
        "time": 0 if job.limit_by_operator else minutes,
        "of a job": many,
        "of a node": many // max(1, amounts.get("node", 1)),
        "minutes of a job": all_minutes,
    }
    used = used if kind in of_running else 0
    asked = (of_running | alone)[kind]
    if not asked or used + asked <= most:
        return ""
    unit = limit.resource or "minutes"
    if kind == "jobs":
        unit = "running jobs"
    elif "minutes" in kind:
        unit = f"minutes of {limit.resource}"
    parts = [f"{used:,} in use"] if used else []
    if math.isinf(asked):
        parts.append("it has no time limit")
    elif kind != "jobs" and (safe or not kind.endswith("used")):
        parts.append(f"{asked:,.0f} asked, {used + asked - most:,.0f} too many")
    return f"{limit.owner} allows {most:,} {unit} ({limit.name}): {', '.join(parts) or 'none'}"


def read_limits(path: Path, *, safe: bool) -> Limits:
    """Return the limits in what ``scontrol -o show assoc_mgr`` wrote.

    `path`: the file, plain or gzip; `safe`: whether slurm.conf has
    ``AccountingStorageEnforce=safe``.
    """
    qos: dict[str, tuple[Limit, ...]] = {}
    associations: dict[tuple[str, str, str], tuple[Limit, ...]] = {}
    numbers: dict[int, tuple[str, str, str]] = {}
    parents: dict[str, str] = {}
    shares: dict[tuple[str, str, str], Share] = {}
    users: dict[str, str] = {}
    names = set[str]()
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.startswith((" ", "\t")) and line.strip():
            expected = "expected a record a line, as scontrol -o show assoc_mgr writes it"
            raise InputError(f"{line.strip()[:40]!r}; {expected}", file=path, line=number)
        own, _, of_accounts = line.partition(" Account Limits=")
        values = dict(reversed(_PAIR.findall(own)))  # the first one of a key counts
        try:
            if line.startswith("UserName="):
                user, _, uid = values["UserName"].rstrip(")").partition("(")
                users[uid] = user
            elif line.startswith("QOS="):
                name = _name(values["QOS"])
                names.add(name)
                qos[name] = tuple(_limits(f"QOS {name}", values))
                of_accounts, _, of_users = of_accounts.partition(" User Limits=")
                for what, text in (("account", of_accounts), ("user", of_users)):
                    for part in text.split("}"):
                        whose, is_one, pairs = part.strip().partition("={")
                        if not is_one:  # the end, or No Users
                            continue
                        # Slurm 22.05 has the number of a user alone
                        whose = users.get(whose, whose) if what == "user" else whose
                        owner = f"QOS {name} for {what} {_name(whose)}"
                        found = tuple(_limits(owner, dict(_PAIR.findall(pairs))))
                        qos[f"{name} {what} {_name(whose)}"] = found
                        qos[f"{name} {what}"] = tuple(each._replace(used=0) for each in found)
            elif line.startswith("ClusterName="):
                account, user = values.get("Account", ""), _name(values.get("UserName", ""))
                owner = f"user {user} in account {account}" if user else f"account {account}"
                key = account, user, values.get("Partition", "")
                associations[key] = tuple(_limits(owner, values))
                if (its := whole_number(values.get("ID", ""))) is not None:
                    numbers[its] = key
                if share := _SHARE.search(own):
                    shares[key] = Share(int(share[1]), float(share[2]), float(share[3]))
                if not user:
                    parents[account] = _name(values.get("ParentAccount", ""))
        except InputError as error:
            raise InputError(*error.mistakes, file=path, line=number, field=error.field) from None
    return Limits(qos, associations, numbers, parents, shares, safe, names=frozenset(names))


def _name(text: str) -> str:
    """Return the name before a number in parentheses."""
    found = _NAME.match(text)
    return found[1] if found else text


def _limits(owner: str, values: Mapping[str, str]) -> Iterator[Limit]:
    """Yield the limits among the values of a record, but those of infinity."""
    for name in KINDS:
        if name not in values:
            continue
        text, is_amounts = values[name], "TRES" in name
        for part in filter(None, text.split(",")) if is_amounts else (text,):
            found = (_AMOUNT if is_amounts else _COUNT).fullmatch(part)
            if found is None:
                shown = text if len(text) <= 40 else f"{text[:40]}..."
                expected = "expected a limit such as cpu=N(12) or 5(2)"
                raise InputError(f"{shown!r}; {expected}", field=name)
            resource, most, used = found.groups()
            if most not in ("N", None):
                yield Limit(owner, name, resource, int(most), int(used or 0))


def read_qos(
    path: Path | None,
) -> tuple[Mapping[str, tuple[str, ...]] | None, Mapping[str, float]]:
    """Return which QOS each one may preempt, or None where that is not known, and their usage."""
    if path is None:
        return None, {}
    header, *lines = read_text(path).splitlines() or [""]
    names = header.split("|")
    if not {"Name", "Preempt"} <= {*names}:
        expected = "expected what sacctmgr -P show qos writes, with its line of names"
        raise InputError(f"no Name and Preempt; {expected}", file=path, line=1)
    preempts, usage = dict[str, tuple[str, ...]](), dict[str, float]()
    for number, line in enumerate(lines, 2):
        words = line.split("|")
        if len(words) != len(names):
            expected = f"expected {len(names)}, as in line 1"
            raise InputError(f"{len(words)} fields; {expected}", file=path, line=number)
        values = dict(zip(names, words))
        name = values["Name"]
        preempts[name] = tuple(filter(None, values["Preempt"].split(",")))
        if "within" in values.get("PreemptMode", "").lower().split(","):
            preempts[name] += (name,)
        if text := values.get("UsageFactor"):
            try:
                usage[name] = parse_number(text)
            except ValueError:
                mistake = f"{text!r}; expected a number such as 1.000000"
                raise InputError(mistake, file=path, line=number, field="UsageFactor") from None
    return preempts, usage
