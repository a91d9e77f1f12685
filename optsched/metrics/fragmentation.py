"""Fragmentation of the free nodes of a line into slots, and the capacity lost by it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.machines.machine import Machine
from optsched.machines.nodes import Nodes
from optsched.machines.texts import Texts
from optsched.metrics.measure import Group, Measure, Metric
from optsched.registry import metrics
from optsched.schedule import Schedule, State
from optsched.traces.trace import Trace

EXTERNAL = Measure(
    "external fragmentation", "share", Group.PLACEMENT,
    "Share of the node time that was free while a job waited for which enough was free, but nowhere"
    " in one piece: on a line, every slot was too small for every waiting job; in a torus, no free"
    " box held the queue head.",
)  # fmt: skip

STRETCHES = 200
"""Number of stretches of time for the sizes of slots."""


@metrics.register("fragmentation")
@dataclass(frozen=True, eq=False)
class Fragmentation(Metric):
    """The free slots of a line of nodes over time."""

    # Instants at which a job was submitted, started or ended, in seconds. Other arrays hold
    # the state from each instant to the next. Shape (instants,).
    time: NDArray[np.float64]
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
    classes: NDArray[np.float64]
    nodes: int  # nodes of the line

    measures = {
        "loss_of_capacity": Measure(
            "loss of capacity", "share", Group.PLACEMENT,
            "Share of the node time that was free while a job waited that needed no more nodes than"
            " were free.",
        ),
        "external_fragmentation": EXTERNAL,
        "mean_slots": Measure(
            "mean number of slots", "slots", Group.PLACEMENT,
            "Mean over time of the number of slots, the maximal runs of free nodes.",
        ),
        "mean_largest_slot": Measure(
            "mean size of the largest slot", "nodes", Group.PLACEMENT,
            "Mean over time of the nodes of the largest slot.",
        ),
        "free_by_slot_size": Measure(
            "free node time", "share", Group.PLACEMENT,
            "Share of the free node time in slots of 1, 2 to 3, 4 to 7 and so on nodes.",
            by="nodes of the slot, from",
        ),
    }  # fmt: skip

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
        """Return the figures over the whole time, JSON-able.

        ``loss_of_capacity`` is the share of node time that was free while a job waited that needed
        no more nodes than were free, and ``external_fragmentation`` the part of this share in slots
        too small for every waiting job. ``mean_slots`` and ``mean_largest_slot`` are means over
        time, and ``free_by_slot_size`` is the distribution of free node time over slots of 1, 2 to
        3, 4 to 7 and so on nodes.

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
    from optsched.machines._interval_text import BLANK
    from optsched.metrics._free_line import free_line

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


def _by_time(times: NDArray[np.float64], rows: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return some rows, ordered by time and then by row."""
    which = np.flatnonzero(rows)
    return which[np.argsort(times[which], kind="stable")]
