"""Fragmentation of the free nodes of a line into slots, and the capacity lost by it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Floats, Ints
from optsched.compiled import kernel
from optsched.machines._ascending import delete, insert, position
from optsched.machines.machine import Machine
from optsched.machines.nodes import Nodes
from optsched.machines.texts import BLANK, Texts, read_run
from optsched.metrics.measure import Group, Metric, measures_in
from optsched.registry import metrics
from optsched.schedule import Schedule, State
from optsched.traces.trace import Trace

Places = NDArray[np.int32]


@kernel(allocates=False)
def release(starts: Ints, stops: Ints, count: int, start: int, stop: int) -> int:
    """Free a run of nodes, merged with adjacent slots; return the new number of slots."""
    after = position(starts, count, start) + 1
    joins_before = after > 0 and stops[after - 1] == start
    joins_after = after < count and starts[after] == stop
    if joins_before and joins_after:
        stops[after - 1] = stops[after]
        delete(starts, count, after)
        delete(stops, count, after)
        return count - 1
    if joins_before:
        stops[after - 1] = stop
        return count
    if joins_after:
        starts[after] = start
        return count
    insert(starts, count, after, start)
    insert(stops, count, after, stop)
    return count + 1


@kernel(allocates=False)
def take(starts: Ints, stops: Ints, count: int, start: int, stop: int) -> int:
    """Remove a run of nodes from the slot that contains it; return the new number of slots."""
    slot = position(starts, count, start)
    left, right = starts[slot] < start, stop < stops[slot]
    if left and right:
        insert(stops, count, slot, start)
        insert(starts, count, slot + 1, stop)
        return count + 1
    if left:
        stops[slot] = start
        return count
    if right:
        starts[slot] = stop
        return count
    delete(starts, count, slot)
    delete(stops, count, slot)
    return count - 1


@kernel(allocates=False)
def spread(
    in_class: Floats, by_class: Ints, begin: float, width: float, now: float, until: float
) -> None:
    """Add the node-seconds from `now` to `until` of the free nodes of each class."""
    stretches = len(in_class)
    stretch = min(stretches - 1, int((now - begin) / width))
    while stretch < stretches:
        end = until if stretch == stretches - 1 else begin + (stretch + 1) * width
        if end > now:
            seconds = min(end, until) - now
            for kind in range(len(by_class)):
                in_class[stretch, kind] += seconds * by_class[kind]
            now = end
        if now >= until:
            break
        stretch += 1


@kernel(allocates=False)
def free_line(
    size: int,  # nodes of the line
    # Jobs that ended, were submitted and started, by time
    ends: Ints,
    submissions: Ints,
    begins: Ints,
    end: Floats,
    submit: Floats,
    start: Floats,
    processors: Ints,  # size of each job, shape (jobs,)
    sizes: Ints,  # the different sizes, smallest first, shape (sizes,)
    text: NDArray[np.uint8],  # nodes of the jobs as interval sets
    offset: Ints,  # ``text[offset[j]:offset[j + 1]]`` are the nodes of job j, shape (jobs + 1,)
    # Room for the free slots, shape (most slots,)
    starts: Ints,
    stops: Ints,
    waiting: Ints,  # room for the number of waiting jobs of each size, all 0, shape (sizes,)
    by_class: Ints,  # room for the free nodes in slots of each class, shape (classes,)
    time: Floats,  # output, times in order, shape (most instants,)
    # Output, the state from each instant on: free nodes, number of slots, nodes of the
    # largest slot, size of the smallest waiting job (0 if no job waits), and the free nodes
    # in slots too small for that job, if enough nodes are free for it in all slots together,
    # shape (most instants,)
    free: Places,
    slots: Places,
    largest_slot: Places,
    smallest_waiting: Places,
    useless: Places,
    # Output, all 0 before, for stretches of equal length from the first to the last instant:
    # node-seconds free in slots of 2^k to 2^(k+1) - 1 nodes, shape (stretches, classes)
    in_class: Floats,
    # Time of the first instant, and length of a stretch
    first: float,
    width: float,
) -> int:
    """Follow the free nodes from instant to instant; return the number of instants."""
    starts[0], stops[0], count = 0, size, 1
    smallest = instants = ended = submitted = begun = 0
    while True:
        now = np.inf
        if ended < len(ends):
            now = min(now, end[ends[ended]])
        if submitted < len(submissions):
            now = min(now, submit[submissions[submitted]])
        if begun < len(begins):
            now = min(now, start[begins[begun]])
        if now == np.inf:
            return instants
        if instants > 0:
            spread(in_class, by_class, first, width, time[instants - 1], now)
        while ended < len(ends) and end[ends[ended]] == now:
            job = ends[ended]
            at, behind = offset[job], offset[job + 1]
            while at < behind:
                node, stop, at = read_run(text, at, behind)
                count = release(starts, stops, count, node, stop)
            ended += 1
        while submitted < len(submissions) and submit[submissions[submitted]] == now:
            rank = position(sizes, len(sizes), processors[submissions[submitted]])
            waiting[rank] += 1
            smallest = min(smallest, rank)
            submitted += 1
        while begun < len(begins) and start[begins[begun]] == now:
            job = begins[begun]
            waiting[position(sizes, len(sizes), processors[job])] -= 1
            at, behind = offset[job], offset[job + 1]
            while at < behind:
                node, stop, at = read_run(text, at, behind)
                count = take(starts, stops, count, node, stop)
            begun += 1
        while smallest < len(sizes) and waiting[smallest] == 0:
            smallest += 1
        wanted = sizes[smallest] if smallest < len(sizes) else 0
        total, largest, too_small = 0, 0, 0
        for kind in range(len(by_class)):
            by_class[kind] = 0
        for slot in range(count):
            length = stops[slot] - starts[slot]
            total += length
            largest = max(largest, length)
            if length < wanted:
                too_small += length
            kind = 0
            while length >> (kind + 1) > 0:
                kind += 1
            by_class[kind] += length
        time[instants], free[instants], slots[instants] = now, total, count
        largest_slot[instants], smallest_waiting[instants] = largest, wanted
        useless[instants] = too_small if wanted <= total else 0
        instants += 1


EXTERNAL = (
    "external fragmentation", "share",
    "Share of the node time that was free while a job waited for which enough was free, but nowhere"
    " in one piece: on a line, every slot was too small for every waiting job; in a torus, no free"
    " box held the queue head.",
)  # fmt: skip

STRETCHES = 200  # number of stretches of time for the sizes of slots


@metrics.register("fragmentation")
@dataclass(frozen=True, eq=False)
class Fragmentation(Metric):
    """The free slots of a line of nodes over time."""

    # Instants at which a job was submitted, started or ended, in seconds. Other arrays hold
    # the state from each instant to the next. Shape (instants,).
    time: Floats
    # Free nodes, number of slots, nodes of the largest slot, shape (instants,)
    free: NDArray[np.int32]
    slots: NDArray[np.int32]
    largest_slot: NDArray[np.int32]
    # Nodes of the smallest waiting job; 0 if no job waits, shape (instants,)
    smallest_waiting: NDArray[np.int32]
    # Free nodes in slots that are too small for every waiting job, while enough are free in
    # all slots together: external fragmentation, shape (instants,)
    useless: NDArray[np.int32]
    # Node-seconds free in slots of 2^k to 2^(k+1) - 1 nodes, in stretches of equal length
    # from the first to the last instant, shape (stretches, classes)
    classes: Floats
    nodes: int  # nodes of the line

    measures = measures_in(
        Group.PLACEMENT,
        loss_of_capacity=("loss of capacity", "share",
            "Share of the node time that was free while a job waited that needed no more nodes than"
            " were free."),
        external_fragmentation=EXTERNAL,
        mean_slots=("mean number of slots", "slots",
            "Mean over time of the number of slots, the maximal runs of free nodes."),
        mean_largest_slot=("mean size of the largest slot", "nodes",
            "Mean over time of the nodes of the largest slot."),
        free_by_slot_size=("free node time", "share",
            "Share of the free node time in slots of 1, 2 to 3, 4 to 7 and so on nodes.",
            "nodes of the slot, from"),
    )  # fmt: skip

    @classmethod
    def measure(
        cls, trace: Trace, machine: Machine, schedule: Schedule, large_from: int | None
    ) -> Fragmentation | None:
        """Measure the slots of a line of nodes; None on other machines."""
        if not isinstance(machine, Nodes) or machine.holds_boxes:
            return None
        return fragmentation(trace, machine.size, schedule)

    def between(self, begin: float, end: float) -> Fragmentation:
        """Return the part of a period, but for `classes`, which remain those of the whole time."""
        first = max(0, np.searchsorted(self.time, begin, side="right") - 1)
        rows = slice(first, np.searchsorted(self.time, end) + 1)
        states = ("free", "slots", "largest_slot", "smallest_waiting", "useless")
        part = {name: getattr(self, name)[rows] for name in states}
        return replace(self, time=np.clip(self.time[rows], begin, end), **part)

    def summary(self) -> dict[str, Any]:
        """Return the figures of `measures` over the whole time, JSON-able.

        Y. Zhang, H. Franke, J. Moreira, A. Sivasubramaniam, "An integrated approach to parallel
        scheduling using gang-scheduling, backfilling and migration", JSSPP 2001 (loss of capacity).
        """
        spans = np.diff(self.time)
        total = float(spans.sum())
        if total == 0.0:
            return {}

        def over_time(values: NDArray[Any]) -> float:
            return float((values[:-1] * spans).sum() / total)

        wanted = self.smallest_waiting
        idle = np.where((wanted > 0) & (wanted <= self.free), self.free, 0)
        free = self.classes.sum()
        shares = self.classes.sum(axis=0) / free if free else self.classes[0]
        return {
            "loss_of_capacity": over_time(idle) / self.nodes,
            "external_fragmentation": over_time(self.useless) / self.nodes,
            "mean_slots": over_time(self.slots),
            "mean_largest_slot": over_time(self.largest_slot),
            "free_by_slot_size": {
                str(1 << kind): float(share) for kind, share in enumerate(shares)
            },
        }


def fragmentation(trace: Trace, nodes: int, schedule: Schedule) -> Fragmentation:
    """Follow the free slots of a line of nodes through a schedule.

    The resources of jobs are interval sets of positions on the line.
    """
    texts = Texts.of(schedule.resources)
    submit = trace.submit.astype(np.float64)
    waited = (schedule.state != State.REJECTED) & (schedule.state != State.UNSUBMITTED)
    ends = _by_time(schedule.end, np.isfinite(schedule.end))
    submissions = _by_time(submit, waited)
    begins = _by_time(schedule.start, np.isfinite(schedule.start))
    events = (ends, schedule.end), (submissions, submit), (begins, schedule.start)
    sizes = np.unique(trace.processors)
    most_slots = min(nodes, len(trace) + int((texts.text == BLANK).sum())) + 2
    starts, stops = np.empty((2, most_slots), np.int64)
    kinds = int(nodes).bit_length()
    most_instants = len(ends) + len(submissions) + len(begins)
    time = np.empty(most_instants)
    table = np.empty((5, most_instants), np.int32)
    classes = np.zeros((STRETCHES, kinds))
    edges = [float(times[jobs[place]]) for jobs, times in events if len(jobs) for place in (0, -1)]
    first, final = min(edges, default=0.0), max(edges, default=0.0)
    instants = free_line(
        nodes, ends, submissions, begins, schedule.end, submit, schedule.start, trace.processors,
        sizes, texts.text, texts.offset, starts, stops, np.zeros(len(sizes), np.int64),
        np.zeros(kinds, np.int64), time, *table, classes,
        first, (final - first) / STRETCHES,
    )  # fmt: skip
    free, slots, largest, smallest, useless = table[:, :instants]
    time = time[:instants]
    return Fragmentation(time, free, slots, largest, smallest, useless, classes, nodes)


def _by_time(times: Floats, rows: Flags) -> Ints:
    """Return some rows, ordered by time and then by row."""
    which = np.flatnonzero(rows)
    return which[np.argsort(times[which], kind="stable")]
