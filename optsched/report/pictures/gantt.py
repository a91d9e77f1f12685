"""Gantt chart of a run, or of its busiest part, and the rows of an Ousterhout matrix over time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.machines.matrix import Matrix
from optsched.machines.site import SiteMachine
from optsched.machines.texts import Texts
from optsched.numbers import counted, spoken
from optsched.registry import pictures
from optsched.report import load, style
from optsched.report.gantt_chart import chart_data
from optsched.report.load import ROUND, time_axis, unit_for
from optsched.report.run_picture import RunFacts, RunPicture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.report.load import Steps
    from optsched.simulator.run import Run

Shown = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64]]
"""Counts the rectangles in time windows, from their begins and ends."""

MOST_RECTANGLES = 1500
"""Most rectangles that can be distinguished in one picture."""

ROWS = 250
"""Most rectangles of the usual height above each other that can be distinguished."""

PARTS = 5000
"""Parts of a run; windows shorter than a part are searched for in the busiest longer one only."""

NEARBY = 100
"""Parts of the picture; rectangles at most one part apart count as neighbors."""

MOST_LABELS = 60
"""Largest number of jobs that are labeled with their numbers."""


@dataclass(frozen=True, eq=False)
class Window:
    """Part of a run that is shown: a time window, and the processors below a number."""

    begin: float
    end: float
    processors: int


@dataclass(frozen=True, eq=False)
class Rectangles:
    """Allocations as rectangles: processors ``low`` to ``high - 1`` from ``begin`` to ``end``.

    All arrays have shape (rectangles,). ``job`` is the row of the trace; a job has a rectangle for
    each interval of its processors.
    """

    job: NDArray[np.int64]
    begin: NDArray[np.float64]
    end: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.job)

    def at(self, rows: NDArray[np.bool_]) -> Rectangles:
        """Return some of the rectangles."""
        return Rectangles(*(getattr(self, one.name)[rows] for one in fields(self)))


def rectangles(run: Run, part: Window) -> Rectangles:
    """Return the allocations of jobs in a part of a run, in order of their starts."""
    return allocations(run.start, load.held_until(run), Texts.of(run.resources), part)


def allocations(
    start: NDArray[np.float64], until: NDArray[np.float64], texts: Texts, part: Window
) -> Rectangles:
    """Return the allocations of jobs, as interval sets, that hold them from a start until an end.

    The arrays and texts have shape (jobs,), and nan or nothing for jobs that never started.
    """
    shown = np.flatnonzero((start < part.end) & (until > part.begin))
    shown = shown[np.argsort(start[shown], kind="stable")]
    job, low, high = [], [], []
    for row in shown.tolist():
        for begin, end in intervals(texts[row], part.processors):
            job.append(row)
            low.append(begin)
            high.append(end)
    rows = np.array(job, dtype=np.int64)
    return Rectangles(
        rows,
        start[rows],
        until[rows],
        np.array(low, dtype=np.int64),
        np.array(high, dtype=np.int64),
    )


def intervals(text: str, below: int) -> Iterator[tuple[int, int]]:
    """Yield the intervals of a set that begin below a number: first, and one past the last."""
    for interval in text.split():
        first, dash, last = interval.partition("-")
        if int(first) >= below:
            break
        yield int(first), int(last if dash else first) + 1


def window(run: Run, most: int = MOST_RECTANGLES, days: load.Days | None = None) -> Window:
    """Return the part of a run to show: the whole run, if it has at most `most` rectangles.

    Of a period, in days, that has more rectangles, the processors are halved until they are few
    enough. Otherwise the first processors, so few that the usual rectangle (the median height,
    weighted by work) is high enough to be seen, and a busy time. Windows of a round duration count
    as busy if they have at least nine tenths of the work of the busiest one. The result is the
    window with the most rectangles, of the longest duration with busy windows of at most `most`
    rectangles. If even a second has more, the processors are halved, too.
    """
    if days is not None:
        return _halved(run, Window(*load.period(run, days), run.machine.size), most)
    run_begin, run_end = load.span(run)
    started = np.isfinite(run.start)
    texts = Texts.of(run.resources)
    count = texts.occurrences(" ") + 1
    if count[started].sum() <= most:
        return Window(run_begin, run_end, run.machine.size)
    in_use = load.processors_in_use(run)  # takes the most memory, so first
    until = load.held_until(run)
    work = np.where(started, run.trace.processors * (until - run.start), 0.0)
    size = processors_shown(run.trace.processors / count, work, run.machine.size, ROWS)
    if size < run.machine.size:
        started &= first_processors(texts) < size
    shown = rectangles_between(run.start[started], until[started], count[started])
    begin, end, few = busiest(in_use, shown, (run_begin, run_end), most)
    part = Window(begin, end, size)
    return part if few else _halved(run, part, most)


def _halved(run: Run, part: Window, most: int) -> Window:
    """Return a part with so few of its first processors that it has at most `most` rectangles."""
    low, size = rectangles(run, part).low, part.processors
    while size > 1 and np.count_nonzero(low < size) > most:
        size //= 2
    return Window(part.begin, part.end, size)


def processors_shown(
    height: NDArray[np.float64], work: NDArray[np.float64], size: int, rows: int
) -> int:
    """Return the number of first processors on which the usual rectangle can be distinguished.

    At most `rows` rectangles above each other can be. The usual height is the median of the heights
    of jobs, shape (jobs,), weighted by their work.
    """
    height = np.minimum(height, size / rows)
    return min(size, math.ceil(rows * _weighted_median(height, work)))


def busiest(
    load_of: Steps, shown: Shown, span: tuple[float, float], most: int
) -> tuple[float, float, bool]:
    """Return begin and end of a busy time with at most `most` rectangles, and whether it is that.

    The time has a round duration, the longest for which there is one, within the span; if even a
    second has more rectangles, it is the busiest second. The load says how busy a time is.
    """
    first, last = begin, end = span
    for length in (duration for duration in reversed(ROUND) if duration < span[1] - span[0]):
        if length < (span[1] - span[0]) / PARTS:
            first, last = begin, end
        begins = np.arange(first, np.nextafter(last - length, last), length / 12)
        busy = load_of.integral(begins + length) - load_of.integral(begins)
        rectangles = shown(begins, begins + length)
        eligible = (rectangles <= most) & (busy >= 0.9 * busy.max())
        if eligible.any():
            begin = float(begins[np.where(eligible, rectangles, -1).argmax()])
            return begin, begin + length, True
        begin = float(begins[busy.argmax()])
        end = begin + length
    return begin, end, False


def _weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    order = np.argsort(values, kind="stable")  # fast for few different values
    upto = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(upto, upto[-1] / 2)])


def first_processors(intervals: Texts) -> NDArray[np.int64]:
    """Return the first processor of each interval set; beyond all processors if it is empty."""
    first = np.zeros(len(intervals), dtype=np.int64)
    reading = intervals.filled
    first[~reading] = sys.maxsize
    rows, at = np.flatnonzero(reading), intervals.offset[:-1][reading]
    while len(rows):
        first[rows] = 10 * first[rows] + intervals.text[at] - ord("0")
        at += 1
        goes_on = at < intervals.offset[1:][rows]
        goes_on[goes_on] = intervals.text[at[goes_on]] >= ord("0")
        rows, at = rows[goes_on], at[goes_on]
    return first


def rectangles_between(
    start: NDArray[np.float64], until: NDArray[np.float64], count: NDArray[np.int64]
) -> Shown:
    """Return a function that counts the rectangles of jobs, `count` of each, in time windows."""
    begun, over = _running_count(start, count), _running_count(until, count)
    return lambda begins, ends: begun(ends, "left") - over(begins, "right")


def _running_count(
    times: NDArray[np.float64], count: NDArray[np.int64]
) -> Callable[[NDArray[np.float64], Literal["left", "right"]], NDArray[np.int64]]:
    """Return a function that counts the rectangles before (or up to) a time."""
    order = np.argsort(times, kind="stable")  # fast for ascending stretches
    instants, total = times[order], np.concatenate(([0], np.cumsum(count[order])))
    return lambda at, side: total[np.searchsorted(instants, at, side=side)]


def colors(boxes: Rectangles, length: float, processors: float) -> NDArray[np.int64]:
    """Return a color, 0 to ``len(FILLS) - 1``, for each rectangle: one per job.

    Jobs are colored in order of their starts. Each gets the color with the shortest common border
    so far, the least recently used one on ties. Rectangles within a `NEARBY`-th of the length and
    the processors of the picture share a border.
    """
    begin, end = boxes.begin / length, boxes.end / length
    low, high = boxes.low / processors, boxes.high / processors
    color = np.full(len(boxes), -1)
    given = list(range(len(style.FILLS)))
    for job in dict.fromkeys(boxes.job.tolist()):
        own = boxes.job == job
        border = np.zeros(len(style.FILLS))
        for i in np.flatnonzero(own).tolist():
            wide = np.minimum(end, end[i]) - np.maximum(begin, begin[i])
            tall = np.minimum(high, high[i]) - np.maximum(low, low[i])
            beside = (color >= 0) & (wide >= -1 / NEARBY) & (tall >= -1 / NEARBY)
            shared = np.maximum(wide, 0) + np.maximum(tall, 0)
            border += np.bincount(color[beside], shared[beside], len(style.FILLS))
        chosen = min(given, key=lambda c: border[c])
        given.remove(chosen)
        given.append(chosen)
        color[own] = chosen
    return color


@pictures.register("gantt")
class Gantt(RunPicture):
    """Jobs on the processors over time; the busiest part of a long run."""

    rank = 10

    def why_not(self, run: Run) -> str:
        """Return why jobs are no rectangles of time x processors, where they are none."""
        if run.machine.holds_boxes:
            return "a box of a torus is scattered on a line of processors; see layers"
        if run.machine.time_shared:
            return "jobs that share processors in time would overlap; see matrix"
        if isinstance(run.machine, SiteMachine):
            return "jobs that share nodes would overlap"
        return ""

    @style.applied()
    def figure(
        self, run: Run, days: load.Days | None = None, most: int = MOST_RECTANGLES
    ) -> Figure:
        """Draw the Gantt chart: jobs as rectangles, time x processors.

        Parameters
        ----------
        days : (float, float), optional
            Period to show, in days since the first submission; by default the whole run or, if it
            has too many rectangles, a busy time.
        most : int
            Most rectangles. If the period has more, only the first processors are shown.
        """
        part = window(run, most, days)
        boxes = rectangles(run, part)
        drawing = style.new_figure(5.0, load.subject(run))
        axes = drawing.subplots()
        axes.grid(visible=False)
        style.subtitle(axes, _shown(run, part, boxes, days))
        axes.set_ylabel("processor")
        axes.set_ylim(0, part.processors)
        style.count_ticks(axes.yaxis)
        zero, run_end = load.span(run)
        unit = unit_for(run_end - zero)
        time_axis(axes, part.begin - zero, part.end - zero, unit)
        if len(boxes):
            color = colors(boxes, part.end - part.begin, part.processors)
            draw(axes, boxes, color, part, zero, unit[0])
            if len(np.unique(boxes.job)) <= MOST_LABELS:
                label(axes, run.trace.job_id, boxes, part, zero, unit[0])
        return drawing

    def caption(self, facts: RunFacts) -> str:
        return "The jobs on the processors over time; of a long run, a busy part."

    def words(self, facts: RunFacts) -> str:
        started = np.isfinite(facts.jobs["starting_time"])
        return (
            f"Gantt chart, processors against time: {np.count_nonzero(started):,} of"
            f" {len(started):,} jobs started on {facts.config['machine']}."
        )

    def chart(self, facts: RunFacts) -> Mapping[str, Any] | None:
        return chart_data(facts.jobs)


def _shown(run: Run, part: Window, boxes: Rectangles, days: load.Days | None) -> str:
    """Return a sentence on the part that the picture shows."""
    started = np.isfinite(run.start)
    never = len(started) - np.count_nonzero(started)
    jobs = len(np.unique(boxes.job))
    words = f"{'all ' if jobs > 1 else ''}{counted(jobs, 'job')} that started"
    if (part.begin, part.end, part.processors) != (*load.span(run), run.machine.size):
        shown = np.minimum(load.held_until(run), part.end) - np.maximum(run.start, part.begin)
        held = run.trace.processors[shown > 0] @ shown[shown > 0]
        in_use = held / (part.end - part.begin) / run.machine.size
        which = f"a busy time of {spoken(part.end - part.begin)}"
        if days is not None:
            which = load.spoken_days(days)
        words = f"{which}, {in_use:.0%} of processors in use"
        words += f": {jobs:,} of {np.count_nonzero(started):,} jobs"
        if part.processors < run.machine.size:
            words += f" on the first {part.processors:,} of {run.machine.size:,} processors"
    if jobs > len(style.FILLS):
        words += "; colors are reused"
    return words + (f"; {never:,} never started" if never else "")


def draw(
    axes: Axes, boxes: Rectangles, color: NDArray[np.int64], part: Window, zero: float, unit: float
) -> None:
    """Draw all rectangles of a color as one path: small in SVG, and sharp at every size."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    length = part.end - part.begin
    left = (np.maximum(boxes.begin, part.begin) - zero) / unit
    right = (np.minimum(boxes.end, part.end) - zero) / unit
    high = np.minimum(boxes.high, part.processors)
    x = np.column_stack((left, right, right, left, left))
    y = np.column_stack((boxes.low, boxes.low, high, high, boxes.low))
    corners = np.stack((x, y), axis=-1)
    large = (right - left > length / unit / 300) & (high - boxes.low > part.processors / 150)
    for number, fill in enumerate(style.FILLS):
        for outline, rows in ((0.25, large), (0.0, ~large)):
            if (rows & (color == number)).any():
                path = Path.make_compound_path_from_polys(corners[rows & (color == number)])
                look = {"facecolor": fill, "linewidth": outline, "edgecolor": "white"}
                axes.add_artist(PathPatch(path, **look))


def label(
    axes: Axes, job_id: NDArray[np.int64], boxes: Rectangles, part: Window, zero: float, unit: float
) -> None:
    """Write the number of each job into its largest rectangle, if it is large enough."""
    left, right = np.maximum(boxes.begin, part.begin), np.minimum(boxes.end, part.end)
    width = (right - left) / (part.end - part.begin)
    height = (boxes.high - boxes.low) / part.processors
    for job in np.unique(boxes.job).tolist():
        own = np.flatnonzero(boxes.job == job)
        i = own[(width * height)[own].argmax()]
        text = str(job_id[job])
        if width[i] >= 0.012 * len(text) and height[i] >= 0.04:
            axes.text(
                ((left[i] + right[i]) / 2 - zero) / unit,
                (boxes.low[i] + boxes.high[i]) / 2,
                text,
                ha="center",
                va="center",
                fontsize=8,
            )


MOST_OF_ROWS = 300
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
        return (
            "The Ousterhout matrix over time: the columns that jobs hold in each row. Jobs of a row"
            " run at the same time, and the rows take turns. A job that changes rows keeps its"
            " columns and its color."
        )

    def words(self, facts: RunFacts) -> str:
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
