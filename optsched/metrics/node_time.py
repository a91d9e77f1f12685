"""The breakdown of the node time of a torus whose jobs hold boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from optsched.arrays import Flags, Floats, Ints, Words
from optsched.boxes._rows import Sides, Wrap, fill
from optsched.boxes.box import Box
from optsched.boxes.free_boxes import largest_box
from optsched.compiled import kernel
from optsched.machines.machine import Machine
from optsched.machines.torus import Torus
from optsched.metrics.fragmentation import EXTERNAL
from optsched.metrics.jobs import least_large
from optsched.metrics.measure import Group, Measure, Metric, measures_in
from optsched.registry import metrics
from optsched.schedule import Schedule, State
from optsched.traces.trace import Trace


@kernel
def free_box_holds(
    # The routers that are free before the first instant, as rows of bits; overwritten, shape
    # (X, Y)
    words: Words,
    # Boxes that are released or allocated: columns x, y, z, nx, ny, nz, shape (changes, 6)
    boxes: Ints,
    releases: Flags,  # whether the box is released, shape (changes,)
    # The changes of instant i are those from ``changes[i]`` up to ``changes[i + 1]``, shape
    # (instants + 1,)
    changes: Ints,
    # Routers that are needed from each instant on; 0 for no request, shape (instants,)
    needs: Ints,
    side: int,
    wrap: Wrap,  # whether each dimension wraps around
    longest: Sides,  # the longest sides of a box besides whole dimensions
) -> Flags:
    """Return for each instant whether a free box has the ``needs`` routers; False for no need."""
    holds = np.zeros(len(needs), dtype=np.bool_)
    above_all = words.size * side + 1
    # some free box has `has` routers, and no free box has `lacks`
    has, lacks = 0, above_all
    for instant in range(len(needs)):
        for change in range(changes[instant], changes[instant + 1]):
            fill(words, boxes[change], side, releases[change])
            if releases[change]:
                lacks = above_all
            else:
                has = 0
        need = needs[instant]
        if has < need < lacks:
            if largest_box(words, need - 1, need, side, wrap, longest)[3] > 0:
                has = need
            else:
                lacks = need
        holds[instant] = 0 < need <= has
    return holds


OCCUPIED = 80  # percentage of held nodes at which the recorded time begins

PARTS = ("running", "migrating", "internal", "fragmented", "drained", "undecided", "unwanted")
"""Parts of node time, first those of held nodes; see `NodeTime`."""


@metrics.register("node-time")
@dataclass(frozen=True, eq=False)
class NodeTime(Metric):
    """The nodes of a torus over time, and the parts of its node time.

    A node that a job holds is

    ``running``
        if the job requested it and makes progress,
    ``migrating``
        if the job requested it and is stopped by a migration,
    ``internal``
        if the job holds it beyond its request: internal fragmentation.

    A free node is

    ``fragmented``
        if enough routers are free for the queue head, but no free box holds that job: external
        fragmentation,
    ``drained``
        if too few routers are free for the queue head,
    ``undecided``
        if a free box holds the queue head, which waits for the next decision or was passed over,
    ``unwanted``
        if no job waits.

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive queue
    scanning and migration-based job placement", JSSPP 2015, sections 1 (``fragmented`` and
    ``drained`` are its two scenarios of system drainage) and 7 (the recorded time).
    """

    # Instants of changes in seconds, from the first submission to the last end, shape
    # (instants,)
    time: Floats
    # Nodes in boxes of jobs and running nodes, from each instant to the next, shape
    # (instants,)
    held: Ints
    running: Ints
    nodes: int  # nodes of the machine
    # Shares of the parts in all node time, which add up to 1. Empty if no job ran.
    shares: Mapping[str, float]
    # The recorded time in seconds: from the first instant at which 80 % of the nodes are held
    # to the last submission, after which the machine empties. None if there is no such time.
    recorded: tuple[float, float] | None
    # Shares of the parts in the node time of the recorded time; empty if `recorded` is None
    recorded_shares: Mapping[str, float]
    # Seconds for which each large job was the queue head; nan if a job never was, because it
    # never started or started before a job that was submitted earlier, shape (large jobs,)
    drain: Floats

    measures: ClassVar[dict[str, Measure]] = measures_in(
        Group.MACHINE,
        occupied=("nodes held", "share",
            "Mean share of the nodes that jobs hold, over the recorded time."),
        useful=("nodes running", "share",
            "Mean share of the nodes that jobs requested and that make progress, over the recorded"
            " time."),
        recorded_from=("recorded time, begin", "trace time",
            "First instant at which 80% of the nodes are held, in the time of the trace."),
        recorded_until=("recorded time, end", "trace time",
            "Last submission, after which the machine empties, in the time of the trace."),
        recorded_held=("time in which they are held", "share",
            "Share of the recorded time in which so many nodes are held, in steps of 5%.",
            "nodes, from (%)"),
        recorded_running=("time in which they run", "share",
            "Share of the recorded time in which so many nodes run, in steps of 5%.",
            "nodes, from (%)"),
    )  # fmt: skip
    measures |= measures_in(
        Group.PLACEMENT,
        internal_fragmentation=("internal fragmentation", "share",
            "Share of the node time that jobs hold in nodes of their boxes beyond their requests."),
        external_fragmentation=EXTERNAL,
        drained=("drained", "share",
            "Share of the node time that was free while too few routers were free for the queue"
            " head."),
        node_time=("node time", "share",
            "Parts of the node time from the first submission to the last end, which add up to 1.",
            "part"),
        recorded_node_time=("recorded node time", "share",
            "Parts of the node time of the recorded time, which add up to 1.", "part"),
    )  # fmt: skip
    measures |= measures_in(
        Group.LARGE,
        large_at_head=("large jobs as queue head", "jobs",
            "Large jobs that were the queue head before they started."),
        large_mean_drain=("mean time as queue head", "seconds",
            "Mean time for which a large job was the queue head, over those that were."),
        large_max_drain=("longest time as queue head", "seconds",
            "Longest time for which a large job was the queue head."),
    )  # fmt: skip

    @classmethod
    def measure(
        cls, trace: Trace, machine: Machine, schedule: Schedule, large_from: int | None
    ) -> NodeTime | None:
        """Measure the boxes of a torus; None on other machines, and where jobs hold no boxes."""
        if not isinstance(machine, Torus) or not machine.holds_boxes:
            return None
        return node_time(trace, machine, schedule, large_from)

    def histogram(self, levels: int = 20) -> tuple[Floats, Floats]:
        """Return the distributions of the numbers of held and of running nodes over time.

        `levels`: number of levels of equal width from 0 to all nodes, which belong to the last
        level. The shares of the recorded time add up to 1; without recorded time all are 0.
        """
        if self.recorded is None:
            return np.zeros(levels), np.zeros(levels)
        begin, end = np.searchsorted(self.time, self.recorded)
        spans = np.diff(self.time[begin : end + 1])
        held, running = (
            np.bincount(
                np.minimum(nodes[begin:end] * levels // self.nodes, levels - 1), spans, levels
            )
            / spans.sum()
            for nodes in (self.held, self.running)
        )
        return held, running

    def summary(self) -> dict[str, Any]:
        """Return the figures of `measures`, JSON-able; levels that do not occur are left out."""
        shares, recorded = dict(self.shares), dict(self.recorded_shares)
        if not shares:
            return {}
        held = _held(shares)
        drain = self.drain[np.isfinite(self.drain)]
        begin, end = (None, None) if self.recorded is None else self.recorded
        return {
            "occupied": _held(recorded) if recorded else None,
            "useful": recorded["running"] if recorded else None,
            "recorded_from": begin,
            "recorded_until": end,
            "internal_fragmentation": shares["internal"] / held,
            "external_fragmentation": shares["fragmented"],
            "drained": shares["drained"],
            "large_at_head": len(drain),
            "large_mean_drain": float(drain.mean()) if len(drain) else None,
            "large_max_drain": float(drain.max()) if len(drain) else None,
            "node_time": shares,
            "recorded_node_time": recorded,
            **dict(zip(("recorded_held", "recorded_running"), map(_by_level, self.histogram()))),
        }


def node_time(
    trace: Trace, torus: Torus, schedule: Schedule, large_from: int | None = None
) -> NodeTime:
    """Follow the boxes of a torus through a schedule.

    `torus`: the machine, of at most 64 routers along Z; `schedule`: starts, ends and resources of
    the jobs; the resources of a job are all nodes of its box; `large_from`: number of processors
    from which a job is large; by default that of the largest tenth.
    """
    submit, nodes = trace.submit.astype(np.float64), torus.size
    waits_until = _waiting_ends(schedule)
    drain = _time_at_head(submit, waits_until)
    drain = drain[trace.processors >= least_large(trace, large_from)]
    if not np.isfinite(schedule.end).any():
        empty = np.zeros(0, np.int64)
        return NodeTime(empty.astype(np.float64), empty, empty, nodes, {}, None, {}, drain)
    stays = stays_of(torus, schedule, schedule.end)
    time = np.unique(np.concatenate((submit, stays.since, stays.resumes, stays.until)))
    time = time[time <= stays.until.max()]
    requested = trace.processors[stays.job]
    boxes = stays.box[:, 3:].prod(axis=1) * torus.nodes_per_router
    held = _over_time(time, stays.since, stays.until, boxes)
    running = _over_time(time, stays.resumes, stays.until, requested)
    migrating = _over_time(time, stays.since, stays.resumes, requested)
    free = nodes - held
    needed = -(-_head_sizes(trace, waits_until, time) // torus.nodes_per_router)
    waits = needed > 0
    enough = waits & (needed * torus.nodes_per_router <= free)
    fits = _fits(torus, stays, time, np.where(enough, needed, 0))
    parts = [running, migrating, held - running - migrating]
    parts += [free * why for why in (enough & ~fits, waits & ~enough, fits, ~waits)]

    def shares(begin: int, end: int) -> dict[str, float]:
        spans = np.diff(time[begin : end + 1])
        total = nodes * spans.sum()
        # not by `@`, whose last digits depend on the number of threads of the linear algebra
        sums = ((part[begin:end] * spans).sum() for part in parts)
        return {name: float(part / total) for name, part in zip(PARTS, sums)}

    begin = int(np.argmax(held * 100 >= OCCUPIED * nodes))
    end = int(np.searchsorted(time, min(submit[-1], time[-1])))
    reached = held[begin] * 100 >= OCCUPIED * nodes and begin < end
    return NodeTime(
        time=time,
        held=held,
        running=running,
        nodes=nodes,
        shares=shares(0, len(time) - 1),
        recorded=(float(time[begin]), float(time[end])) if reached else None,
        recorded_shares=shares(begin, end) if reached else {},
        drain=drain,
    )


def _waiting_ends(schedule: Schedule) -> Floats:
    """Return the end of each job's wait: -inf if a job never waits, inf if it never starts."""
    never = (schedule.state == State.REJECTED) | (schedule.state == State.UNSUBMITTED)
    started = np.isfinite(schedule.start)
    return np.where(started, schedule.start, np.where(never, -np.inf, np.inf))


def _time_at_head(submit: Floats, waits_until: Floats) -> Floats:
    """Return the seconds for which each job that started was the queue head; nan if never."""
    passed = np.maximum.accumulate(waits_until)
    comes = np.maximum(submit, np.append(-np.inf, passed[:-1]))
    was_head = np.isfinite(waits_until) & (waits_until >= comes)
    drain = np.full(len(submit), np.nan)
    drain[was_head] = waits_until[was_head] - comes[was_head]
    return drain


def _head_sizes(trace: Trace, waits_until: Floats, time: Floats) -> Ints:
    """Return the processors of the queue head from each instant on; 0 if no job waits."""
    passed = np.maximum.accumulate(waits_until)
    head = np.minimum(np.searchsorted(passed, time, side="right"), len(trace) - 1)
    waits = (trace.submit[head] <= time) & (passed[head] > time)
    sizes: Ints = np.where(waits, trace.processors[head], 0)
    return sizes


class Stays(NamedTuple):
    """Stays of jobs in boxes, one row for each box that a job held, by job and time.

    A stay is from `since` to `until`. From `since` to `resumes` the job is stopped by the migration
    to the box. The arrays have shape (stays,), `box` has (stays, 6).
    """

    job: Ints
    since: Floats
    resumes: Floats
    until: Floats
    box: Ints

    def before(self, now: float) -> dict[int, Box]:
        """Return the boxes that jobs hold just before an instant, by job."""
        return self._boxes((self.since < now) & (self.until >= now))

    def after(self, now: float) -> dict[int, Box]:
        """Return the boxes that jobs hold from an instant on, by job."""
        return self._boxes((self.since <= now) & (self.until > now))

    def _boxes(self, rows: Flags) -> dict[int, Box]:
        boxes = [Box(*box) for box in self.box[rows].tolist()]
        return dict(zip(self.job[rows].tolist(), boxes))

    def fullest(self, begin: float, end: float) -> float:
        """Return the first time of a period at which the most routers are held, in seconds."""
        routers = self.box[:, 3:].prod(axis=1)
        instants, change = np.unique(np.append(self.since, self.until), return_inverse=True)
        held = np.append(0, np.cumsum(np.bincount(change, np.append(routers, -routers))))
        instants = np.append(-np.inf, instants)
        first = np.searchsorted(instants, begin, side="right") - 1
        shown = slice(first, np.searchsorted(instants, end))
        return max(begin, float(instants[shown][held[shown].argmax()]))


def stays_of(torus: Torus, schedule: Schedule, end: Floats) -> Stays:
    """Return the stays of the jobs with a finite end; `end` has shape (jobs,)."""
    start = schedule.start
    ran = np.flatnonzero(np.isfinite(end))
    moves = [one for one in schedule.migrations if np.isfinite(end[one.job])]
    job = np.append(ran, np.array([one.job for one in moves], np.int64))
    time = np.append(start[ran], [one.time for one in moves])
    resumes = np.append(start[ran], [one.time + one.delay for one in moves])
    source = np.array([""] * len(ran) + [one.left for one in moves], dtype=object)
    order = np.argsort(job, kind="stable")
    job, time, resumes, source = job[order], time[order], resumes[order], source[order]
    last = np.append(job[1:] != job[:-1], True)
    since = np.maximum(time, start[job])  # a charged decision delays a start beyond a migration
    until = np.where(last, end[job], np.append(since[1:], np.inf))
    resources = np.asarray(schedule.resources, dtype=object)
    text = np.where(last, resources[job], np.append(source[1:], ""))
    stays = until > since
    return Stays(
        job[stays],
        since[stays],
        np.clip(resumes, since, until)[stays],
        until[stays],
        torus.boxes_of(text[stays].tolist()),
    )


def _held(shares: Mapping[str, float]) -> float:
    return sum(shares[name] for name in PARTS[:3])


def _by_level(shares: Floats) -> dict[str, float]:
    """Return the positive levels of a histogram, by the percentage at which a level begins."""
    return {
        f"{100 * level // len(shares)}": float(shares[level]) for level in np.flatnonzero(shares)
    }


def _over_time(time: Floats, since: Floats, until: Floats, nodes: Ints) -> Ints:
    """Return the sum of held nodes from each instant on, each held from `since` to `until`."""
    changes = np.zeros(len(time), np.int64)
    np.add.at(changes, np.searchsorted(time, since), nodes)
    np.subtract.at(changes, np.searchsorted(time, until), nodes)
    return np.cumsum(changes)


def _fits(torus: Torus, stays: Stays, time: Floats, needed: Ints) -> Flags:
    """Return for each instant whether a free box has the needed routers; False for 0."""
    from optsched.boxes.free_boxes import words_of

    jobs = len(stays.job)
    when = np.append(stays.until, stays.since)
    order = np.argsort(when, kind="stable")  # at one instant the releases come first
    changes = np.append(np.searchsorted(when[order], time), 2 * jobs)
    fits: Flags = free_box_holds(
        words_of(torus.emptied().boxes.free, torus.grid),
        np.concatenate((stays.box, stays.box))[order],
        order < jobs,
        changes,
        needed,
        torus.shape[2],
        torus.grid.wrap,
        torus.grid.longest,
    )
    return fits
