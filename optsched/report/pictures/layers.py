"""Jobs in boxes on a torus: before and after the largest migration, or at the fullest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box
from optsched.machines.torus import Torus
from optsched.numbers import counted
from optsched.registry import pictures
from optsched.report import load
from optsched.report.durations import spoken
from optsched.report.run_picture import RunFacts, RunPicture
from optsched.report.torus_maps import (
    HOLES,
    Move,
    Panel,
    Part,
    colors,
    figure_of,
    holes_of,
    relocation_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.schedule import Migration
    from optsched.simulator.run import Run


@dataclass(frozen=True, eq=False)
class Stays:
    """Boxes that jobs held, one row for each box, with begin and end.

    All arrays have shape (stays,), `box` has (stays, 6). ``job`` is the row of the trace; times are
    in the trace's own seconds.
    """

    job: NDArray[np.int64]
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    box: NDArray[np.int64]

    def before(self, now: float) -> dict[int, Box]:
        """Return the boxes that jobs hold just before an instant, by job."""
        return self._boxes((self.begin < now) & (self.end >= now))

    def after(self, now: float) -> dict[int, Box]:
        """Return the boxes that jobs hold from an instant on, by job."""
        return self._boxes((self.begin <= now) & (self.end > now))

    def _boxes(self, rows: NDArray[np.bool_]) -> dict[int, Box]:
        boxes = [Box(*box) for box in self.box[rows].tolist()]
        return dict(zip(self.job[rows].tolist(), boxes))

    def fullest(self) -> float:
        """Return the first time at which the most routers are held, in seconds."""
        routers = self.box[:, 3:].prod(axis=1)
        instants, change = np.unique(np.append(self.begin, self.end), return_inverse=True)
        held = np.cumsum(np.bincount(change, np.append(routers, -routers)))
        return float(instants[held.argmax()])


def stays_of(run: Run, torus: Torus) -> Stays:
    """Return the stays of the jobs of a run that started, in the order of the trace."""
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
        np.array(job, dtype=np.int64), np.array(begin), np.array(end), torus.boxes_of(resources)
    )


def _by_job(migrations: Sequence[Migration]) -> Mapping[int, list[Migration]]:
    moves: dict[int, list[Migration]] = {}
    for one in migrations:
        moves.setdefault(one.job, []).append(one)
    return moves


@pictures.register("layers")
class Layers(RunPicture):
    """The torus before and after its largest migration, on boxes."""

    rank = 50

    def figure(self, run: Run) -> Figure | None:
        """Return the torus before and after the migration of most jobs, or else at its fullest.

        None on machines without boxes, and if no job ran.
        """
        if not isinstance(run.machine, Torus) or not run.machine.holds_boxes:
            return None
        stays = stays_of(run, run.machine)
        if not len(stays.job):
            return None
        if not run.schedule.migrations:
            return _fullest(run, run.machine, stays)
        times, counts = np.unique([one.time for one in run.schedule.migrations], return_counts=True)
        return _migration(run, run.machine, stays, float(times[counts.argmax()]))

    def caption(self, facts: RunFacts) -> str:
        """Return the caption."""
        return (
            "The torus, with a map for each layer: before and after the migration of the most jobs"
            " or, without migrations, when the most nodes were held."
        )

    def words(self, facts: RunFacts) -> str:
        """Return the numbers of the picture in words."""
        machine = facts.config["machine"]
        return f"Maps of the layers of {machine}, with the boxes that jobs held."


def _migration(run: Run, torus: Torus, stays: Stays, now: float) -> Figure:
    """Return the torus before and after the migrations of an instant."""
    before = {job: box for job, box in stays.before(now).items() if not run.end[job] <= now}
    after = stays.after(now)
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
    return relocation_figure(
        load.subject(run),
        (
            f"{_time(run, now)}, before {counted(len(moves), 'job')} moved",
            f"after; {_share(torus, after)}",
        ),
        torus.grid,
        torus.holes,
        before,
        after,
        moves,
        coming,
    )


def _fullest(run: Run, torus: Torus, stays: Stays) -> Figure:
    """Return the torus at the first time at which the most routers are held."""
    now = stays.fullest()
    boxes = stays.after(now)
    fills = colors(torus.grid, boxes)
    parts = holes_of(torus.holes)
    parts += [Part(box, fills[job], str(run.trace.job_id[job])) for job, box in boxes.items()]
    heading = f"{_time(run, now)}: {counted(len(boxes), 'job')}; {_share(torus, boxes)}"
    legend = [HOLES] if torus.holes else []
    return figure_of(load.subject(run), torus.grid, [Panel(heading, parts)], legend)


def _time(run: Run, now: float) -> str:
    """Return a time in words, from the first submission."""
    return f"{spoken(now - load.span(run)[0])} after the first submission"


def _share(torus: Torus, boxes: Mapping[int, Box]) -> str:
    """Return the share of the machine that jobs hold, in words."""
    nodes = sum(box.volume for box in boxes.values()) * torus.nodes_per_router
    return f"{nodes / torus.size:.1%} of the nodes are held"
