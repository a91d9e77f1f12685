"""Nodes of a machine: slots of a line, rows of a matrix, boxes on a torus and time of its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.arrays import Floats, Ints
from optsched.boxes.box import Box
from optsched.machines.matrix import Matrix
from optsched.machines.torus import Torus
from optsched.metrics.fragmentation import Fragmentation
from optsched.metrics.node_time import OCCUPIED, PARTS, NodeTime, Stays, stays_of
from optsched.numbers import counted, spoken
from optsched.registry import pictures
from optsched.report import load, style
from optsched.report.load import time_axis, unit_for
from optsched.report.pictures import RunFacts, RunPicture, gantt
from optsched.report.torus_maps import (
    HOLES,
    Move,
    Panel,
    figure_of,
    holes_of,
    parts_of,
    relocation_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.simulator.run import Run

GROUPS = 5  # number of groups of slot sizes; each spans as many powers of two


@pictures.register("slots")
class Slots(RunPicture):
    """Free nodes of a line by the size of their slot, over time."""

    rank = 40

    def why_not(self, run: Run) -> str:
        found = run.metrics.get("fragmentation")
        if not isinstance(found, Fragmentation):
            return "only a line of nodes has slots"
        return "" if len(found.time) > 1 else "no time passes in it"

    @style.applied()
    def figure(self, run: Run, days: load.Days | None = None) -> Figure:
        """Draw the free nodes by the size of their slot, as means over a 200th of the run.

        Parameters
        ----------
        days : (float, float), optional
            Period to show, in days since the first submission; by default the whole run.
        """
        found = run.metrics["fragmentation"]
        assert isinstance(found, Fragmentation)
        begin, end = float(found.time[0]), float(found.time[-1])
        unit = unit_for(end - begin)
        edges = np.linspace(begin, end, len(found.classes) + 1)
        times = (edges - begin) / unit[0]
        shown = (begin, end) if days is None else load.period(run, days)
        nodes = found.classes / np.diff(edges)[:, None]
        parts = np.array_split(np.arange(nodes.shape[1]), min(GROUPS, nodes.shape[1]))
        heights = [nodes[:, part].sum(axis=1) for part in parts]
        labels = [
            counted(least, "node") if least == most else f"{least:,} to {most:,} nodes"
            for part in parts
            for least, most in [(1 << int(part[0]), min((2 << int(part[-1])) - 1, found.nodes))]
        ]
        figures = found.between(*shown).summary()
        drawing = style.new_figure(3.6, load.subject(run))
        axes = drawing.subplots()
        low = np.zeros(len(nodes))
        for height, label, color in zip(heights, labels, style.FILLS):
            look = {"facecolor": color, "linewidth": 0, "label": label}
            style.draw_steps(axes, low + height, times, baseline=low, **look)
            low = low + height
        when = "" if days is None else f"{load.spoken_days(days)}: "
        style.subtitle(
            axes,
            f"{when}loss of capacity {figures['loss_of_capacity']:.1%}, external "
            f"fragmentation {figures['external_fragmentation']:.1%}; "
            f"{figures['mean_slots']:.1f} slots on average",
        )
        axes.set_ylabel("free nodes, by the size\nof their slot")
        axes.set_ylim(0, 1.05 * max(1.0, float(low.max())))
        time_axis(axes, shown[0] - begin, shown[1] - begin, unit)
        below = {"loc": "outside lower left", "ncols": 3}
        beside = {"loc": "outside right center"}
        drawing.legend(title="slots of", **(below if style.is_narrow() else beside))
        return drawing

    def caption(self, facts: RunFacts) -> str:
        return (
            "Free nodes over time, by the size of the slot (maximal free run) that they are in."
            " Loss of capacity: the share of all node time that was free while a job waited that"
            " needed no more nodes; external fragmentation: the part of it in slots too small for"
            " every waiting job."
        )

    def words(self, facts: RunFacts) -> str:
        summary = facts.summary
        texts = {
            "mean_slots": "{:.1f} slots on average",
            "loss_of_capacity": "loss of capacity {:.1%}",
            "external_fragmentation": "external fragmentation {:.1%}",
        }
        words = [text.format(summary[name]) for name, text in texts.items() if name in summary]
        return f"Free slots over time: {', '.join(words)}." if words else "Free slots over time."


@pictures.register("layers")
class Layers(RunPicture):
    """The torus before and after its largest migration, on boxes."""

    rank = 50

    def why_not(self, run: Run) -> str:
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
        if migrated:
            times, counts = np.unique(migrated, return_counts=True)
            return _migration(run, torus, stays, float(times[counts.argmax()]))
        now = stays.fullest(first, last)
        boxes = stays.after(now)
        parts = holes_of(torus.holes) + parts_of(torus.grid, boxes, run.trace.job_id)
        heading = f"{_time(run, now)}: {counted(len(boxes), 'job')}; {_share(torus, boxes)}"
        legend = [HOLES] if torus.holes else []
        return figure_of(load.subject(run), torus.grid, [Panel(heading, parts)], legend)

    def caption(self, facts: RunFacts) -> str:
        return (
            "The torus, with a map for each layer: before and after the migration of the most jobs"
            " or, without migrations, when the most nodes were held."
        )

    def words(self, facts: RunFacts) -> str:
        machine = facts.config["machine"]
        return f"Maps of the layers of {machine}, with the boxes that jobs held."


def _migration(run: Run, torus: Torus, stays: Stays, now: float) -> Figure:
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


def _time(run: Run, now: float) -> str:
    return f"{spoken(now - load.span(run)[0])} after the first submission"


def _share(torus: Torus, boxes: Mapping[int, Box]) -> str:
    nodes = sum(box.volume for box in boxes.values()) * torus.nodes_per_router
    return f"{nodes / torus.size:.1%} of the nodes are held"


LEVELS = 20  # bars of the histogram
FILLS = (*style.FILLS[:6], style.FAINT)  # fill of each of `PARTS`; unwanted node time is gray
LEAST = 0.03  # least share of a bar that is written into the bar


@pictures.register("histogram")
class Histogram(RunPicture):
    """Shares of the time by utilization of a torus, and the breakdown of the node time."""

    rank = 60

    def why_not(self, run: Run) -> str:
        found = run.metrics.get("node-time")
        if not isinstance(found, NodeTime):
            return "its jobs hold no boxes of a torus"
        return "" if found.shares else "no job ended"

    @style.applied()
    def figure(self, run: Run) -> Figure:
        """Draw the histogram of the recorded time, above the breakdown of the node time."""
        found = run.metrics["node-time"]
        assert isinstance(found, NodeTime)
        bars = {"the whole run": found.shares}
        if found.recorded is not None:
            bars |= {"recorded": found.recorded_shares}
        rows = (2.4, 0.5 * len(bars)) if found.recorded is not None else (0.5,)
        drawing = style.new_figure(sum(rows) + 1.3, load.subject(run))
        panels = drawing.subplots(len(rows), 1, height_ratios=rows, squeeze=False)[:, 0]
        _draw_parts(panels[-1], bars)
        if found.recorded is None:
            style.subtitle(panels[-1], f"never {OCCUPIED}% of the nodes held while jobs came")
        else:
            held, running = found.histogram(LEVELS)
            _draw_levels(panels[0], held, running)
            begin, end = (time - load.span(run)[0] for time in found.recorded)
            style.subtitle(
                panels[0],
                f"recorded: from the first {OCCUPIED}% of nodes held, after {spoken(begin)}, "
                f"to the last submission, after {spoken(end)}",
            )
        drawing.legend(
            *panels[-1].get_legend_handles_labels(),
            loc="outside lower left",
            ncols=3 if style.is_narrow() else len(PARTS),
            handlelength=1.2,
            columnspacing=1.2,
        )
        return drawing

    def caption(self, facts: RunFacts) -> str:
        return (
            "Share of the time by number of nodes in use, and the breakdown of the node time. Held"
            " by jobs: running, migrating, internal fragmentation. Free: fragmented (no box holds"
            " the queue head), drained (too few routers for the queue head), undecided (a box holds"
            " the queue head), unwanted (no job waits)."
        )

    def words(self, facts: RunFacts) -> str:
        summary = facts.summary
        parts = summary.get("node_time")
        if not isinstance(parts, dict):
            return "Breakdown of the node time."
        words = ", ".join(f"{name} {part:.1%}" for name, part in parts.items())
        recorded = ""
        if summary.get("occupied") is not None and summary.get("useful") is not None:
            recorded = f" While recorded, {summary['occupied']:.1%} of the nodes were held and"
            recorded += f" {summary['useful']:.1%} running, on average."
        return f"Breakdown of the node time: {words}.{recorded}"


def _draw_levels(axes: Axes, held: Floats, running: Floats) -> None:
    edges = np.linspace(0, 1, LEVELS + 1)
    axes.stairs(held, edges, fill=True, color=style.FAINT, label="nodes in boxes of jobs")
    axes.stairs(
        running, edges, color=style.LINES[0], linewidth=1.5, label="nodes that jobs requested"
    )
    axes.set_ylabel("share of the\nrecorded time")
    axes.set_xlabel("share of the nodes")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.4 * max(*held, *running))  # the legend is above the levels
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xticks(np.linspace(0, 1, 6 if style.is_narrow() else 11))
    axes.legend(loc="upper left")


def _draw_parts(axes: Axes, bars: Mapping[str, Mapping[str, float]]) -> None:
    left = np.zeros(len(bars))
    for name, fill in zip(PARTS, FILLS):
        shares = np.array([shares[name] for shares in bars.values()])
        look: dict[str, Any] = {"color": fill, "edgecolor": "white", "height": 0.7, "label": name}
        axes.barh(list(bars), shares, left=left, **look)
        for row, (begin, part) in enumerate(zip(left, shares)):
            if part >= LEAST:
                axes.text(begin + part / 2, row, f"{part:.0%}", ha="center", va="center")
        left += shares
    axes.grid(visible=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the node time")
    axes.xaxis.set_major_formatter("{x:.0%}")


MOST_OF_ROWS = 300  # most rectangles that can be distinguished in the panels together


class Stay(NamedTuple):
    """Time of a job in a row of the matrix."""

    job: int  # row of the job in the trace
    row: int  # row of the matrix, from 0
    columns: str  # the columns as an interval set
    begin: float
    end: float


def stays(run: Run) -> Iterator[Stay]:
    """Yield the stays of jobs in rows, in the order of their ends, from the journal of the run."""
    assert run.journal is not None
    here: dict[int, tuple[int, str, float]] = {}
    for time, event, job, detail in run.journal.entries:
        if job in here and event in ("move", "finished", "killed"):
            row, columns, begin = here.pop(job)
            yield Stay(job, row, columns, begin, time)
        if event in ("start", "move"):
            row_text, _, columns = detail.removeprefix("row ").partition(": ")
            here[job] = int(row_text), columns, time
    for job, (row, columns, begin) in here.items():
        yield Stay(job, row, columns, begin, load.span(run)[1])


@pictures.register("matrix")
class MatrixRows(RunPicture):
    """The rows of an Ousterhout matrix over time, in runs with a journal."""

    rank = 15

    def why_not(self, run: Run) -> str:
        if not isinstance(run.machine, Matrix):
            return "the machine is no Ousterhout matrix"
        if run.journal is None:
            return "only a journal has the rows of the jobs; simulate with journal=True"
        return "" if np.isfinite(run.start).any() else "no job started"

    @style.applied()
    def figure(self, run: Run, days: load.Days | None = None, most: int = MOST_OF_ROWS) -> Figure:
        """Draw a panel for each row of the matrix, columns against time.

        Parameters
        ----------
        days : (float, float), optional
            Period to show, in days since the first submission; by default the whole run or, if it
            has too many rectangles, a busy time.
        most : int
            Most rectangles in all panels. If the period has more, only the first columns are shown.
        """
        part = gantt.window(run, most, days)
        every, row = _rectangles_of_rows(run, part)
        color = gantt.colors(every, part.end - part.begin, part.processors)
        rows = int(row.max(initial=0)) + 1
        drawing = style.new_figure(0.9 + 1.3 * rows, load.subject(run))
        panels = drawing.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
        zero, run_end = load.span(run)
        unit = unit_for(run_end - zero)
        jobs = len(np.unique(every.job))
        style.subtitle(
            panels[0],
            f"{counted(jobs, 'job')} in {spoken(part.end - part.begin)}, a panel for each row;"
            " the rows take turns",
        )
        for number, panel in enumerate(panels):
            own = row == number
            of_row = gantt.Rectangles(*(column[own] for column in every))
            panel.set_ylabel(f"row {number}")
            labels = run.trace.job_id if jobs <= gantt.MOST_LABELS else None
            gantt.draw(panel, of_row, color[own], part, zero, unit[0], labels)
        drawing.supylabel("processors")
        time_axis(panels[-1], part.begin - zero, part.end - zero, unit)
        return drawing

    def caption(self, facts: RunFacts) -> str:
        return (
            "The Ousterhout matrix over time: the columns that jobs hold in each row. Jobs of a row"
            " run at the same time, and the rows take turns. A job that changes rows keeps its"
            " columns and its color."
        )

    def words(self, facts: RunFacts) -> str:
        return f"Rows of {facts.config['machine']} over time, with the columns that jobs held."


def _rectangles_of_rows(run: Run, part: gantt.Window) -> tuple[gantt.Rectangles, Ints]:
    """Return the stays in a part of a run as rectangles, and the row of each."""
    shown = sorted(
        (stay for stay in stays(run) if stay.begin < part.end and stay.end > part.begin),
        key=lambda stay: (stay.begin, stay.job),
    )
    found = [
        (stay.job, stay.begin, stay.end, low, high, stay.row)
        for stay in shown
        for low, high in gantt.intervals(stay.columns, part.processors)
    ]
    job, begin, end, low, high, row = np.array(found, dtype=float).reshape(-1, 6).T
    whole = [column.astype(np.int64) for column in (job, low, high, row)]
    return gantt.Rectangles(whole[0], begin, end, whole[1], whole[2]), whole[3]
