"""The state of a site, and its page: what is free where, what could start, who waits and why."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Ints
from optsched.numbers import counted, moment, short
from optsched.report import style
from optsched.report.page import (
    Cell,
    Figure,
    Page,
    Part,
    Section,
    Table,
    Value,
    cell,
    duration,
    share,
)
from optsched.simulator.scenario import versions
from optsched.sites.job_request import CORES, MEMORY, UnplaceableError
from optsched.sites.site import some
from optsched.sites.slurm_notation import host_list
from optsched.slurm.defragmentation import Defragmentation, defragment
from optsched.slurm.order import age, tasks
from optsched.slurm.queue import ENDED, QueuedJob, SlurmQueue
from optsched.slurm.requests import alternatives
from optsched.slurm.running import supply_at
from optsched.slurm.supply import Supply
from optsched.traces.trace import SECONDS_PER_DAY, Trace

WEEK = 7 * SECONDS_PER_DAY

MONDAY = 3 * SECONDS_PER_DAY  # seconds from a Monday to the first second of 1970, a Thursday

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
class ClusterState:
    """The state of a site at one time."""

    queue: SlurmQueue
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
            cores = int(free[nodes, 0].max(initial=0))
            gpus = int(free[nodes, gpu].max(initial=0)) if gpu >= 0 else 0
            found.append(Largest(partition.name, min(whole, most), min(some, most), cores, gpus))
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
            with suppress(UnplaceableError):
                demand = alternatives(job, self.supply.idle)[0].demand
                if gpus := demand.get(GPU, 0):
                    asked.append((demand[CORES] / gpus, demand[MEMORY] / gpus))
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

    @cached_property
    def reasons(self) -> Mapping[str, int]:
        """Number of pending jobs and tasks by the reason that Slurm names, most first."""
        found: Counter[str] = Counter()
        for job in self.queue.pending:
            found[job.reason or "none"] += tasks([job])
        return dict(found.most_common())

    def waiting_by(self, name: str) -> list[tuple[str, int, int, float]]:
        """Return by ``user``, ``account`` or ``partitions``: jobs, nodes, longest age."""
        found: dict[str, list[QueuedJob]] = {}
        for job in self.queue.pending:
            value = getattr(job, name)
            found.setdefault(value if isinstance(value, str) else ",".join(value), []).append(job)
        rows = []
        for value, jobs in found.items():
            nodes = sum(tasks([job]) * job.shown_nodes for job in jobs)
            oldest = max(age(job, self.supply.time) for job in jobs)
            rows.append((value, tasks(jobs), nodes, float(oldest)))
        return sorted(rows, key=lambda row: -row[1])


class Past(NamedTuple):
    """Jobs that have ended, and those of the queue until now."""

    submit: NDArray[Any]  # seconds since 1970, shape (jobs,), as the next
    wait: NDArray[Any]  # seconds until the start, or until now; -1 where unknown
    runtime: NDArray[Any]  # seconds from then on, -1 for a job that has not started
    nodes: NDArray[Any]
    texts: Mapping[str, NDArray[Any]]  # by `COLUMNS`


COLUMNS = {"partition_name": "partition", "account": "account", "qos": "QOS"}
"""Columns of texts by which waits are listed, with their names on the page."""


def past(history: Trace, queue: SlurmQueue, now: int) -> Past:
    """Return the jobs of a trace that had ended by now, with those of the queue."""
    begun, none = history.header.unix_start_time or 0, np.full(len(history), "", dtype=object)
    asked = history.annotations.get("allocated_nodes", history.annotations.get("nodes"))
    held = np.ones(len(history)) if asked is None else np.maximum(asked, 1)
    ended: list[NDArray[Any]] = [history.submit + begun, history.wait, history.runtime, held]
    ended += (history.texts.get(name, none) for name in COLUMNS)
    # sacct may have been asked later than squeue, whose jobs then are in both
    own = ended[0] + np.maximum(ended[1], 0) + ended[2] <= now
    rows: list[tuple[Any, ...]] = []
    for job in queue.jobs:
        start = now if job.state == "PENDING" else job.start
        if job.state not in ENDED and job.submit is not None and start is not None:
            ran = -1 if job.state == "PENDING" else now - start
            named = ",".join(job.partitions), job.account, job.qos
            rows.append((job.submit, start - job.submit, ran, len(job.nodes), *named))
    added = zip(*rows) if rows else ((),) * len(ended)
    submit, wait, runtime, nodes, *texts = (
        np.concatenate((column[own], np.array(more, column.dtype)))
        for column, more in zip(ended, added)
    )
    return Past(submit, wait, runtime, nodes, dict(zip(COLUMNS, texts)))


def weekly_waits(jobs: Past, column: str) -> list[Waits]:
    """Return the waits of each week by a column of texts, the last weeks first."""
    known = (jobs.wait >= 0) & (jobs.runtime >= 0)
    weeks = _monday(jobs.submit + jobs.wait)
    found: dict[tuple[float, str], list[float]] = {}
    for week, name, wait in zip(
        weeks[known].tolist(), jobs.texts[column][known].tolist(), jobs.wait[known].tolist()
    ):
        found.setdefault((week, name), []).append(wait)
    rows = [
        Waits(week, name, len(waits), *np.quantile(waits, (0.5, 0.9)).tolist())
        for (week, name), waits in found.items()
    ]
    return sorted(rows, key=lambda row: (-row.week, row.name))


def idle_while_waiting(jobs: Past, nodes: int) -> list[tuple[float, float, float]]:
    """Return for each week its hours in which jobs waited, and idle node-hours then.

    Nodes that jobs share count for each of them, so that idle nodes may be more than stated.
    """
    start = jobs.submit + np.maximum(jobs.wait, 0)
    end = start + np.maximum(jobs.runtime, 0)
    events = np.concatenate((jobs.submit, start, end))
    order = np.argsort(events, kind="stable")
    ones, none = np.ones(len(start)), np.zeros(len(start))
    waiting = np.cumsum(np.concatenate((ones, -ones, none))[order])
    busy = np.cumsum(np.concatenate((none, jobs.nodes, -jobs.nodes))[order])
    times = events[order]
    hours = np.diff(times) / 3600
    waits = waiting[:-1] > 0
    idle = np.maximum(nodes - busy[:-1], 0)
    week, found = _monday(times[:-1]), []
    for one in np.unique(week)[::-1].tolist():
        inside = (week == one) & waits
        found.append((one, float(hours[inside].sum()), float((hours * idle)[inside].sum())))
    return found


def _monday(times: NDArray[Any]) -> NDArray[np.float64]:
    """Return the first second of the week of each time, in UTC."""
    found: NDArray[np.float64] = np.floor((times + MONDAY) / WEEK) * WEEK - MONDAY
    return found


MOST_BARS = 40  # most groups of nodes in a picture
MOST_MOVES = 20  # most moves of running jobs that are listed one by one
WEEKS = 12  # most weeks of a table


def page(state: ClusterState, history: Trace | None, source: Path | str | None = None) -> Page:
    """Return the page of a state, and with jobs that have ended also of the weeks before.

    `source`: the folder with captured output, as the user gave it; None for the Slurm of now.
    """
    captured = "" if source is None else f" --from {quote(str(source))}"
    sections = [
        Section("What is free", list(_free(state))),
        Section("What could start now", list(_largest(state))),
        Section("What a defragmentation would win", list(_defragmentation(state))),
        Section("Reservations", list(_reservations(state))),
        Section("Who waits", list(_waits(state))),
    ]
    if history is not None and len(history):
        sections.append(Section("The weeks before", list(_weeks(state, history))))
    return Page(
        title=f"{state.supply.site.name} on {moment(state.supply.time, is_short=True)}",
        lead=_lead(state),
        sections=[section for section in sections if section.parts],
        repeat=f"optsched slurm report{captured} -o report.html",
        versions=versions(),
        summary=[*state.supply.notes, *state.queue.notes],
    )


def _lead(state: ClusterState) -> str:
    """Return the finding: idle nodes, waiting jobs, the largest job that could start."""
    site, waiting = state.everywhere, sum(state.reasons.values())
    words = [
        f"{site.idle:,} of {counted(site.in_service, 'node')} in service "
        f"{'is' if site.idle == 1 else 'are'} idle, and "
        f"{counted(waiting, 'job')} {'waits' if waiting == 1 else 'wait'}."
    ]
    if state.largest:
        most = max(state.largest, key=lambda one: (one.whole_nodes, one.nodes))
        words.append(
            f"The largest job that could start now has {counted(most.whole_nodes, 'whole node')}, "
            f"in partition {most.partition}."
        )
    if state.stranded:
        total = sum(state.stranded.values())
        what = " and ".join(state.stranded)
        words.append(f"Of {counted(total, 'free GPU')}, nodes lack {what} for any job.")
    if state.defragmentation.won:
        words.append(_won(state.defragmentation))
    return " ".join(words)


def _free(state: ClusterState) -> Iterator[Part]:
    names = state.supply.site.resources
    leaves = sorted(state.by_leaf, key=lambda group: (-group.idle, group.name))
    if leaves:
        shown = leaves[:MOST_BARS]
        what = "leaf switches or blocks" if leaves[1:] else "the leaf switch or block"
        title = f"Cores by leaf switch: in use, and free, of {what}"
        wide, narrow = (_drawn(shown, width) for width in (9.17, 3.75))
        free = sum(int(group.free[0]) for group in shown)
        caption = f"{title}: {free:,} cores are free."
        yield Figure("free-by-leaf", wide, caption, f"{title}.", narrow=narrow)
        yield _groups("Leaf switches, those with most idle nodes first.", "leaf", leaves, names)
    yield _groups("Partitions.", "partition", state.by_partition, names)


def _groups(caption: str, label: str, groups: Sequence[Group], names: Sequence[str]) -> Table:
    whole = [place for place, name in enumerate(names) if ":" not in name]
    columns: list[str | tuple[str, str]] = [label, "nodes", "in service", "idle"]
    columns += [("free", "memory, GB" if name == MEMORY else name) for name in names]
    columns += [("share that is free", names[place]) for place in whole]
    rows = list[list[Value]]()
    for group in groups:
        free, total = group.free.tolist(), group.total.tolist()
        amounts = (many // 1024 if name == MEMORY else many for name, many in zip(names, free))
        shares = (share(free[at] / total[at]) if total[at] else cell(None) for at in whole)
        rows.append([*group[:4], *amounts, *shares])
    return Table(caption, columns, rows)


def _largest(state: ClusterState) -> Iterator[Part]:
    rows: list[list[Value]] = [[*one] for one in state.largest]
    yield Table(
        "Largest job that could start now by partition: most whole nodes, most nodes with a free "
        "core, most cores and GPUs on one node.",
        ["partition", "whole nodes", "nodes", "cores on a node", "GPUs on a node"],
        rows,
    )
    if state.stranded:
        words = [f"{count:,} for want of {name}" for name, count in state.stranded.items()]
        yield (
            f"Stranded GPUs: {', '.join(words)}. Their nodes have less for each free GPU than the "
            "least that any job of the queue asks for one."
        )


def _won(found: Defragmentation) -> str:
    more = f"{found.won:,} more whole {'node' if found.won == 1 else 'nodes'}"
    return f"{more} would be idle if {counted(found.jobs, 'running job')} could be moved."


def _defragmentation(state: ClusterState) -> Iterator[Part]:
    """Yield what moves of running jobs would win, what of that is proven, and the moves."""
    found = state.defragmentation
    yield " ".join(_proven(found))
    if found.moves:
        place = state.supply.site.index
        moves = sorted(found.moves, key=lambda move: place[move.source])
        left = len(moves) - MOST_MOVES
        rest = f" {counted(left, 'more move')} {'is' if left == 1 else 'are'} not listed."
        rows: list[list[Value]] = [
            [move.job.label, move.job.user, ",".join(move.job.partitions), move.source, move.target]
            for move in moves[:MOST_MOVES]
        ]
        yield Table(
            f"Moves of what a job has on a node, by the node that it leaves.{rest * (left > 0)}",
            ["job", "user", "partition", "from", "to"],
            rows,
        )
    if found.stay:
        yield Table(
            "Running jobs that are taken to stay where they are, by the reason.",
            ["reason", "jobs"],
            [[reason, count] for reason, count in found.stay.items()],
        )
    if found.unclear:
        yield (
            f"On {counted(found.unclear, 'node')} more or less is in use than the jobs there hold "
            "that are shown: nothing is moved from there or to there."
        )


def _proven(found: Defragmentation) -> Iterator[str]:
    """Yield what moves would win, in sentences, each of them with what is proven."""
    if found.too_large:
        yield (
            f"This is not computed: {counted(found.movable, 'running job')} of too many different "
            "sizes could be moved."
        )
    elif not found.movable:
        yield "No running job could be moved."
    elif not found.most:
        yield "Moving running jobs would not win a whole node: that is proven."
    elif not found.won:
        yield (
            "No moves of running jobs were found that win a whole node; it is proven that no more "
            f"than {counted(found.most, 'node')} could be won."
        )
    else:
        more = len(found.emptied) - found.won
        then = f", and takes {counted(more, 'node')} that {'is' if more == 1 else 'are'} idle now"
        yield f"{_won(found)} That empties {some(found.emptied)}{then * (more > 0)}."
        if found.won < found.most:
            yield f"It is proven that no more than {counted(found.most, 'node')} could be won."
        elif found.jobs > found.fewest:
            yield (
                "It is proven that no moves win more, and that as much takes moves of at least "
                f"{counted(found.fewest, 'job')}."
            )
        else:
            yield "It is proven that no moves win more, and that no fewer jobs win as much."
        yield (
            "This is advice: nothing is done, and Slurm itself moves no running job. All moves "
            "together fit; jobs keep their amounts on each node, and go where partition, features "
            "and the states of nodes allow it."
        )


def _reservations(state: ClusterState) -> Iterator[Part]:
    rows: list[list[Value]] = []
    for each in sorted(state.supply.reservations, key=lambda one: (one.start, one.name)):
        whom = (f"{kind.replace('_', ' ')} {', '.join(them)}" for kind, them in each.admits.items())
        kept = (f"{count:,} {name}" for name, count in each.licences.items())
        first = f"always in {short(each.ahead)}" if each.ahead is not None else _known(each.start)
        nodes: list[Value] = [len(each.nodes), host_list(each.nodes)]
        texts = ", ".join(kept), "; ".join(whom), ", ".join(each.flags)
        rows.append([each.name, first, _known(each.end), *nodes, *texts])
    if rows:
        yield Table(
            "Reservations, the first ones first; a dash for a time that is not known.",
            ["reservation", "from", "to", "nodes", "which", "licences", "for", "flags"],
            rows,
        )


def _known(seconds: float) -> Value:
    """Return a time; none where it is not finite."""
    return Cell(moment(seconds, is_short=True), seconds) if math.isfinite(seconds) else None


def _waits(state: ClusterState) -> Iterator[Part]:
    if not state.reasons:
        yield "No job waits."
        return
    yield Table(
        "Jobs, and tasks of job arrays, by the reason that Slurm names.",
        ["reason", "jobs"],
        [[name, count] for name, count in state.reasons.items()],
    )
    for name, label in (("partitions", "partition"), ("account", "account"), ("user", "user")):
        rows: list[list[Value]] = [
            [value or "-", jobs, nodes, duration(age)]
            for value, jobs, nodes, age in state.waiting_by(name)
        ]
        yield Table(
            f"Waiting jobs by {label}: how many, nodes as squeue counts them, longest age.",
            [label, "jobs", "nodes", "longest age"],
            rows,
        )


def _weeks(state: ClusterState, history: Trace) -> Iterator[Part]:
    jobs = past(history, state.queue, state.supply.time)
    idle = idle_while_waiting(jobs, len(state.supply.site.nodes))[:WEEKS]
    yield Table(
        "By week: hours in which some job waited, and node-hours that were idle then.",
        ["week from (UTC)", "hours with waiting jobs", "idle node-hours", "idle nodes then"],
        [
            [_week(week), round(hours, 1), round(unused), unused / hours if hours else None]
            for week, hours, unused in idle
        ],
    )
    for column, label in COLUMNS.items():
        waits = weekly_waits(jobs, column)
        first = waits[0].week - WEEKS * WEEK if waits else 0.0
        rows: list[list[Value]] = [
            [_week(each.week), each.name or "-", each.jobs, *map(duration, each[3:])]
            for each in waits
            if each.week > first
        ]
        yield Table(
            f"Waits of the jobs that started in a week, those that still run too, by {label}: "
            "median, and the longest tenth above.",
            ["week from (UTC)", label, "jobs", "median wait", "longest tenth from"],
            rows,
        )


def _week(seconds: float) -> Cell:
    return Cell(datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d"), seconds)


@style.applied()
def _drawn(groups: Sequence[Group], width: float) -> str:
    """Return a picture of the cores of groups of nodes, in use and free, for a page or a phone."""
    from matplotlib.figure import Figure as Canvas

    figure = Canvas((width, 0.8 + 0.22 * len(groups)), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(groups))
    free = np.array([group.free[0] for group in groups])
    used = np.array([group.total[0] for group in groups]) - free
    axes.barh(places, used, color=style.FAINT, label="in use")
    axes.barh(places, free, left=used, color=style.FILLS[0], label="free")
    axes.set(yticks=places, yticklabels=[group.name for group in groups], xlabel="cores")
    axes.invert_yaxis()
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    with tempfile.TemporaryDirectory(prefix="optsched-") as folder:
        path = Path(folder) / "picture.svg"
        style.save_as(figure, path)
        return path.read_text(encoding="utf-8")
