"""The state of a site in figures: what is free where, what could start, who waits and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.sites.parts import Ints
from optsched.slurm.access import open_partitions
from optsched.slurm.defragmentation import Defragmentation, defragment
from optsched.slurm.order import age, tasks
from optsched.slurm.queue import LeftToSlurmError, Queue, QueuedJob
from optsched.slurm.requests import Request, alternatives
from optsched.slurm.running import supply_at
from optsched.slurm.supply import CORES, MEMORY, Flags, Supply
from optsched.traces.trace import SECONDS_PER_DAY, Trace

WEEK = 7 * SECONDS_PER_DAY

MONDAY = 3 * SECONDS_PER_DAY
"""Seconds from a Monday to the first second of 1970, a Thursday."""

GPU = "gpu"


class Group(NamedTuple):
    """What a group of nodes has, and what of it is free."""

    name: str
    nodes: int
    in_service: int  # nodes that are up
    idle: int  # of these without jobs
    total: Ints  # amounts of the resources of nodes in service, shape (resources,)
    free: Ints


class Largest(NamedTuple):
    """The largest job that could start now in a partition."""

    partition: str
    whole_nodes: int  # most nodes of which it could have all
    nodes: int  # most nodes of which it could have a core
    cores: int  # most cores on one node
    gpus: int  # most GPUs on one node


class Waits(NamedTuple):
    """Waits of the jobs that started in a week, of one partition, account or QOS."""

    week: float  # first second of the week, since 1970
    name: str
    jobs: int
    median: float  # seconds, as the next
    longest_tenth: float


@dataclass(frozen=True, eq=False)
class State:
    """The state of a site at one time."""

    queue: Queue
    supply: Supply

    @cached_property
    def now(self) -> Supply:
        """What is free now, as running jobs allow others."""
        return supply_at(self.supply, self.queue, self.supply.time)

    @cached_property
    def _in_service(self) -> Flags:
        return np.isin(self.supply.site.states, ("up", "reserved"))

    @cached_property
    def _reserved(self) -> Flags:
        """Whether each node is in a reservation now."""
        now = (each for each in self.supply.reservations if each.at(self.supply.time))
        return np.isin(self.supply.site.nodes, [name for each in now for name in each.nodes])

    def _free(self) -> Ints:
        free: Ints = np.where(self.now.taken[:, None], 0, self.now.free)
        return free

    def _group(self, name: str, nodes: NDArray[np.int64]) -> Group:
        up = nodes[self._in_service[nodes]]
        idle = up[~self.now.busy[up]]
        total = self.supply.site.capacity[up].sum(axis=0)
        return Group(name, len(nodes), len(up), len(idle), total, self._free()[up].sum(axis=0))

    @cached_property
    def everywhere(self) -> Group:
        """The whole site."""
        return self._group("all", np.arange(len(self.supply.site.nodes)))

    @cached_property
    def by_partition(self) -> tuple[Group, ...]:
        """The partitions, in the order of the site."""
        return tuple(self._group(each.name, each.nodes) for each in self.supply.site.partitions)

    @cached_property
    def by_leaf(self) -> tuple[Group, ...]:
        """The leaf switches, or blocks; none where the site has neither."""
        groups = self.supply.switches or self.supply.blocks
        if groups is None:
            return ()
        names = np.array(groups, dtype=object)
        return tuple(
            self._group(str(name), np.flatnonzero(names == name)) for name in np.unique(names)
        )

    @cached_property
    def largest(self) -> tuple[Largest, ...]:
        """The largest jobs that could start now, by partition."""
        free, site, found = self._free(), self.supply.site, []
        gpu = site.resources.index(GPU) if GPU in site.resources else -1
        for partition in site.partitions:
            nodes = partition.nodes[(self._in_service & ~self._reserved)[partition.nodes]]
            whole = int((~self.now.busy[nodes] & (free[nodes, 0] > 0)).sum())
            some = whole if partition.exclusive else int((free[nodes, 0] > 0).sum())
            most = int(min(partition.max_nodes, len(nodes)))
            found.append(
                Largest(
                    partition.name,
                    min(whole, most),
                    min(some, most),
                    int(free[nodes, 0].max(initial=0)),
                    int(free[nodes, gpu].max(initial=0)) if gpu >= 0 else 0,
                )
            )
        return tuple(found)

    @cached_property
    def defragmentation(self) -> Defragmentation:
        """What moving running jobs would win."""
        return defragment(self.queue, self.now, self.supply.site.is_up & ~self._reserved)

    @cached_property
    def stranded(self) -> Mapping[str, int]:
        """Free GPUs that no job of the queue could use, by what their node lacks.

        A node lacks cores or memory where it has less for each free GPU than the least that any job
        of the queue asks for one.
        """
        site, free = self.supply.site, self._free()
        if GPU not in site.resources:
            return {}
        gpus = free[:, site.resources.index(GPU)]
        least = self._least_for_gpu
        found: Counter[str] = Counter()
        left = gpus.copy()
        for place, name in ((0, CORES), (1, MEMORY)):
            if least[place]:
                usable = np.minimum(left, free[:, place] // least[place])
                found[name] += int((left - usable).sum())
                left = usable
        return {name: count for name, count in found.items() if count}

    @cached_property
    def _least_for_gpu(self) -> tuple[int, int]:
        """The least cores and memory that a job of the queue asks for each of its GPUs."""
        asked = []
        for job in self.queue.pending:
            request = self._request(job)
            if request is not None and (gpus := request.demand.get(GPU, 0)):
                asked.append((request.demand[CORES] / gpus, request.demand[MEMORY] / gpus))
        for job in self.queue.running:
            asked += [
                (each.cores / gpus, each.memory / gpus)
                for each in job.allocations
                if (gpus := each.gres.get(GPU, 0))
            ]
        if not asked:
            return 1, 0
        cores, memory = zip(*asked)
        return max(1, math.ceil(min(cores))), math.ceil(min(memory))

    def _request(self, job: QueuedJob) -> Request | None:
        if not open_partitions(job, self.supply.idle):
            return None
        try:
            return alternatives(job, self.supply.idle)[0]
        except LeftToSlurmError:
            return None

    @cached_property
    def reasons(self) -> Mapping[str, int]:
        """Number of pending jobs and tasks by the reason that Slurm names, most first."""
        found: Counter[str] = Counter()
        for job in self.queue.pending:
            found[job.reason or "none"] += tasks([job])
        return dict(found.most_common())

    def waiting_by(self, name: str) -> list[tuple[str, int, int, float]]:
        """Return by ``user``, ``account`` or ``partitions``: jobs, nodes asked for, longest age."""
        found: dict[str, list[QueuedJob]] = {}
        for job in self.queue.pending:
            value = getattr(job, name)
            found.setdefault(value if isinstance(value, str) else ",".join(value), []).append(job)
        rows = [
            (
                value,
                tasks(jobs),
                sum(tasks([job]) * job.least_nodes for job in jobs),
                float(max(age(job, self.supply.time) for job in jobs)),
            )
            for value, jobs in found.items()
        ]
        return sorted(rows, key=lambda row: -row[1])


def weekly_waits(history: Trace, column: str) -> list[Waits]:
    """Return the waits of each week by a column of texts of a trace, the last weeks first."""
    begun = history.header.unix_start_time or 0
    starts = history.submit + np.maximum(history.wait, 0) + begun
    known = (history.wait >= 0) & (history.runtime >= 0)
    names = history.texts.get(column, np.full(len(history), "", dtype=object))
    found: dict[tuple[float, str], list[float]] = {}
    weeks = _monday(starts)
    for week, name, wait in zip(
        weeks[known].tolist(), names[known].tolist(), history.wait[known].tolist()
    ):
        found.setdefault((week, name), []).append(wait)
    rows = [
        Waits(week, name, len(waits), *np.quantile(waits, (0.5, 0.9)).tolist())
        for (week, name), waits in found.items()
    ]
    return sorted(rows, key=lambda row: (-row.week, row.name))


def idle_while_waiting(history: Trace, nodes: int) -> list[tuple[float, float, float]]:
    """Return for each week its hours in which jobs waited, and idle node-hours then.

    Nodes that jobs share count for each of them, so that idle nodes may be more than stated.
    """
    begun = history.header.unix_start_time or 0
    wait = np.maximum(history.wait, 0)
    submit = history.submit + begun
    start = submit + wait
    end = start + np.maximum(history.runtime, 0)
    asked = history.annotations.get("allocated_nodes", history.annotations.get("nodes"))
    held = np.ones(len(history)) if asked is None else np.maximum(asked, 1)
    events = np.concatenate((submit, start, end))
    order = np.argsort(events, kind="stable")
    ones, none = np.ones(len(history)), np.zeros(len(history))
    waiting = np.cumsum(np.concatenate((ones, -ones, none))[order])
    busy = np.cumsum(np.concatenate((none, held, -held))[order])
    times = events[order]
    hours = np.diff(times) / 3600
    waits = waiting[:-1] > 0
    idle = np.maximum(nodes - busy[:-1], 0)
    week = _monday(times[:-1])
    return [
        (
            float(one),
            float(hours[(week == one) & waits].sum()),
            float((hours * idle)[(week == one) & waits].sum()),
        )
        for one in np.unique(week)[::-1].tolist()
    ]


def _monday(times: NDArray[Any]) -> NDArray[np.float64]:
    """Return the first second of the week of each time, in UTC."""
    found: NDArray[np.float64] = np.floor((times + MONDAY) / WEEK) * WEEK - MONDAY
    return found


def largest_first(groups: Sequence[Group]) -> list[Group]:
    """Return groups, those with most idle nodes first."""
    return sorted(groups, key=lambda group: (-group.idle, group.name))
