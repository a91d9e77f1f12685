"""The Ousterhout matrix over time: a panel for each row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.durations import spoken
from optsched.machines.matrix import Matrix
from optsched.numbers import counted
from optsched.registry import pictures
from optsched.report import load, style
from optsched.report.pictures.gantt import (
    MOST_LABELS,
    Rectangles,
    Window,
    colors,
    draw,
    intervals,
    label,
    window,
)
from optsched.report.run_picture import RunFacts, RunPicture
from optsched.report.steps import time_axis, unit_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.simulator.run import Run

MOST_RECTANGLES = 300
"""Most rectangles that can be distinguished in the panels together."""


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
        """Return why a run has no picture: no Ousterhout matrix, journal or started job."""
        if not isinstance(run.machine, Matrix):
            return "the machine is no Ousterhout matrix"
        if run.journal is None:
            return "only a journal has the rows of the jobs; simulate with journal=True"
        return "" if np.isfinite(run.start).any() else "no job started"

    @style.applied()
    def figure(
        self, run: Run, days: load.Days | None = None, most: int = MOST_RECTANGLES
    ) -> Figure:
        """Draw a panel for each row of the matrix, columns against time.

        Parameters
        ----------
        days : (float, float), optional
            Period to show, in days since the first submission; by default the whole run or, if it
            has too many rectangles, a busy time.
        most : int
            Most rectangles in all panels. If the period has more, only the first columns are shown.
        """
        part = window(run, most, days)
        every, row = _rectangles(run, part)
        color = colors(every, part.end - part.begin, part.processors)
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
            boxes = every.at(own)
            panel.grid(visible=False)
            panel.set_ylabel(f"row {number}")
            panel.set_ylim(0, part.processors)
            style.count_ticks(panel.yaxis)
            draw(panel, boxes, color[own], part, zero, unit[0])
            if jobs <= MOST_LABELS:
                label(panel, run.trace.job_id, boxes, part, zero, unit[0])
        drawing.supylabel("processors")
        time_axis(panels[-1], part.begin - zero, part.end - zero, unit)
        return drawing

    def caption(self, facts: RunFacts) -> str:
        """Return the caption."""
        return (
            "The Ousterhout matrix over time: the columns that jobs hold in each row. Jobs of a row"
            " run at the same time, and the rows take turns. A job that changes rows keeps its"
            " columns and its color."
        )

    def words(self, facts: RunFacts) -> str:
        """Return the numbers of the picture in words."""
        return f"Rows of {facts.config['machine']} over time, with the columns that jobs held."


def _rectangles(run: Run, part: Window) -> tuple[Rectangles, NDArray[np.int64]]:
    """Return the stays in a part of a run as rectangles, and the row of each."""
    shown = sorted(
        (stay for stay in stays(run) if stay.begin < part.end and stay.end > part.begin),
        key=lambda stay: (stay.begin, stay.job),
    )
    found = [
        (stay.job, stay.begin, stay.end, low, high, stay.row)
        for stay in shown
        for low, high in intervals(stay.columns, part.processors)
    ]
    job, begin, end, low, high, row = np.array(found, dtype=float).reshape(-1, 6).T
    whole = [column.astype(np.int64) for column in (job, low, high, row)]
    return Rectangles(whole[0], begin, end, whole[1], whole[2]), whole[3]
