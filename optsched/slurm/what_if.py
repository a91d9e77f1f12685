"""What if: changes to the queue and the nodes of Slurm, a line of words each.

=============================  ================================================================
Line                           What is different
=============================  ================================================================
``drain NODES [at TIME]``      no job starts on the nodes, or none from a time on
``resume NODES``               drained nodes are up
``add N like NODE``            N more nodes as one of the site, idle
``priority JOB = N``           the priority of a pending job
``limit JOB = TIME``           the time limit of a job, which may run
``hold JOB`` or               pending jobs are held: one, or all of a user, account, QOS or
``hold user NAME``            partition; ``release`` is the opposite
``submit OPTIONS``             one more pending job, with options of ``sbatch``
``policy NAME``                how the forecast backfills: ``conservative``, ``easy`` or ``none``
=============================  ================================================================
"""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from optsched.errors import InputError, UnknownNameError, no_such_file
from optsched.numbers import moment, parse_moment, short, whole_number
from optsched.sites.parts import Torus
from optsched.sites.slurm_files import lines_of, read_text
from optsched.sites.slurm_notation import gres, hosts, megabytes
from optsched.sites.slurm_notation import seconds as seconds_of
from optsched.sites.slurm_site import usual_of_nodes
from optsched.slurm.access import NO_RULES
from optsched.slurm.explain import pending_job
from optsched.slurm.forecast import SUBMITTED, named
from optsched.slurm.hold_problem import in_service
from optsched.slurm.order import is_whole, new_priority
from optsched.slurm.queue import QueuedJob, SlurmQueue
from optsched.slurm.requests import OF_PARTITION, released
from optsched.slurm.running import held_by
from optsched.slurm.supply import Supply

POLICIES = ("conservative", "easy", "none")
"""How a forecast backfills: each blocked job has a reservation, the first one has, or none has."""

OWNERS = {"user": "user", "account": "account", "qos": "qos", "partition": "partitions"}
"""Whose jobs can be held, with the field of `QueuedJob`."""

OF_TIME = ("TimeLimit", "Wall", "Minutes")
"""Parts of the reasons that a time limit is too long; another limit ends them."""

MOST_ADDED = 100_000  # most nodes that can be added
MOST_ASKED = 10**6  # most nodes, tasks and cores of a task that a job can ask for
MOST_PRIORITY = 2**32 - 3  # highest priority; Slurm gives the numbers above it other meanings


class Change(NamedTuple):
    """A line of words, and where it is from; by default from ``--what-if``."""

    text: str
    file: Path | None = None
    line: int | None = None

    def dated(self, now: int) -> str:
        """Return the line with the date of a clock time."""
        found = _AT.fullmatch(self.text)
        return f"{found[1]}{moment(parse_moment(found[2], now))}" if found else self.text

    def error(self, mistake: str) -> InputError:
        """Return a mistake in the line."""
        field = "--what-if" if self.file is None else None
        return InputError(f"{self.text!r}{mistake}", file=self.file, line=self.line, field=field)


@dataclass(frozen=True)
class Present:
    """The queue and what is free, and how the forecast plays them on."""

    queue: SlurmQueue
    supply: Supply
    policy: str = ""  # of the forecast; by default it chooses

    def jobs(self, change: Callable[[QueuedJob], QueuedJob]) -> Present:
        """Return it with each job changed."""
        jobs = tuple(change(job) for job in self.queue.jobs)
        return replace(self, queue=replace(self.queue, jobs=jobs))


def changed(present: Present, changes: Iterable[Change]) -> Present:
    """Return the present with some changes, one after the other."""
    for each in changes:
        for _, pattern, change in _CHANGES:
            if found := pattern.fullmatch(each.text):
                try:
                    present = change(present, *found.groups())
                except InputError as error:
                    raise each.error(f": {error}") from None
                break
        else:
            first = each.text.partition(" ")[0]
            of_word = [form for form, _, _ in _CHANGES if first in form.split()]
            raise each.error(f"; expected {', '.join(of_word) or _EXPECTED}")
    return present


def read_changes(stated: Sequence[str], *, is_forecast: bool = False) -> list[Change]:
    """Return the changes: each text is one, or with ``@`` in front a file of them.

    The policy can be changed for a forecast alone.
    """
    found: list[Change] = []
    for text in stated:
        if not text.startswith("@"):
            found.append(Change(text.strip()))
            continue
        path, expected = Path(text[1:]), "expected a file of what-ifs, one on each line"
        if path.is_dir():
            raise InputError(f"is a folder; {expected}", file=path)
        if not path.exists():
            raise no_such_file(path, (), f"no such file; {expected}")
        lines = [(line.strip(), number) for number, line in lines_of(read_text(path), path)]
        own = [Change(line, path, at) for line, at in lines if line and not line.startswith("#")]
        if not own:
            raise InputError(f"has no line; expected {_EXPECTED}", file=path)
        found += own
    for each in found:
        if each.text.startswith("policy ") and not is_forecast:
            raise each.error(" is for optsched slurm forecast")
    return found


def _drain(present: Present, nodes: str, at: str | None) -> Present:
    supply = present.supply
    drained = supply.site.mask(hosts(nodes))
    time = supply.time if at is None else parse_moment(at, supply.time)
    if time < supply.time:
        raise InputError(f"{at} is over; expected a time from {moment(supply.time)}")
    if time > supply.time:
        closing = np.where(drained, np.minimum(supply.closing, time), supply.closing)
        return replace(present, supply=replace(supply, closing=closing))
    return replace(present, supply=supply.with_states(drained, "drained"))


def _resume(present: Present, nodes: str) -> Present:
    supply = present.supply
    names = hosts(nodes)
    for place in supply.site.places(names).tolist():
        if supply.site.states[place] != "drained":
            name, state = supply.site.nodes[place], supply.site.states[place]
            raise InputError(f"{name} is {state}; expected drained nodes")
    held = [held_by(each, supply) for each in present.queue.running]
    return replace(present, supply=in_service(supply, supply.site.mask(names), held))


def _add(present: Present, number: str, like: str) -> Present:
    supply, count = present.supply, _number(number, 1, MOST_ADDED)
    site = supply.site
    [place] = site.places([like]).tolist()
    names = (f"{like}-new{one}" for one in range(1, count + MOST_ADDED))
    new = [name for name, _ in zip((n for n in names if n not in site.index), range(count))]
    total = len(site.nodes)

    def more(column: Any, idle: Any = None) -> Any:
        new = column if idle is None else idle
        if isinstance(column, tuple):
            return column + (new[place],) * count
        return np.concatenate((column, np.repeat(new[place : place + 1], count, axis=0)))

    added = np.arange(total, total + count)
    partitions = tuple(
        replace(each, nodes=np.append(each.nodes, added)) if place in each.nodes else each
        for each in site.partitions
    )
    topologies = dict(site.topologies)
    for name, each in site.topologies.items():
        if not isinstance(each, Torus):
            topologies[name] = replace(each, group=more(each.group))
    larger = replace(
        site,
        nodes=(*site.nodes, *new),
        capacity=more(site.capacity),
        features=more(site.features),
        states=site.states + ("up",) * count,
        reasons=site.reasons + ("",) * count,
        partitions=partitions,
        topologies=topologies,
    )
    idle = supply.idle
    of_nodes = {n: more(getattr(supply, n), getattr(idle, n)) for n in usual_of_nodes(supply)}
    left = {name: more(cores, idle.cores_left[name]) for name, cores in supply.cores_left.items()}
    free = more(supply.free, site.capacity)
    # the reason was given for the smaller partition, and is checked again for the larger one
    asked = present.jobs(
        lambda one: replace(one, reason="") if one.reason.startswith(OF_PARTITION) else one
    )
    there = replace(supply, site=larger, free=free, cores_left=left, **of_nodes)
    return replace(asked, supply=there)


def _priority(present: Present, label: str, number: str) -> Present:
    job = pending_job(present.queue, label)
    priority = _number(number, 0, MOST_PRIORITY)
    if not priority:  # as Slurm reads it
        return _hold(present, "hold", None, label)
    if job.held:
        raise InputError(f"{label} is held, so Slurm refuses it; expected it to be released first")
    return _one(present, job, priority=priority, priority_by_operator=True)


def _limit(present: Present, label: str, time: str) -> Present:
    limit = seconds_of(time)
    if limit < 1:
        raise InputError(f"{time}; expected a time above 0")
    running = [each for each in present.queue.running if label in (each.label, str(each.job_id))]
    if not running:
        job = pending_job(present.queue, label)
        reason = "" if any(text in job.reason for text in OF_TIME) else job.reason
        return _one(present, job, limit=limit, limit_by_operator=True, reason=reason)
    [job] = running
    end = None if job.start is None or math.isinf(limit) else job.start + round(limit)
    return _one(present, job, limit=limit, end=end)


def _one(present: Present, job: QueuedJob, **changes: Any) -> Present:
    """Return the present with a job changed, all tasks of its record together."""
    number = job.job_id
    return present.jobs(lambda one: replace(one, **changes) if one.job_id == number else one)


def _hold(present: Present, what: str, kind: str | None, name: str) -> Present:
    number = pending_job(present.queue, name).job_id if kind is None else 0

    def chosen(job: QueuedJob) -> bool:
        if job.state != "PENDING":
            return False
        if kind is None:
            return job.job_id == number
        value = getattr(job, OWNERS[kind])
        return name == value or (isinstance(value, tuple) and name in value)

    if not any(map(chosen, present.queue.jobs)):
        raise InputError(f"no pending job of {kind} {name}")

    if what == "hold":
        return present.jobs(lambda job: replace(job, held=True) if chosen(job) else job)
    given, alike = dict[int, int](), dict[tuple[int, str], list[str]]()
    for job in filter(chosen, present.queue.jobs):
        if not job.priority:
            priority, why = new_priority(job, present.queue, present.supply)
            given[job.job_id] = priority
            alike.setdefault((priority, why), []).append(job.label)
    present = present.jobs(
        lambda job: released(job, given.get(job.job_id, 0)) if chosen(job) else job
    )
    return _assuming(present, *(_given(labels, *one) for one, labels in alike.items()))


def _assuming(present: Present, *texts: str) -> Present:
    notes = (*present.supply.notes, *texts)  # on what is assumed
    return replace(present, supply=replace(present.supply, notes=notes))


def _given(labels: Sequence[str], priority: int, why: str) -> str:
    return f"{named(labels)}: taken to have priority {priority:,}, {why}"


def _number(text: str, least: int, most: int = MOST_ASKED) -> int:
    number = whole_number(text)
    if number is None or not least <= number <= most:
        raise InputError(f"{text}; expected a whole number from {least} to {most:,}")
    return number


class _Options(argparse.ArgumentParser):
    """The options of a job that ``sbatch`` has, too, and its user, by fields of `QueuedJob`."""

    def __init__(self) -> None:
        super().__init__(prog="submit", add_help=False, allow_abbrev=False)

        def add(
            *names: str, parse: Callable[[str], Any] = str, default: Any = "", **more: str
        ) -> None:
            def read(text: str) -> Any:
                try:
                    return parse(text)
                except InputError as error:
                    raise argparse.ArgumentTypeError(str(error)) from None

            self.add_argument(*names, type=read, default=default, **more)  # type: ignore[arg-type]

        count = partial(_number, least=1)
        add("-N", "--nodes", parse=count, default=0, dest="most_nodes")
        add("-n", "--ntasks", parse=count, default=0, dest="tasks")
        add("-c", "--cpus-per-task", parse=count, default=1, dest="cores_per_task")
        add("--ntasks-per-node", parse=count, default=0, dest="tasks_per_node")
        add("-t", "--time", parse=seconds_of, default=None, dest="limit")
        add("-p", "--partition", dest="partitions")
        add("-A", "--account")
        add("-q", "--qos")
        add("-C", "--constraint")
        add("--mem", parse=megabytes, default=None, dest="memory_per_node")
        add("--mem-per-cpu", parse=megabytes, default=None, dest="memory_per_core")
        add("--gres", parse=gres, default={}, dest="per_node")
        add("-L", "--licenses", dest="licences")
        self.add_argument("--exclusive", action="store_const", const="node", default="")
        add("--reservation")
        add("--user")
        add("--priority", parse=partial(_number, least=0, most=MOST_PRIORITY), default=None)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong."""
        raise InputError(message.removeprefix("argument "))


def _submit(present: Present, options: str | None) -> Present:
    parser = _Options()
    try:
        asked, rest = parser.parse_known_args(shlex.split(options or ""))
    except ValueError as error:
        raise InputError(str(error)) from None
    if rest or not options:
        known = ", ".join(action.option_strings[0] for action in parser._actions)
        raise InputError(f"{' '.join(rest) or 'no options'}; expected some of {known}")
    _refuse_unknown(asked, present.supply)
    queue, site = present.queue, present.supply.site
    default = next((each.name for each in site.partitions if each.default), "")
    names = tuple((asked.partitions or default).split(","))
    first, *_ = [site.partition(name) for name in names]
    nodes = max(1, asked.most_nodes)
    tasks = asked.tasks or nodes * max(1, asked.tasks_per_node)
    memory = asked.memory_per_core
    if not (memory or asked.memory_per_node):
        memory = first.memory_per_core or None
    assumed = list[str]()
    number = max((each.job_id for each in queue.jobs), default=0) + 1
    limit = asked.limit
    if limit is None:
        access = present.supply.access.get(first.name, NO_RULES)
        limit = min(access.default_time, first.max_time)
        rule = "MaxTime" if limit == first.max_time else "DefaultTime"
        text = short(limit) if limit < math.inf else "none"
        assumed.append(f"job {number}: its limit is {rule} of partition {first.name}, {text}")
    own = {
        "job_id": number,
        "name": SUBMITTED,
        "user": asked.user or "(new)",
        "partitions": names,
        "submit": present.supply.time,
        "limit": limit,
        "least_nodes": nodes,
        "tasks": tasks,
        "memory_per_core": memory,
        "tres": {"cpu": tasks * asked.cores_per_task, "node": nodes},
        "priority": asked.priority or 0,
        "held": asked.priority == 0,  # as in Slurm
    }
    job = QueuedJob(**vars(asked) | own)
    if asked.priority is None:
        priority, why = new_priority(job, queue, present.supply)
        job = replace(job, priority=priority)
        assumed.append(_given([str(number)], priority, why))
    present = replace(present, queue=replace(queue, jobs=(*queue.jobs, job)))
    return _assuming(present, *assumed)


def _refuse_unknown(asked: argparse.Namespace, supply: Supply) -> None:
    """Refuse an account, a user or a QOS that Slurm refuses, where all of them are known."""
    limits, account = supply.limits, asked.account
    enforced = supply.settings.get("accountingstorageenforce", "").lower()
    known = list[tuple[str, str, set[str]]]()
    if "associations" in enforced and is_whole(limits):
        pairs = {(account, user) for account, user, _ in limits.associations}
        known.append(("account", account, {each for each, _ in pairs}))
        of_account = f"user of account {account}" if account else "user"
        users = {user for each, user in pairs if user and account in ("", each)}
        known.append((of_account, asked.user, users))
    if "qos" in enforced and limits.names:
        known.append(("QOS", asked.qos, {*limits.names}))
    for noun, name, names in known:
        if name and name not in names:
            raise UnknownNameError(noun, name, names)


def _policy(present: Present, name: str) -> Present:
    if name not in POLICIES:
        raise UnknownNameError("policy", name, POLICIES)
    return replace(present, policy=name)


_AT = re.compile(r"(drain \S+ at )([0-9:]+)")

_CHANGES: tuple[tuple[str, re.Pattern[str], Callable[..., Present]], ...] = tuple(
    (form, re.compile(pattern), change)
    for form, pattern, change in (
        ("drain NODES [at TIME]", r"drain (\S+)(?: at (\S+))?", _drain),
        ("resume NODES", r"resume (\S+)", _resume),
        ("add N like NODE", r"add (\S+) like (\S+)", _add),
        ("priority JOB = N", r"priority ([^\s=]+) ?= ?(\S+)", _priority),
        ("limit JOB = TIME", r"limit ([^\s=]+) ?= ?(\S+)", _limit),
        (
            "hold or release JOB or user NAME",
            rf"(hold|release) (?:({'|'.join(OWNERS)}) )?(\S+)",
            _hold,
        ),
        ("submit OPTIONS", r"submit(?: (.+))?", _submit),
        ("policy NAME", r"policy (\S+)", _policy),
    )
)
"""The form of each line, its pattern and what it does."""

_EXPECTED = " or ".join((", ".join(form for form, _, _ in _CHANGES[:-1]), _CHANGES[-1][0]))
