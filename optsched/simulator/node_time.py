"""What became of the node time of a torus whose jobs hold boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.machines.torus import Torus
from optsched.simulator.metrics import least_large
from optsched.simulator.schedule import Schedule, State
from optsched.traces.trace import Trace

OCCUPIED = 80
"""Percent of the nodes; what is recorded begins when so many are held."""

PARTS = ("running", "migrating", "internal", "fragmented", "drained", "undecided", "unwanted")
"""What a node can be doing, first those that are held; see `NodeTime`."""


class NodeTime(NamedTuple):
    """The nodes of a torus over time, and the parts of its node time.

    A node that a job holds is

    ``running``
        if the job asked for it and makes progress,
    ``migrating``
        if it asked for it and is stopped by a migration,
    ``internal``
        if the job's box is that much larger than what it asked for: internal fragmentation;

    and a free one, by the head of the queue (the waiting job that was submitted first), is

    ``fragmented``
        if enough routers are free for the head, but no free box holds it: external fragmentation,
    ``drained``
        if too few routers are free for it,
    ``undecided``
        if a free box holds it: it waits for the next decision, or was passed over,
    ``unwanted``
        if no job waits.

    Parameters
    ----------
    time : float64 array, shape (instants,)
        Seconds; each instant at which something changed, from the first submission to the last end.
    held, running : int64 array, shape (instants,)
        Nodes in boxes of jobs and running nodes, from each instant to the next.
    nodes : int
        Nodes of the machine.
    shares : mapping of str to float
        The parts of all node time, by name; they add up to 1. Empty if no job ran.
    recorded : (float, float) or None
        From the first instant at which 80 % of the nodes are held to the last submission, in
        seconds; behind it the machine empties. None if that is no time at all.
    recorded_shares : mapping of str to float
        The parts of the node time in between; empty if there is none.
    drain : float64 array, shape (large jobs,)
        Seconds for which each large job was the head of the queue; nan if it never was, as one
        that never started or started before one that was submitted earlier.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive queue
    scanning and migration-based job placement", JSSPP 2015, sections 1 (``fragmented`` and
    ``drained`` are its two scenarios of system drainage) and 7 (what is recorded).
    """

    time: NDArray[np.float64]
    held: NDArray[np.int64]
    running: NDArray[np.int64]
    nodes: int
    shares: Mapping[str, float]
    recorded: tuple[float, float] | None
    recorded_shares: Mapping[str, float]
    drain: NDArray[np.float64]

    def histogram(self, levels: int = 20) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the shares of the recorded time in which so many nodes are held, or running.

        Parameters
        ----------
        levels : int
            The first level is from 0 to 1 / levels of the nodes, and so on; all nodes are part of
            the last one.

        Returns
        -------
        held, running : float64 array, shape (levels,)
            They add up to 1 each; all 0 if nothing is recorded.
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
        """Return the figures, JSON-able.

        ``occupied`` and ``useful`` are the mean shares of nodes that are held and that run over the
        recorded time. ``internal_fragmentation`` is the share of the held node time that is
        internal, ``external_fragmentation`` and ``drained`` are the parts of the whole, and
        ``large_mean_drain`` and ``large_max_drain`` are over those large jobs that were the head of
        the queue, ``large_at_head``. ``recorded_held`` and ``recorded_running`` are the histogram:
        shares of the recorded time by level, named by the percentage that it begins at; levels
        that do not occur are left out.
        """
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

    Parameters
    ----------
    trace : Trace
        The cleaned trace.
    torus : Torus
        The machine, of at most 64 routers along Z.
    schedule : Schedule
        When and where its jobs ran; their resources are all nodes of boxes.
    large_from : int, optional
        Jobs of so many processors are large; the tenth that needs most if left out.
    """
    submit, nodes = trace.submit.astype(np.float64), torus.size
    waits_until = _waiting_ends(schedule)
    drain = _time_at_head(submit, waits_until)
    drain = drain[trace.processors >= least_large(trace, large_from)]
    if not np.isfinite(schedule.end).any():
        none = np.zeros(0, np.int64)
        return NodeTime(none.astype(np.float64), none, none, nodes, {}, None, {}, drain)
    stays = _stays(torus, schedule)
    time = np.unique(np.concatenate((submit, stays.since, stays.goes_on, stays.until)))
    time = time[time <= stays.until.max()]
    asked = trace.processors[stays.job]
    boxes = stays.box[:, 3:].prod(axis=1) * torus.nodes_per_router
    held = _over_time(time, stays.since, stays.until, boxes)
    running = _over_time(time, stays.goes_on, stays.until, asked)
    migrating = _over_time(time, stays.since, stays.goes_on, asked)
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
        return {name: float(part[begin:end] @ spans / total) for name, part in zip(PARTS, parts)}

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


def _waiting_ends(schedule: Schedule) -> NDArray[np.float64]:
    """Return when each job waits no more: -inf if it never waits, inf if it does so for ever."""
    never = (schedule.state == State.REJECTED) | (schedule.state == State.UNSUBMITTED)
    started = np.isfinite(schedule.start)
    return np.where(started, schedule.start, np.where(never, -np.inf, np.inf))


def _time_at_head(
    submit: NDArray[np.float64], waits_until: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return for how long each job that started was the head; nan if never."""
    passed = np.maximum.accumulate(waits_until)
    comes = np.maximum(submit, np.append(-np.inf, passed[:-1]))
    was_head = np.isfinite(waits_until) & (waits_until >= comes)
    drain = np.full(len(submit), np.nan)
    drain[was_head] = waits_until[was_head] - comes[was_head]
    return drain


def _head_sizes(
    trace: Trace, waits_until: NDArray[np.float64], time: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the processors of the head from each instant on; 0 if no job waits."""
    passed = np.maximum.accumulate(waits_until)
    head = np.minimum(np.searchsorted(passed, time, side="right"), len(trace) - 1)
    waits = (trace.submit[head] <= time) & (passed[head] > time)
    sizes: NDArray[np.int64] = np.where(waits, trace.processors[head], 0)
    return sizes


class _Stays(NamedTuple):
    """Jobs in boxes, one row for each box that a job held: from when, to when.

    Between `since` and `goes_on` a job is stopped by the migration that brought it there.
    """

    job: NDArray[np.int64]
    since: NDArray[np.float64]
    goes_on: NDArray[np.float64]
    until: NDArray[np.float64]
    box: NDArray[np.int64]


def _stays(torus: Torus, schedule: Schedule) -> _Stays:
    """Return where the jobs were that ended, at least one, by job and time."""
    start, end = schedule.start, schedule.end
    ran = np.flatnonzero(np.isfinite(end))
    moves = [one for one in schedule.migrations if np.isfinite(end[one.job])]
    job = np.append(ran, np.array([one.job for one in moves], np.int64))
    time = np.append(start[ran], [one.time for one in moves])
    goes_on = np.append(start[ran], [one.time + one.delay for one in moves])
    left = np.array([""] * len(ran) + [one.left for one in moves], dtype=object)
    order = np.argsort(job, kind="stable")
    job, time, goes_on, left = job[order], time[order], goes_on[order], left[order]
    last = np.append(job[1:] != job[:-1], True)
    since = np.maximum(time, start[job])  # a start waits for a decision that takes time
    until = np.where(last, end[job], np.append(since[1:], np.inf))
    resources = np.asarray(schedule.resources, dtype=object)
    text = np.where(last, resources[job], np.append(left[1:], ""))
    stays = until > since
    return _Stays(
        job[stays],
        since[stays],
        np.clip(goes_on, since, until)[stays],
        until[stays],
        torus.boxes_of(text[stays].tolist()),
    )


def _held(shares: Mapping[str, float]) -> float:
    return sum(shares[name] for name in PARTS[:3])


def _by_level(shares: NDArray[np.float64]) -> dict[str, float]:
    """Return the levels of a histogram that occur, by the percentage at which they begin."""
    return {
        f"{100 * level // len(shares)}": float(shares[level]) for level in np.flatnonzero(shares)
    }


def _over_time(
    time: NDArray[np.float64],
    since: NDArray[np.float64],
    until: NDArray[np.float64],
    nodes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the nodes from each instant on of jobs that have them from `since` to `until`."""
    changes = np.zeros(len(time), np.int64)
    np.add.at(changes, np.searchsorted(time, since), nodes)
    np.subtract.at(changes, np.searchsorted(time, until), nodes)
    return np.cumsum(changes)


def _fits(
    torus: Torus, stays: _Stays, time: NDArray[np.float64], needed: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return from each instant on whether a free box has so many routers; not where it is 0."""
    from optsched.boxes.free_boxes import words_of
    from optsched.simulator._node_time import free_box_holds

    jobs = len(stays.job)
    when = np.append(stays.until, stays.since)
    order = np.argsort(when, kind="stable")  # at one instant the releases come first
    changes = np.append(np.searchsorted(when[order], time), 2 * jobs)
    fits: NDArray[np.bool_] = free_box_holds(
        words_of(torus.emptied().boxes.free, torus.grid),
        np.concatenate((stays.box, stays.box))[order],
        order < jobs,
        changes,
        needed,
        torus.shape[2],
        torus.grid.wrap,
    )
    return fits
