"""The jobs of Slurm as a trace on its nodes, which the event engine plays on from the present."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.numbers import counted, whole_number
from optsched.policies.site import _tables
from optsched.simulator.engine import Engine
from optsched.simulator.policy import Policy
from optsched.simulator.problem_solver import ProblemSolver
from optsched.sites.job_request import UnplaceableError
from optsched.sites.parts import FLEX, Reservation
from optsched.sites.requests import Chunks
from optsched.sites.site import Site
from optsched.slurm import playing
from optsched.slurm.access import longest, open_partitions, own_qos_of
from optsched.slurm.hold_problem import UNTIL, lacks_service
from optsched.slurm.limits import Limits
from optsched.slurm.order import FairShares, Floats, Usage, aging, fair_shares
from optsched.slurm.queue import QueuedJob, SlurmQueue
from optsched.slurm.requests import (
    OF_LIMITS,
    Request,
    alternatives,
    blocked_by_rule,
    lacking,
    licences_from,
    shares_with_own,
)
from optsched.slurm.running import (
    Held,
    View,
    end_of,
    held_alone,
    hidden_amounts,
    hidden_licences,
    is_alone,
    may_preempt,
    supply_at,
    views,
)
from optsched.slurm.snapshot import columns_of
from optsched.slurm.supply import Supply
from optsched.traces.cleaning import clean
from optsched.traces.requests import numbered
from optsched.traces.trace import UNKNOWN, Header, Trace

HORIZON = 5 * 365 * 86_400  # seconds that stand for a time without end: no job runs for longer
UNOWNED = "unowned"  # what nodes have `MANY` of that no user owns
MANY = 10**6  # more than the chunks of jobs on a node
MOST_TASKS = 1000  # most tasks of a job array that are played; the others are left out

MOST_RESERVED = 300
"""Most blocked jobs that are looked at by default, else ``easy``; more take long."""

_OF_JOB = re.compile(r":([0-9]+(?:_(?:[0-9]+|\*))?)")


class Row(NamedTuple):
    """A row of the trace: a pending job or task, or what a running job has on some nodes."""

    label: str  # of a pending job; empty for one that runs
    job: QueuedJob | None  # None for what is held by no job of the queue
    ways: tuple[tuple[Chunks, Flags], ...]
    begin: int  # seconds from now before which it does not start; 0 for none
    limit: int  # in seconds
    is_first: bool = True  # whether it is the first row of its job
    # Of what keeps others from nodes that a user owns, the jobs there: it ends with the last one
    until: tuple[QueuedJob, ...] = ()

    @property
    def task(self) -> QueuedJob:
        """The pending job, or the task of an array, alone."""
        assert self.job is not None
        number = self.label.rpartition("_")[2]
        return replace(self.job, array_tasks=(int(number),)) if self.job.array_tasks else self.job

    @property
    def priority(self) -> int:
        """The priority of a pending job."""
        return 0 if self.job is None else self.job.priority

    @property
    def number(self) -> int:
        """The number of a pending job."""
        return 0 if self.job is None else self.job.job_id


@dataclass(frozen=True, eq=False)
class Future:
    """The running and the pending jobs of a queue, ready to be played on from now.

    A running job is a row for each amount that it has on some of its nodes, and so is what nodes
    lack that no job of the queue has.
    """

    queue: SlurmQueue
    supply: Supply
    policy: str = ""  # a name of `optsched.slurm.what_if.POLICIES`; by default see `chosen`
    # What `_anyhow` and `_preempted` have returned
    _idle: dict[str, Supply] = field(default_factory=dict, init=False)
    _preempting: dict[tuple[Any, ...], int] = field(default_factory=dict, init=False)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows in the order in which they start: what runs, then by priority."""
        pending = sorted(self._pending[0], key=lambda row: (-row.priority, row.number))
        return (*self._running(), *self._hidden(), *self._owned(), *pending)

    @cached_property
    def chosen(self) -> str:
        """The policy: by default ``none`` with sched/builtin, else see `MOST_RESERVED`."""
        if self.policy or self.supply.settings.get("schedulertype", "").endswith("builtin"):
            return self.policy or "none"
        quotas, most = self.quotas
        left, looked_at = most.copy(), 0  # if all pending jobs are blocked
        for own in quotas[self.waiting, 1:]:
            if (left[own] > 0).all():
                left[own] -= 1
                looked_at += 1
        return "conservative" if looked_at <= MOST_RESERVED else "easy"

    @property
    def unheeded(self) -> tuple[str, ...]:
        """The settings of Slurm's backfill scheduler on reservations that are not played."""
        names = (
            playing.UNHEEDED if self.chosen == "conservative" else playing.UNHEEDED | playing.HEEDED
        )
        return tuple(
            f"{name}={text}" if text else name
            for name, text in playing.stated(self.supply.settings).items()
            if name in names or (name in playing.HEEDED and whole_number(text) is None)
        )

    @cached_property
    def backfill(self) -> playing.Backfill:
        """What the settings say on reservations."""
        return playing.backfill(self.supply.settings)

    @cached_property
    def quotas(self) -> tuple[Ints, Ints]:
        """The quotas of blocked jobs that each row counts in, and how many each allows."""
        return self.backfill.quotas_of([row.job if row.label else None for row in self.rows])

    @cached_property
    def now(self) -> Supply:
        """What is free now, as running jobs allow others."""
        return supply_at(self.supply, self.queue, self.supply.time)

    @cached_property
    def waiting(self) -> Ints:
        """The places of the rows of pending jobs, shape (pending jobs,)."""
        return np.flatnonzero([row.label != "" for row in self.rows])

    @property
    def waiting_rows(self) -> list[Row]:
        """The rows of the pending jobs."""
        return [row for row in self.rows if row.label]

    @property
    def left(self) -> Mapping[str, str]:
        """By label, the pending jobs that are left out, and why."""
        return self._pending[1]

    @cached_property
    def limits(self) -> Floats:
        """The longest time that each row runs for, in seconds, shape (rows,)."""
        return np.array([row.limit for row in self.rows], dtype=np.float64)

    def starts(self, seconds: Floats) -> Floats:
        """Return when pending jobs start if the rows run for some time; nan if after `HORIZON`."""
        return self._played(seconds)[0]

    @cached_property
    def by_limits(self) -> Floats:
        """The starts if all jobs run to their time limits."""
        return self._by_limits[0]

    @cached_property
    def never(self) -> Mapping[str, str]:
        """By label, why jobs do not start if all jobs run to their time limits."""
        starts, reasons = self._by_limits
        without_end = "what it needs is in use, closed or limited without an end that is known"
        found = {}
        for at in self.waiting[np.isnan(starts)].tolist():
            row = self.rows[at]
            own = self._reservation(row.task)
            over = own and f"its reservation {own.name} ends before it has room"
            found[row.label] = reasons.get(at) or over or without_end
        return found

    @cached_property
    def _by_limits(self) -> tuple[Floats, Mapping[int, str]]:
        return self._played(self.limits)

    def _played(self, seconds: Floats) -> tuple[Floats, Mapping[int, str]]:
        """Return the starts, and by row why jobs can never start."""
        if not len(self.waiting):
            return np.empty(0), {}
        runtime = np.minimum(np.maximum(np.ceil(seconds), 1), self.limits).astype(np.int64)
        gate = None if self.limited is None else playing.Gate(self.limited)
        policy: Policy
        if self.chosen == "conservative":
            policy = playing.Reserving(gate, self.by_priority(), self.backfill, self.quotas)
        else:
            kind: Literal["easy", "none"] = "easy" if self.chosen == "easy" else "none"
            policy = playing.Backfilling(kind, gate=gate, by_priority=self.by_priority())
        trace = replace(self.trace, runtime=runtime)
        engine = Engine(trace, self.machine, policy, ProblemSolver({}))
        engine.run()
        starts: Floats = engine.core.start[self.waiting]
        return np.where(starts < HORIZON, starts, np.nan), engine.reasons

    @cached_property
    def _fair(self) -> FairShares | None:
        return fair_shares(self.supply)

    def by_priority(self) -> playing.ByPriority | None:
        """Return the order of the rows as their priorities change; None if nothing changes."""
        grows, now = aging(self.supply.settings), self.supply.time
        # of a running job, the first row counts for all of it
        counted = [row.job if row.is_first else None for row in self.rows]
        usage = None if (fair := self._fair) is None else Usage(fair, counted, self.supply)
        counts = usage is not None or (self.backfill.changes and self.chosen == "conservative")
        if not counts and (not grows.weight or math.isinf(grows.longest)):
            return None
        rows = self.waiting_rows
        jobs = [row.job for row in rows if row.job is not None]
        ages, waited = (
            np.array([kind.accrued(job, now) for job in jobs], dtype=np.float64)
            for kind in (grows, grows._replace(always=False))
        )
        priority = np.array([job.priority for job in jobs], dtype=np.float64)
        are_set = np.array([job.priority_by_operator for job in jobs])
        most = priority + np.where(are_set, 0, grows.weight - grows.of(ages))
        are_late = any(row.begin for row in rows) or any(job.dependency for job in jobs)
        # a priority is a whole number, so a difference of less than 1 may be none
        keep = not are_late and (most[1:] <= np.minimum.accumulate(most)[:-1] + 1).all()
        if keep and not counts:
            return None
        of_jobs = priority, ages, waited, are_set
        return playing.ByPriority(grows, usage, self.waiting, *of_jobs, len(self.rows))

    @cached_property
    def trace(self) -> Trace:
        """All rows as a trace, whose times are in seconds from now."""
        rows = self.rows
        jobs = [row.job for row in rows]
        limits = self.limits.astype(np.int64)
        texts = {
            "partition_name": [
                ",".join(row.job.partitions) if row.job and row.label else "" for row in rows
            ],
            "reservation": [
                own.name if row.job and (own := self._reservation(row.job)) else "" for row in rows
            ],
            "dependency": [self._dependency(row) for row in rows],
            "user_name": [job.user if job else "" for job in jobs],
            "job_name": [job.name if job else "" for job in jobs],
        }
        columns = {name: np.array(text, dtype=object) for name, text in texts.items()}
        if not any(texts["dependency"]):
            del columns["dependency"]
        begin = np.array([row.begin or UNKNOWN for row in rows], dtype=np.int64)
        held = {"begin": begin} if (begin != UNKNOWN).any() else {}
        return clean(
            Trace(
                job_id=np.arange(1, len(rows) + 1),
                submit=np.zeros(len(rows), dtype=np.int64),
                runtime=limits,
                requested_time=limits,
                processors=np.ones(len(rows), dtype=np.int64),
                user=numbered(columns["user_name"]),
                executable=numbered(columns["job_name"]),
                texts=columns,
                annotations=held,
                header=Header((("UnixStartTime", str(self.supply.time)),)),
                name="queue",
            )
        )

    def _dependency(self, row: Row) -> str:
        """Return the dependency of a pending job on rows in place of jobs; 0 for no row."""
        if not row.label or row.job is None:
            return ""

        def rows_of(found: re.Match[str]) -> str:
            return "".join(f":{number}" for number in self._numbers.get(found[1], [0]))

        # of several of which one suffices those that never come about are left out
        parts = row.job.dependency.split("?")
        kept = [part for part in parts if self._absent.isdisjoint(_OF_JOB.findall(part))]
        return _OF_JOB.sub(rows_of, "?".join(kept))

    @cached_property
    def _numbers(self) -> Mapping[str, list[int]]:
        """The numbers of the rows of each job or task, and of all tasks of an array."""
        found: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows, 1):
            if row.job is None or not row.is_first:
                continue
            job = row.job
            for name in _names(job, row.label or job.label):
                found.setdefault(name, []).append(number)
        return found

    def _reservation(self, job: QueuedJob) -> Reservation | None:
        """Return the first reservation of a job that the machine has, and that binds it."""
        own = (self._reservations.get(name) for name in job.reservation.split(","))
        return next((each for each in own if each is not None and FLEX not in each.flags), None)

    def _in_reservation(self, job: QueuedJob) -> int:
        """Return for how long a job may run in its reservation, with which Slurm ends it."""
        own = self._reservation(job)
        if own is None:
            return HORIZON
        # jobs go on after the end for some minutes, or to their limits
        text = self.supply.settings.get("resvoverrun", "").partition(" ")[0]
        minutes = whole_number(text or "0")
        overrun = math.inf if minutes is None else 60 * minutes
        return _whole(own.end - max(own.start, self.supply.time) + overrun)

    @cached_property
    def _reservations(self) -> Mapping[str, Reservation]:
        """The reservations that keep nodes at certain times."""
        there = (each for each in self.supply.reservations if each.nodes and each.ahead is None)
        return {each.name: each for each in there}

    @property
    def out_of_service(self) -> str:
        """That no node is in service, and why, in words; empty if one is."""
        if self._site.is_usable.any():
            return ""
        states = Counter(self._site.states).most_common()
        each = ", ".join(f"{counted(count, 'node')} {state}" for state, count in states)
        return f"no node is in service, so no job can start: {each}"

    @cached_property
    def _site(self) -> Site:
        """The site as it is played, without licences that no job of the queue holds."""
        site, hidden = self.supply.site, hidden_licences(self.queue, self.supply)
        capacity = self._widened(site.capacity, slice(None), self.supply.idle.cores_left)
        # of which each chunk has one, and the owner of a node has all
        capacity[:, self._columns.index(UNOWNED)] = MANY
        return replace(
            site,
            resources=self._columns,
            capacity=capacity,
            licences={name: total - hidden[name] for name, total in site.licences.items()},
            reservations=tuple(self._reservations.values()),
        )

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        """The columns of `Supply` in which requests differ, and `UNOWNED`, as a site has them."""
        requests = [each for _, them in self._requests[0] for each in them]
        cores, memory, *others = columns_of(requests, self.supply)
        return cores, memory, *sorted((*others, UNOWNED))

    def _widened(self, amounts: Ints, nodes: Ints | slice, cores: Mapping[str, Ints]) -> Ints:
        """Return amounts of the resources on nodes in `_columns`, without any of `UNOWNED`."""
        supply, amounts = self.supply, amounts.copy()
        if not supply.counts_memory:
            amounts[:, 1] = 0
        wide = dict(zip(supply.columns, supply.widened(amounts, nodes, cores=cores).T))
        none = np.zeros(len(amounts), dtype=np.int64)
        return np.column_stack([wide.get(name, none) for name in self._columns])

    @cached_property
    def machine(self) -> playing.PlayedSite:
        """The nodes, idle."""
        runs = np.array([not row.label for row in self.rows], dtype=bool)
        return playing.PlayedSite(
            self._site, [row.ways for row in self.rows], runs, self.supply.closing
        )

    @cached_property
    def _pending(self) -> tuple[list[Row], dict[str, str]]:
        """Return the rows of the pending jobs, and why others are left out."""
        now, found = self.supply.time, list[Row]()
        requested, left = self._requests[0], {**self._requests[1]}
        for job, requests in requested:
            ways = tuple(map(self._way, requests))
            limit = _whole(longest(job, open_partitions(job, self._anyhow(job))))
            limit = min(limit, self._in_reservation(job))
            begins = licences_from(job, self.supply, max(now, job.eligible or now), limit)
            begin = math.ceil(min(begins - now, HORIZON))
            tasks = job.array_tasks
            if len(tasks) > MOST_TASKS:
                rest = replace(job, array_tasks=tasks[MOST_TASKS:])
                left[rest.label] = f"only {MOST_TASKS:,} tasks of its array are played"
            labels = [f"{job.array_id}_{task}" for task in tasks[:MOST_TASKS]] or [job.label]
            found += [Row(label, job, ways, begin, limit) for label in labels]
        while True:  # jobs that wait for jobs that are left out are left out, too
            gone = self._gone(found) if left else set()
            out = dict[str, str]()
            for row in found:
                dependency = "" if row.job is None else row.job.dependency
                asked = _OF_JOB.findall(dependency)
                never = [each for each in asked if each in gone]
                if never and (len(never) == len(asked) or "?" not in dependency):
                    out[row.label] = f"it depends on job {never[0]}, which has no forecast"
            if not out:
                return found, left
            found, left = [row for row in found if row.label not in out], left | out

    @cached_property
    def _absent(self) -> set[str]:
        """The names of the pending jobs that are left out."""
        return self._gone(self.rows)

    def _gone(self, rows: Iterable[Row]) -> set[str]:
        """Return the names of pending jobs that are none of some rows."""
        there = {name for row in rows if row.job for name in _names(row.job, row.label)}
        tasks = {f"{job.array_id}_{task}" for job in self.queue.pending for task in job.array_tasks}
        return ({n for job in self.queue.pending for n in _names(job, job.label)} | tasks) - there

    def _anyhow(self, job: QueuedJob) -> Supply:
        """Return the idle site for a job, without the limits and reservations that are played."""
        if job.reservation not in self._idle:
            own, now = job.reservation.split(","), self.supply.time
            never, kept = now + 2 * HORIZON, []
            for each in self.supply.reservations:
                if each.name in own:
                    each = replace(each, start=min(each.start, now))
                elif each.name in self._reservations:
                    each = replace(each, start=never, end=never + 1)
                kept.append(each)
            changed = replace(self.supply.idle, limits=Limits(), reservations=tuple(kept))
            self._idle[job.reservation] = changed
        return self._idle[job.reservation]

    @cached_property
    def _requests(self) -> tuple[list[tuple[QueuedJob, list[Request]]], dict[str, str]]:
        """Return the pending jobs with their requests, and by label why others are left out."""
        found, left = list[tuple[QueuedJob, list[Request]]](), dict[str, str]()
        for job in self.queue.pending:
            try:
                found.append((job, self._requests_of(job)))
            except UnplaceableError as error:
                left[job.label] = str(error)
        return found, left

    def _requests_of(self, job: QueuedJob) -> list[Request]:
        """Return the requests of a pending job on the idle site."""
        supply, limits = self._anyhow(job), self.supply.limits
        # what is waited for while it is played
        free = replace(job, dependency="", eligible=None, array_limit=0)
        if limits.known and job.reason.startswith(OF_LIMITS):
            free = replace(free, reason="")
        if rule := blocked_by_rule(free, supply):
            raise UnplaceableError(rule)
        own = own_qos_of(job, supply)
        over = [next(limits.broken(job, job.tres, each, idle=True), None) for each in own]
        if over and over[0] and all(over):  # whatever runs
            raise UnplaceableError(over[0][1])
        requests = [*alternatives(free, supply)]
        # without groups of nodes, and licences of reservations
        there = supply.site.licences.keys()
        played = []
        for each in requests:
            licences = {name: n for name, n in each.licences.items() if name in there}
            played.append(replace(each, span="anywhere", limits=(), licences=licences))
        if not any(each.fits(supply) for each in played):
            nearest = max(played, key=lambda each: each.room(supply) / each.chunks)
            until = UNTIL.get(lacks_service(free, supply))
            lacks = lacking(nearest, supply)
            raise UnplaceableError(until or f"it has no room even if no job runs: {lacks}")
        return requests

    def _way(self, request: Request) -> tuple[Chunks, Flags]:
        """Return the chunks of a request, with the nodes for them."""
        licences = tuple(request.licences.get(name, 0) for name in self.supply.site.licences)
        demand = tuple(request.demand.get(name, 1) for name in self._columns)
        most = min(request.most_per_node or request.chunks, request.chunks)
        one = Chunks(request.chunks, most, demand, 0, request.exclusive, licences)
        return one, request.nodes

    @cached_property
    def doubts(self) -> Mapping[str, tuple[str, ...]]:
        """By label, in words, in what pending jobs are not played as Slurm would start them."""
        of_job = {job.job_id: tuple(self._doubts(job, them)) for job, them in self._requests[0]}
        return {row.label: found for row in self.waiting_rows if (found := of_job[row.number])}

    def _doubts(self, job: QueuedJob, requests: Sequence[Request]) -> Iterator[str]:
        if self._in_reservation(job) < min(job.limit or math.inf, HORIZON):
            yield f"reservation {job.reservation} ends before the time limit, and jobs with it"
        flex = any(name in self._reservations for name in job.reservation.split(","))
        if flex and self._reservation(job) is None:
            yield f"the nodes of reservation {job.reservation} are taken as closed"
        if any(each.span != "anywhere" or each.limits for each in requests):
            yield "Slurm keeps to switches or blocks, which the forecast does not heed"
        there = np.any([each.nodes for each in requests], axis=0)
        users = {each.user for node, them in self._owners.items() if there[node] for each in them}
        if any(each.joins is not None for each in requests) or job.user in users:
            yield "the nodes of running jobs of the same user are taken as closed"
        if any({*each.licences} - {*self.supply.site.licences} for each in requests):
            yield "whether others leave it licences beside a reservation is not heeded"
        if preempted := self._preempted(job):
            waits = not any(job.job_id in view.jobs for view in self.views)
            them = "it" if preempted == 1 else "them"
            text = f"waits for {them} to end" if waits else f"takes {them} as gone"
            yield f"Slurm may preempt {counted(preempted, 'running job')}, and the forecast {text}"

    def _preempted(self, job: QueuedJob) -> int:
        """Return how many running jobs one of its partitions, QOS and priority may preempt."""
        kind = job.partitions, job.qos, job.priority
        if kind not in self._preempting:
            self._preempting[kind] = len(may_preempt(job, self.queue.running, self.supply))
        return self._preempting[kind]

    @cached_property
    def views(self) -> tuple[View, ...]:
        """The queue as it is for jobs that may preempt others."""
        return views(self.queue, self.supply)

    def _running(self) -> Iterator[Row]:
        supply, now = self.supply, self.supply.time
        for job, held in self._held:
            limit, alone = _whole(end_of(job, now) - now), is_alone(job, supply)
            licences = tuple(held.licences.get(name, 0) for name in supply.site.licences)
            is_first = True
            cores = dict.fromkeys(job.partitions, held.amounts[:, 0])
            wide = self._widened(held.amounts, held.nodes, cores)
            for amounts in np.unique(wide, axis=0):
                nodes = held.nodes[(wide == amounts).all(axis=1)]
                if ways := self._on(nodes, amounts, alone, licences):
                    left = self._until_reserved(job, nodes, limit)
                    yield Row("", job, ways, 0, left, is_first)
                    licences, is_first = (), False

    @cached_property
    def _owners(self) -> Mapping[int, tuple[QueuedJob, ...]]:
        """By node that jobs of a user or MCS label keep from others, these jobs, if shown."""
        supply = self.supply
        found: dict[int, tuple[QueuedJob, ...]] = {
            at: () for at, words in enumerate(zip(supply.owners, supply.labels)) if any(words)
        }
        alone = set[int]()
        for job, held in self._held:
            if is_alone(job, supply):
                alone |= {*held.nodes.tolist()}
                continue
            owns = shares_with_own(job, supply)
            for at in held.nodes.tolist():
                if owns or supply.labels[at] == job.mcs_label != "":
                    found[at] = (*found.get(at, ()), job)
        return {at: jobs for at, jobs in found.items() if at not in alone}

    def _owned(self) -> Iterator[Row]:
        """Yield rows that keep nodes from all further jobs until the last one there has ended."""
        now = self.supply.time
        together: dict[tuple[int, ...], tuple[tuple[QueuedJob, ...], list[int]]] = {}
        for node, jobs in self._owners.items():
            together.setdefault(tuple(job.job_id for job in jobs), (jobs, []))[1].append(node)
        whole = np.array([MANY * (name == UNOWNED) for name in self._columns])
        for jobs, nodes in together.values():
            end = max((end_of(each, now) - now for each in jobs), default=math.inf)
            if ways := self._on(np.array(sorted(nodes)), whole):
                yield Row("", None, ways, 0, _whole(end), False, jobs)

    @cached_property
    def _held(self) -> list[tuple[QueuedJob, Held]]:
        """What each running job holds, with the shared GPUs that no other job uses."""
        return [*zip(self.queue.running, held_alone(self.queue.running, self.supply))]

    def _until_reserved(self, job: QueuedJob, nodes: Ints, limit: int) -> int:
        """Return for how long a job runs until its nodes are reserved for others, if it does."""
        now, names = self.supply.time, {self.supply.site.nodes[node] for node in nodes.tolist()}
        for each in self._reservations.values():
            if each.name in job.reservation.split(","):
                limit = min(limit, self._in_reservation(job))
            elif each.start > now and not names.isdisjoint(each.nodes):
                limit = min(limit, _whole(each.start - now))
        return limit

    def _hidden(self) -> Iterator[Row]:
        """Yield rows without end for what is not free, and no job of the queue has."""
        supply = self.supply
        rest = hidden_amounts((held for _, held in self._held), supply)
        wide = self._widened(np.maximum(rest, 0), slice(None), {})
        for amounts in np.unique(wide, axis=0):
            nodes = np.flatnonzero((wide == amounts).all(axis=1))
            if ways := self._on(nodes, amounts):
                yield Row("", None, ways, 0, HORIZON, is_first=False)

    def _on(
        self, nodes: Ints, amounts: Ints, alone: bool = False, licences: tuple[int, ...] = ()
    ) -> tuple[tuple[Chunks, Flags], ...]:
        """Return the only way to have amounts on each of some nodes; none if no node is in use."""
        licences = licences or (0,) * len(self.supply.site.licences)
        there = np.zeros(len(self.supply.site.nodes), dtype=bool)
        there[nodes] = self._site.is_usable[nodes]
        if not there.any() or not amounts.any():
            return ()
        one = Chunks(int(there.sum()), 1, tuple(amounts.tolist()), 0, alone, licences)
        return ((one, there),)

    @cached_property
    def limited(self) -> _tables.Limited | None:
        """What the rows take of limits, and what these have left; None if nothing is limited."""
        first, entries = [0], list[tuple[int, int, bool]]()
        number: dict[tuple[str, str, str], int] = {}
        left: list[int] = []
        running = Counter(job.array_id for job in self.queue.running)
        for row in self.rows:
            for key, most, amount, binds in self._counted(row, running):
                if key not in number:
                    number[key] = len(left)
                    left.append(most)
                if not row.label:  # what runs is in use already, and takes it once it is played
                    left[number[key]] += amount
                entries.append((number[key], amount, binds))
            first.append(len(entries))
        if not left:
            return None
        columns = np.array(entries, dtype=np.int64).reshape(-1, 3).T.copy()
        rest = np.array(left, dtype=np.int64)
        return _tables.Limited(np.array(first), columns[0], columns[1], columns[2] > 0, rest)

    def _counted(
        self, row: Row, running: Mapping[int, int]
    ) -> Iterator[tuple[tuple[str, str, str], int, int, bool]]:
        """Yield limits: the amount left of each, the amount a row takes, and whether it binds."""
        job, limits = row.job, self.supply.limits
        if job is None or not (row.label or row.is_first):
            return
        own = own_qos_of(job, self.supply)
        binding = {limit.key for limit in limits.on(job, own[0])} if row.label and own else set()
        for limit, amount in limits.counted(job, job.tres, own, row.limit).items():
            if amount:
                yield limit.key, limit.most - limit.used, amount, limit.key in binding
        if job.array_limit:
            most = job.array_limit - running[job.array_id]
            yield (str(job.array_id), "array", ""), most, 1, bool(row.label)


def _names(job: QueuedJob, label: str) -> set[str]:
    """Return the names of a job, or of a task with a label, in dependencies of other jobs."""
    found = {label, str(job.job_id)}
    return found | {str(job.array_id), f"{job.array_id}_*"} if job.array_id else found


def _whole(seconds: float) -> int:
    """Return a time of at most `HORIZON`."""
    return max(1, math.ceil(min(seconds, HORIZON)))
