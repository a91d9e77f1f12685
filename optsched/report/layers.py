"""Jobs in boxes on a torus: before and after the largest migration, or when most was held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box
from optsched.machines.box_allocations import boxes_of
from optsched.machines.torus import Torus
from optsched.report import load, relocation
from optsched.report.durations import spoken
from optsched.report.layer_maps import HOLES, Panel, Part, colours, figure_of, holes_of
from optsched.report.page import counted
from optsched.report.relocation import Move

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.simulator.run import Run
    from optsched.simulator.schedule import Migration


@dataclass(frozen=True, eq=False)
class Stays:
    """Which box each job held from when to when, one row for each box.

    All arrays have shape (stays,), `box` has (stays, 6). ``job`` is the row of the trace; times are
    in the trace's own seconds.
    """

    job: NDArray[np.int64]
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    box: NDArray[np.int64]

    def during(self, begin: float, end: float) -> dict[int, Box]:
        """Return the boxes that are held from `begin` to `end`, by job."""
        there = np.flatnonzero((self.begin <= begin) & (self.end >= end))
        there = there[np.argsort(self.job[there])]
        boxes = self.box[there].tolist()
        return {job: Box(*box) for job, box in zip(self.job[there].tolist(), boxes)}

    @property
    def instants(self) -> NDArray[np.float64]:
        """When anything changes, in order."""
        return np.unique(np.append(self.begin, self.end))


def stays_of(run: Run) -> Stays:
    """Return where the jobs of a run on a torus were that started, in the order of the trace."""
    torus = run.machine
    assert isinstance(torus, Torus)
    job, begin, end, resources = [], [], [], []
    until = load.held_until(run)
    moves = _by_job(run.schedule.migrations)
    for row in np.flatnonzero(np.isfinite(run.start)).tolist():
        since = float(run.start[row])
        for move in moves.get(row, ()):
            if move.time > since:  # a job may start late, or move twice at once
                job.append(row)
                begin.append(since)
                end.append(move.time)
                resources.append(move.left)
                since = move.time
        if until[row] > since:
            job.append(row)
            begin.append(since)
            end.append(float(until[row]))
            resources.append(run.resources[row])
    return Stays(
        np.array(job, dtype=np.int64), np.array(begin), np.array(end), boxes_of(torus, resources)
    )


def _by_job(migrations: Sequence[Migration]) -> Mapping[int, list[Migration]]:
    moves: dict[int, list[Migration]] = {}
    for one in migrations:
        moves.setdefault(one.job, []).append(one)
    return moves


def figure(run: Run) -> Figure | None:
    """Return the torus around the migration of most jobs; if there is none, at its fullest.

    None on machines without boxes, and if no job ran.
    """
    if not isinstance(run.machine, Torus) or not run.machine.holds_boxes:
        return None
    stays = stays_of(run)
    instants = stays.instants
    if not len(instants):
        return None
    if not run.schedule.migrations:
        return _fullest(run, run.machine, stays)
    times, counts = np.unique([one.time for one in run.schedule.migrations], return_counts=True)
    return _migration(run, run.machine, stays, float(times[counts.argmax()]))


def _migration(run: Run, torus: Torus, stays: Stays, now: float) -> Figure:
    """Return the torus before and after the migrations of an instant."""
    instants = stays.instants
    place = int(np.searchsorted(instants, now))
    before = stays.during(float(instants[place - 1]), now)
    after = stays.during(now, float(instants[place + 1]))
    ended = np.isfinite(run.end) & (run.end <= now)
    before = {job: box for job, box in before.items() if not ended[job]}
    names = run.trace.job_id
    moved = _by_job([one for one in run.schedule.migrations if one.time == now])
    moves = {
        job: Move(
            str(names[job]),
            str(names[job]),
            f"job {names[job]} to {after[job]}",
            any(one.parked for one in own),
        )
        for job, own in moved.items()
        if job in before and job in after
    }
    coming = {job: str(names[job]) for job in after if job not in before}
    held = sum(box.volume for box in after.values()) * torus.nodes_per_router / torus.size
    return relocation.figure(
        load.subject(run),
        (
            f"{_told(run, now)}, before {counted(len(moves), 'job')} moved",
            f"after; {held:.1%} of the nodes are held",
        ),
        torus.grid,
        torus.holes,
        before,
        after,
        moves,
        coming,
    )


def _fullest(run: Run, torus: Torus, stays: Stays) -> Figure:
    """Return the torus at the first moment at which jobs hold most of it."""
    instants = stays.instants
    change = np.zeros(len(instants))
    routers = stays.box[:, 3:].prod(axis=1)
    np.add.at(change, np.searchsorted(instants, stays.begin), routers)
    np.subtract.at(change, np.searchsorted(instants, stays.end), routers)
    held = np.cumsum(change)
    place = int(held.argmax())
    boxes = stays.during(float(instants[place]), float(instants[place + 1]))
    fills = colours(torus.grid, boxes)
    parts = holes_of(torus.holes)
    parts += [Part(box, fills[job], str(run.trace.job_id[job])) for job, box in boxes.items()]
    share = held[place] * torus.nodes_per_router / torus.size
    heading = f"{_told(run, float(instants[place]))}: {counted(len(boxes), 'job')}"
    heading += f" on {share:.1%} of the nodes"
    legend = [HOLES] if torus.holes else []
    return figure_of(load.subject(run), torus.grid, [Panel(heading, parts)], legend)


def _told(run: Run, now: float) -> str:
    """Say when something was."""
    return f"{spoken(now - load.span(run)[0])} after the first submission"
