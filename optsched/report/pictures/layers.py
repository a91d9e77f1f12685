"""Jobs in boxes on a torus: before and after the largest migration, or at the fullest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from optsched.boxes.box import Box
from optsched.durations import spoken
from optsched.machines.torus import Torus
from optsched.metrics.node_time import Stays, stays_of
from optsched.numbers import counted
from optsched.registry import pictures
from optsched.report import load
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

    from optsched.simulator.run import Run


@pictures.register("layers")
class Layers(RunPicture):
    """The torus before and after its largest migration, on boxes."""

    rank = 50

    def why_not(self, run: Run) -> str:
        """Return why there are no boxes to draw."""
        if not isinstance(run.machine, Torus) or not run.machine.holds_boxes:
            return "its jobs hold no boxes of a torus"
        return "" if np.isfinite(run.start).any() else "no job started"

    def figure(self, run: Run, days: load.Days | None = None) -> Figure:
        """Draw the torus before and after the migration of most jobs, or else at its fullest.

        Parameters
        ----------
        days : (float, float), optional
            Period in which to look for that time, in days since the first submission; by default
            the whole run.
        """
        torus, (first, last) = run.machine, load.period(run, days)
        assert isinstance(torus, Torus)
        end = np.where(np.isfinite(run.start), load.held_until(run), np.nan)
        stays = stays_of(torus, run.schedule, end)
        migrated = [one.time for one in run.schedule.migrations if first <= one.time <= last]
        if not migrated:
            return _sheet(run, torus, stays, stays.fullest(first, last))
        times, counts = np.unique(migrated, return_counts=True)
        return _migration(run, torus, stays, float(times[counts.argmax()]))

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
    migrated = [one for one in run.schedule.migrations if one.time == now]
    parked = {one.job for one in migrated if one.parked}
    moves = {
        job: Move(str(names[job]), str(names[job]), f"job {names[job]} to {box}", job in parked)
        for job, box in ((one.job, after.get(one.job)) for one in migrated)
        if job in before and box is not None
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


def _sheet(run: Run, torus: Torus, stays: Stays, now: float) -> Figure:
    """Return the torus at a time."""
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
