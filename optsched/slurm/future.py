"""The jobs of Slurm as a trace on its nodes, which the event engine plays on from the present."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.machines.site import SiteMachine
from optsched.policies.priority import Column, PriorityOrder
from optsched.policies.site import _limited
from optsched.simulator.actions import Action, Start
from optsched.simulator.engine import Engine
from optsched.simulator.problem_solver import NoProblems
from optsched.simulator.system import System
from optsched.sites.queues import Queues, Windows
from optsched.sites.records import Ints
from optsched.sites.requests import Chunks, Requests
from optsched.sites.site import Site
from optsched.sites.slurm_amounts import seconds as seconds_of
from optsched.slurm.access import open_partitions, own_qos_of
from optsched.slurm.limits import Limits
from optsched.slurm.queue import LeftToSlurmError, Queue, QueuedJob
from optsched.slurm.requests import OF_LIMITS, alternatives, blocked_by_rule
from optsched.slurm.running import end_of, held_by, is_alone
from optsched.slurm.supply import Flags, Supply, column_on
from optsched.traces.cleaning import clean
from optsched.traces.requests import numbered
from optsched.traces.trace import Header, Trace

Floats = NDArray[np.float64]

HORIZON = 5 * 365 * 86_400
"""Seconds that stand for a time without end: no job runs for longer."""

MOST_TASKS = 1000
"""Most tasks of a job array that are played; the others are left out."""

RUNS = -2
"""In place of the number of a reservation: of jobs that run, whatever is reserved."""

BEYOND = 2**40
"""Numbers of rows beside the first one of a job are above it, as no job of Slurm is."""


class Row(NamedTuple):
    """A row of the trace: a pending job or task, or what a running job has on some nodes."""

    label: str  # of a pending job; empty for one that runs
    job: QueuedJob | None  # None for what is held by no job of the queue
    ways: tuple[tuple[Chunks, Flags], ...]
    submit: int  # seconds from now, as the next
    limit: int
    is_first: bool = True  # whether it is the first row of its job


@dataclass(frozen=True, eq=False)
class Future:
    """The running and the pending jobs of a queue, ready to be played on from now.

    A running job is a row for each amount that it has on some of its nodes, and so is what nodes
    lack that no job of the queue has.
    """

    queue: Queue
    supply: Supply
    backfill: str = "easy"  # as of `PriorityOrder`

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows, in the order of the trace."""
        found = [*self._running(), *self._hidden(), *self._pending[0]]
        return tuple(row for _, row in sorted(enumerate(found), key=self._place))

    @staticmethod
    def _place(numbered_row: tuple[int, Row]) -> tuple[int, int]:
        return numbered_row[1].submit, _number(*numbered_row)

    @cached_property
    def waiting(self) -> Ints:
        """The rows of the pending jobs, shape (pending jobs,)."""
        return np.array([at for at, row in enumerate(self.rows) if row.label], dtype=np.int64)

    @property
    def left(self) -> Mapping[str, str]:
        """By label, the pending jobs that are left out, and why."""
        return self._pending[1]

    @cached_property
    def limits(self) -> Floats:
        """The longest time that each row runs for, in seconds, shape (rows,)."""
        return np.array([row.limit for row in self.rows], dtype=np.float64)

    def starts(self, seconds: Floats) -> Floats:
        """Return when each pending job starts if the rows run for some time, shape (pending jobs,).

        Times are in seconds from now; nan for a job that does not start before `HORIZON`.
        """
        runtime = np.minimum(np.maximum(np.ceil(seconds), 1), self.limits).astype(np.int64)
        order = _Order(backfill=self.backfill, future=self)  # type: ignore[arg-type]
        trace = replace(self.trace, runtime=runtime)
        engine = Engine(trace, self.machine, order, NoProblems())
        engine.run()
        starts: Floats = engine.core.start[self.waiting]
        return np.where(starts < HORIZON, starts, np.nan)

    @cached_property
    def trace(self) -> Trace:
        """All rows as a trace, whose times are in seconds from now."""
        rows = self.rows
        jobs = [row.job for row in rows]
        limits = self.limits.astype(np.int64)
        texts = {
            "partition_name": [",".join(job.partitions) if job else "" for job in jobs],
            "reservation": [self._reservation(row) for row in rows],
            "dependency": [row.job.dependency if row.label and row.job else "" for row in rows],
            "user_name": [job.user if job else "" for job in jobs],
            "job_name": [job.name if job else "" for job in jobs],
        }
        columns = {name: np.array(text, dtype=object) for name, text in texts.items()}
        if not any(texts["dependency"]):
            del columns["dependency"]
        return clean(
            Trace(
                job_id=np.array([_number(at, row) for at, row in enumerate(rows)]),
                submit=np.array([row.submit for row in rows], dtype=np.int64),
                runtime=limits,
                requested_time=limits,
                processors=np.ones(len(rows), dtype=np.int64),
                user=numbered(columns["user_name"]),
                executable=numbered(columns["job_name"]),
                texts=columns,
                header=Header((("UnixStartTime", str(self.supply.time)),)),
                name="queue",
            )
        )

    def _reservation(self, row: Row) -> str:
        """Return the first reservation of a pending job that the machine has."""
        known = {each.name for each in self.machine.site.reservations}
        named = row.job.reservation.split(",") if row.job and row.label else ()
        return next((name for name in named if name in known), "")

    @cached_property
    def machine(self) -> _Machine:
        """The nodes, idle."""
        supply = self.supply
        kept = [each for each in supply.reservations if each.nodes and each.ahead is None]
        site = replace(supply.site, reservations=tuple(kept))
        return _Machine(site, self)

    @cached_property
    def _pending(self) -> tuple[list[Row], dict[str, str]]:
        """Return the rows of the pending jobs, and why others are left out."""
        now, found, left = self.supply.time, list[Row](), dict[str, str]()
        for job in self.queue.pending:
            try:
                ways = tuple(self._ways(job))
            except LeftToSlurmError as error:
                left[job.label] = str(error)
                continue
            submit = max(0, (job.eligible or now) - now)
            longest = [each.max_time for each in open_partitions(job, self._anyhow)]
            limit = _whole(max(longest, default=math.inf) if job.limit is None else job.limit)
            tasks = job.array_tasks
            if len(tasks) > MOST_TASKS:
                rest = replace(job, array_tasks=tasks[MOST_TASKS:])
                left[rest.label] = f"only {MOST_TASKS:,} tasks of its array are played"
            if not tasks:
                found.append(Row(job.label, job, ways, submit, limit))
            for place, task in enumerate(tasks[:MOST_TASKS]):
                label = f"{job.array_id}_{task}"
                found.append(Row(label, job, ways, submit, limit, is_first=place == 0))
        return found, left

    @cached_property
    def _anyhow(self) -> Supply:
        """The idle site without the limits of QOS and associations, which are played."""
        return replace(self.supply.idle, limits=Limits())

    def _ways(self, job: QueuedJob) -> Iterator[tuple[Chunks, Flags]]:
        """Yield the chunks of a pending job in each of its requests, with the nodes for them."""
        supply, limits = self._anyhow, self.supply.limits
        # what is waited for while it is played
        free = replace(job, dependency="", eligible=None, array_limit=0)
        if limits.known and job.reason.startswith(OF_LIMITS):
            free = replace(free, reason="")
        if rule := blocked_by_rule(free, supply) or self._over_limit(job):
            raise LeftToSlurmError(rule)
        names, counts = supply.site.resources, [1, *supply.thread_counts]
        for request in alternatives(free, supply):
            licences = tuple(request.licences.get(name, 0) for name in supply.site.licences)
            for threads in counts:
                nodes = request.nodes & (supply.threads == threads)
                if not nodes.any():
                    continue
                demand = tuple(request.demand[column_on(name, threads)] for name in names)
                most = min(request.most_per_node or request.chunks, request.chunks)
                one = Chunks(request.chunks, most, demand, 0, request.exclusive, licences)
                yield one, nodes

    def _over_limit(self, job: QueuedJob) -> str:
        """Return the limit that a job exceeds whatever runs; empty if there is none."""
        own = own_qos_of(job, self.supply)
        found = [self.supply.limits.never(job, job.tres, each) for each in own]
        return found[0] if found and all(found) else ""

    def _running(self) -> Iterator[Row]:
        """Yield the rows of the running jobs."""
        supply, now = self.supply, self.supply.time
        for job in self.queue.running:
            held = held_by(job, supply)
            limit = _whole(end_of(job, now) - now)
            alone = is_alone(job, supply)
            licences = tuple(held.licences.get(name, 0) for name in supply.site.licences)
            is_first = True
            for amounts in np.unique(held.amounts, axis=0):
                nodes = held.nodes[(held.amounts == amounts).all(axis=1)]
                if ways := self._on(nodes, amounts, alone, licences):
                    yield Row("", job, ways, 0, limit, is_first)
                    licences, is_first = (0,) * len(licences), False

    def _hidden(self) -> Iterator[Row]:
        """Yield rows without end for what is not free, and no job of the queue has."""
        supply = self.supply
        lacking = supply.site.capacity - supply.free
        for job in self.queue.running:
            held = held_by(job, supply)
            np.subtract.at(lacking, held.nodes, held.amounts)
        lacking = np.maximum(lacking, 0)
        none = (0,) * len(supply.site.licences)
        for amounts in np.unique(lacking, axis=0):
            nodes = np.flatnonzero((lacking == amounts).all(axis=1))
            if amounts.any() and (ways := self._on(nodes, amounts, False, none)):
                yield Row("", None, ways, 0, HORIZON, is_first=False)

    def _on(
        self, nodes: Ints, amounts: Ints, alone: bool, licences: tuple[int, ...]
    ) -> tuple[tuple[Chunks, Flags], ...]:
        """Return the only way to have amounts on each of some nodes; none if no node is in use."""
        usable = nodes[self.machine.site.is_usable[nodes]]
        if not len(usable) or not amounts.any():
            return ()
        there = np.zeros(len(self.supply.site.nodes), dtype=bool)
        there[usable] = True
        one = Chunks(len(usable), 1, tuple(amounts.tolist()), 0, alone, licences)
        return ((one, there),)

    @cached_property
    def limited(self) -> _limited.Limited | None:
        """What the rows take of limits, and what these have left; None if nothing is limited."""
        first, entries = [0], list[tuple[int, int, bool]]()
        number: dict[tuple[str, str, str], int] = {}
        left: list[int] = []

        def add(key: tuple[str, str, str], most: int, amount: int, binds: bool) -> None:
            if key not in number:
                number[key] = len(left)
                left.append(most)
            entries.append((number[key], amount, binds))

        running = Counter(job.array_id for job in self.queue.running)
        for row in self.rows:
            job = row.job
            if job is not None and (row.label or row.is_first):
                for key, (most, amount, binds) in self._counted(row, job).items():
                    add(key, most, amount, binds)
                if job.array_limit:
                    most = job.array_limit - running[job.array_id]
                    add((str(job.array_id), "array", ""), most, 1, bool(row.label))
            first.append(len(entries))
        if not left:
            return None
        limit, amount, binds = zip(*entries) if entries else ((), (), ())
        return _limited.Limited(
            np.array(first),
            np.array(limit, dtype=np.int64),
            np.array(amount, dtype=np.int64),
            np.array(binds, dtype=bool),
            np.array(left, dtype=np.int64),
            np.zeros(len(left), dtype=np.int64),
        )

    def _counted(
        self, row: Row, job: QueuedJob
    ) -> dict[tuple[str, str, str], tuple[int, int, bool]]:
        """Return by limit how much is left of it, how much a row takes, and whether it binds."""
        limits = self.supply.limits
        if not limits.known:
            return {}
        amounts, own = job.tres, own_qos_of(job, self.supply)
        binding = {limit.key for limit in limits.on(job, own[0])} if row.label and own else set()
        return {
            limit.key: (limit.most - limit.used, amount, limit.key in binding)
            for limit, amount in limits.counted(job, amounts, own, row.limit).items()
            if amount
        }


@dataclass
class _Order(PriorityOrder):
    """By tier, then by priority, which grows with age; the limits of QOS and accounts are kept."""

    future: Future | None = field(default=None, repr=False)

    def begin(self, system: System) -> None:
        """Compute the priorities now."""
        super().begin(system)
        future = self.future
        assert future is not None
        rows, now, settings = future.rows, future.supply.time, future.supply.settings
        # what runs is first
        base = [float(row.job.priority) if row.label and row.job else math.inf for row in rows]
        self._priority = np.array(base)
        since = [now if row.job is None else (row.job.eligible or now) for row in rows]
        self._age = now - np.array(since, dtype=np.float64)
        basic = settings.get("prioritytype", "").endswith("basic")
        weight = settings.get("priorityweightage", "0")
        self._weight = 0.0 if basic or not weight.isdecimal() else float(weight)
        self._longest = max(1.0, seconds_of(settings.get("prioritymaxage", "7-00:00:00")))
        self._limited = future.limited
        if self._limited is not None:
            self._limited = self._limited._replace(left=self._limited.left.copy())
        self._tried = np.zeros(len(rows), dtype=bool)

    def scores_now(self, jobs: NDArray[np.int64], system: System) -> Column:
        """Return minus the priority of each job."""
        before = np.clip(self._age[jobs], 0.0, self._longest)
        after = np.clip(self._age[jobs] + system.now, 0.0, self._longest)
        scores: Column = -self._priority[jobs] - self._weight * (after - before) / self._longest
        return scores

    def decide(self, system: System) -> Iterable[Action]:
        """Start and backfill jobs in order, those that limits let start."""
        limited, queues = self._limited, self._queues
        assert queues is not None
        if limited is None:
            yield from super().decide(system)
            return
        for job in system.ended:
            _limited.count(limited, job, -1)
        queues.hear(system)
        self._tried[:] = False
        while True:
            jobs = np.array(self._in_order(system), dtype=np.int64)
            kept = jobs[: _limited.within(limited, jobs, len(jobs), self._tried)].tolist()
            started = 0
            for action in queues.start_and_backfill(kept):
                yield action
                if isinstance(action, Start):
                    _limited.count(limited, action.job, 1)
                    started += 1
            self._tried[kept] = True
            if not started or len(kept) == len(jobs):
                return


class _Machine(SiteMachine):
    """The nodes of a site, whose jobs are those of a queue."""

    def __init__(self, site: Site, future: Future) -> None:
        super().__init__(site)
        self._future = future

    def demands(self, jobs: Mapping[str, NDArray[Any]]) -> Sequence[int]:
        """Return the number of the request of each row."""
        if not hasattr(self, "requests"):
            none = {name: np.zeros(0, dtype=np.int64) for name in ("processors", "requested_time")}
            self._stated = Requests(self.site, none)
            for row in self._future.rows:
                self._stated.add(row.ways)
            runs = [not row.label for row in self._future.rows]
            closing = self._future.supply.closing
            self._lines = _Queues(self.site, jobs, np.array(runs, dtype=bool), closing)
        self.serve(self._stated, self._lines)
        return self.requests.numbers


class _Queues(Queues):
    """The queues of the pending jobs, and one of what runs, which is before all others."""

    def __init__(
        self, site: object, jobs: Mapping[str, NDArray[object]], runs: Flags, closing: Floats
    ) -> None:
        super().__init__(site, jobs)
        self._closing = closing
        first = max(self.tier, default=0) + 1
        own = len(self.cells)
        self.of_job = [own if is_running else at for at, is_running in zip(self.of_job, runs)]
        self.tier = [first if is_running else at for at, is_running in zip(self.tier, runs)]
        self.reservation.append(RUNS)
        everywhere = np.ones((1, self.cells.shape[1]), dtype=bool)
        self.cells = np.concatenate((self.cells, everywhere))

    def windows(self, reservation: int, origin: float) -> Windows:
        """Return when nodes are closed to the jobs of a reservation, none for what runs."""
        found = super().windows(max(reservation, -1), origin)
        if reservation == RUNS:
            return Windows(*(part[:0] for part in found))
        times = np.unique(self._closing[np.isfinite(self._closing)])
        drains = Windows(
            times - origin,
            np.full(len(times), np.inf),
            np.ones(len(times), dtype=bool),
            self._closing == times[:, None],
        )
        return Windows(*(np.concatenate(parts) for parts in zip(found, drains)))


def _number(place: int, row: Row) -> int:
    """Return the number of a row in the trace: for the first row of a job that of the job."""
    return row.job.job_id if row.job is not None and row.is_first else BEYOND + place


def _whole(seconds: float) -> int:
    """Return a time of at most `HORIZON`."""
    return max(1, math.ceil(min(seconds, HORIZON)))
