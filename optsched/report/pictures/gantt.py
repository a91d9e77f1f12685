"""Gantt charts: the picture of a run, or of its busiest part, and the data of charts to zoom.

``templates/gantt.js`` draws these on a page.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Floats, Ints
from optsched.errors import one_line
from optsched.files import json_text, write_text
from optsched.folders import CHARTS, Expected, checked, read_object
from optsched.machines.site import SiteMachine
from optsched.machines.texts import Texts
from optsched.numbers import counted, spoken
from optsched.registry import pictures
from optsched.report import load, style
from optsched.report.load import ROUND, Steps, time_axis, unit_for
from optsched.report.pictures import RunFacts, RunPicture
from optsched.report.style import FILLS, dark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.simulator.run import Run

Count = Callable[[Floats, Floats], Ints]
"""Counts the rectangles in time windows, from their begins and ends."""

MOST_RECTANGLES = 1500  # most rectangles that can be distinguished in one picture
ROWS = 250  # most rectangles of the usual height above each other that can be distinguished

PARTS = 5000
"""Parts of a run; windows shorter than a part are searched for in the busiest longer one only."""

NEARBY = 100  # parts of the picture; rectangles at most one part apart count as neighbors
MOST_LABELS = 60  # largest number of jobs that are labeled with their numbers


class Window(NamedTuple):
    """Part of a run that is shown: a time window, and the processors below a number."""

    begin: float
    end: float
    processors: int


class Rectangles(NamedTuple):
    """Allocations as rectangles: processors ``low`` to ``high - 1`` from ``begin`` to ``end``.

    All arrays have shape (rectangles,). ``job`` is the row of the trace; a job has a rectangle for
    each interval of its processors.
    """

    job: Ints
    begin: Floats
    end: Floats
    low: Ints
    high: Ints


@dataclass(frozen=True, eq=False)
class Schedule:
    """Starts, ends, and processors as interval sets, of jobs that hold these alone.

    The arrays and texts have shape (jobs,). The end of a job that never ends is that of the run; a
    job that never started has nan or nothing.
    """

    start: Floats
    until: Floats
    texts: Texts

    @cached_property
    def rectangles(self) -> Ints:
        """Number of rectangles of each job."""
        return self.texts.occurrences(" ") + 1


def schedule_of(run: Run) -> Schedule:
    """Return when and where the jobs of a run hold processors."""
    return Schedule(run.start, load.held_until(run), Texts.of(run.resources))


def rectangles(schedule: Schedule, part: Window) -> Rectangles:
    """Return the allocations of jobs in a part of a schedule, in order of their starts."""
    start, until = schedule.start, schedule.until
    shown = np.flatnonzero((start < part.end) & (until > part.begin))
    shown = shown[np.argsort(start[shown], kind="stable")]
    found = (
        (row, *interval)
        for row in shown.tolist()
        for interval in intervals(schedule.texts[row], part.processors)
    )
    job, low, high = np.fromiter(chain.from_iterable(found), np.int64).reshape(-1, 3).T
    return Rectangles(job, start[job], until[job], low, high)


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
    enough. Otherwise it is the busiest part, see `busiest_part`.
    """
    schedules, size = [schedule_of(run)], run.machine.size
    if days is not None:
        return _halved(schedules, Window(*load.period(run, days), size), most)
    in_use = partial(load.processors_in_use, run)
    return busiest_part(run.trace.processors, schedules, size, load.span(run), in_use, most, ROWS)


def busiest_part(
    processors: Ints,
    schedules: Sequence[Schedule],
    size: int,
    span: tuple[float, float],
    load_of: Callable[[], Steps],
    most: int,
    rows: int,
) -> Window:
    """Return the part of schedules to show: all of it, if none has more than `most` rectangles.

    Otherwise the first processors, so few that the usual rectangle (the median height, weighted by
    work) is high enough to be seen, and a busy time. Windows of a round duration count as busy if
    they have at least nine tenths of the load of the busiest one. The result is the window with the
    most rectangles, of the longest duration with busy windows of at most `most` rectangles. If even
    a second has more, the processors are halved, too.
    """
    started = [np.isfinite(one.start) for one in schedules]
    if all(one.rectangles[ran].sum() <= most for one, ran in zip(schedules, started)):
        return Window(*span, size)
    how_busy = load_of()  # takes the most memory, so first
    first = schedules[0]
    work = np.where(started[0], processors * (first.until - first.start), 0.0)
    shown = processors_shown(processors / first.rectangles, work, size, rows)
    counts = [
        rectangles_between(one.start[kept], one.until[kept], one.rectangles[kept])
        for one, ran in zip(schedules, started)
        for kept in [ran & (first_processors(one.texts) < shown)]
    ]
    begin, end, few = busiest(
        how_busy,
        lambda begins, ends: np.max([count(begins, ends) for count in counts], axis=0),
        span,
        most,
    )
    part = Window(begin, end, shown)
    return part if few else _halved(schedules, part, most)


def _halved(schedules: Sequence[Schedule], part: Window, most: int) -> Window:
    """Return a part with so few of its first processors that none has more than `most`."""
    lows, size = [rectangles(one, part).low for one in schedules], part.processors
    while size > 1 and any(np.count_nonzero(low < size) > most for low in lows):
        size //= 2
    return part._replace(processors=size)


def processors_shown(height: Floats, work: Floats, size: int, rows: int) -> int:
    """Return the number of first processors on which the usual rectangle can be distinguished.

    At most `rows` rectangles above each other can be. The usual height is the median of the heights
    of jobs, shape (jobs,), weighted by their work.
    """
    height = np.minimum(height, size / rows)
    order = np.argsort(height, kind="stable")  # fast for few different values
    upto = np.cumsum(work[order])
    median = float(height[order][np.searchsorted(upto, upto[-1] / 2)])
    return min(size, math.ceil(rows * median))


def busiest(
    load_of: Steps, shown: Count, span: tuple[float, float], most: int
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


def first_processors(intervals: Texts) -> Ints:
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


def rectangles_between(start: Floats, until: Floats, count: Ints) -> Count:
    """Return a function that counts the rectangles of jobs, `count` of each, in time windows."""

    def running_count(times: Floats) -> Callable[..., Ints]:
        order = np.argsort(times, kind="stable")  # fast for ascending stretches
        instants, total = times[order], np.concatenate(([0], np.cumsum(count[order])))
        return lambda at, side: total[np.searchsorted(instants, at, side=side)]

    begun, over = running_count(start), running_count(until)
    return lambda begins, ends: begun(ends, "left") - over(begins, "right")


def colors(boxes: Rectangles, length: float, processors: float) -> Ints:
    """Return a color, 0 to ``len(FILLS) - 1``, for each rectangle: one per job.

    Jobs are colored in order of their starts. Each gets the color with the shortest common border
    so far, the least recently used one on ties. Rectangles within a `NEARBY`-th of the length and
    the processors of the picture share a border.
    """
    begin, end = boxes.begin / length, boxes.end / length
    low, high = boxes.low / processors, boxes.high / processors
    color = np.full(len(boxes.job), -1)
    given = list(range(len(FILLS)))
    for job in dict.fromkeys(boxes.job.tolist()):
        own = boxes.job == job
        border = np.zeros(len(FILLS))
        for i in np.flatnonzero(own).tolist():
            wide = np.minimum(end, end[i]) - np.maximum(begin, begin[i])
            tall = np.minimum(high, high[i]) - np.maximum(low, low[i])
            beside = (color >= 0) & (wide >= -1 / NEARBY) & (tall >= -1 / NEARBY)
            shared = np.maximum(wide, 0) + np.maximum(tall, 0)
            border += np.bincount(color[beside], shared[beside], len(FILLS))
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
        boxes = rectangles(schedule_of(run), part)
        drawing = style.new_figure(5.0, load.subject(run))
        axes = drawing.subplots()
        style.subtitle(axes, _shown(run, part, boxes, days))
        axes.set_ylabel("processor")
        zero, run_end = load.span(run)
        unit = unit_for(run_end - zero)
        time_axis(axes, part.begin - zero, part.end - zero, unit)
        color = colors(boxes, part.end - part.begin, part.processors)
        few = len(np.unique(boxes.job)) <= MOST_LABELS
        draw(axes, boxes, color, part, zero, unit[0], run.trace.job_id if few else None)
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
    started = np.count_nonzero(np.isfinite(run.start))
    never = len(run.start) - started
    jobs = len(np.unique(boxes.job))
    words = f"{'all ' if jobs > 1 else ''}{counted(jobs, 'job')} that started"
    if part != (*load.span(run), run.machine.size):
        shown = np.minimum(load.held_until(run), part.end) - np.maximum(run.start, part.begin)
        held = run.trace.processors[shown > 0] @ shown[shown > 0]
        in_use = held / (part.end - part.begin) / run.machine.size
        busy = f"a busy time of {spoken(part.end - part.begin)}"
        which = busy if days is None else load.spoken_days(days)
        words = f"{which}, {in_use:.0%} of processors in use"
        words += f": {jobs:,} of {started:,} jobs"
        if part.processors < run.machine.size:
            words += f" on the first {part.processors:,} of {run.machine.size:,} processors"
    if jobs > len(FILLS):
        words += "; colors are reused"
    return words + (f"; {never:,} never started" if never else "")


def draw(
    axes: Axes,
    boxes: Rectangles,
    color: Ints,
    part: Window,
    zero: float,
    unit: float,
    job_id: Ints | None,
) -> None:
    """Draw rectangles against the processors of a part, with the numbers of jobs if given.

    All of a color are one path: small in SVG, and sharp at every size.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Corners

    axes.grid(visible=False)
    axes.set_ylim(0, part.processors)
    style.count_ticks(axes.yaxis)
    length = part.end - part.begin
    left = (np.maximum(boxes.begin, part.begin) - zero) / unit
    right = (np.minimum(boxes.end, part.end) - zero) / unit
    high = np.minimum(boxes.high, part.processors)
    x = np.column_stack((left, right, right, left, left))
    y = np.column_stack((boxes.low, boxes.low, high, high, boxes.low))
    corners = np.stack((x, y), axis=-1)
    large = (right - left > length / unit / 300) & (high - boxes.low > part.processors / 150)
    for number, fill in enumerate(FILLS):
        for outline, rows in ((0.25, large), (0.0, ~large)):
            if (rows & (color == number)).any():
                path = Corners.make_compound_path_from_polys(corners[rows & (color == number)])
                look = {"facecolor": fill, "linewidth": outline, "edgecolor": "white"}
                axes.add_artist(PathPatch(path, **look))
    if job_id is not None:
        _label(axes, job_id, boxes, part, zero, unit)


def _label(
    axes: Axes, job_id: Ints, boxes: Rectangles, part: Window, zero: float, unit: float
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
            x = ((left[i] + right[i]) / 2 - zero) / unit
            y = (boxes.low[i] + boxes.high[i]) / 2
            axes.text(x, y, text, ha="center", va="center", fontsize=8)


MOST = 10_000
"""Most jobs that start in the period of a chart, and most intervals of processors of these."""

AT_ONCE = 600  # most of them that the chart shows before it is zoomed

COLUMNS = {"allocated_resources": "str"}
"""Columns of the table of jobs that a chart needs beside those of the page."""


CHART: Expected = {
    "name": str,
    "about": str,
    **dict.fromkeys(("period", "view", "job", "users", "user", "processors", "wait"), list),
    **dict.fromkeys(("begin", "length", "places", "fills", "dark"), list),
}


def chart_data(
    jobs: Mapping[str, NDArray[Any]],
    most: int = MOST,
    shown: tuple[tuple[float, float], tuple[float, float]] | None = None,
) -> dict[str, Any] | None:
    """Return a period of a run, JSON-able; None if the places of jobs are not on file.

    By default it is the busiest period: that of the most work (processors times time held) by
    length, of all with as many successive starts as `most` allows; the whole run, if it has no
    more. Times are in seconds since the first submission. A job has an entry in each list;
    ``places`` are interval sets.

    `jobs`: columns of the table of jobs: ``job_id``, ``user``, ``submission_time``,
    ``requested_number_of_resources``, ``starting_time``, ``finish_time``, `COLUMNS`, and
    ``user_name`` if the trace has names, shape (jobs,); `most`: most jobs, and most intervals of
    processors, that start in the busiest period; `shown`: another period, and its part in view.
    """
    if "allocated_resources" not in jobs:
        return None
    rows = np.flatnonzero(np.isfinite(jobs["starting_time"] + jobs["submission_time"]))
    if not len(rows):
        return None
    rows = rows[np.argsort(jobs["starting_time"][rows], kind="stable")]
    zero = np.nanmin(jobs["submission_time"])
    begin, end = jobs["starting_time"][rows] - zero, jobs["finish_time"][rows] - zero
    last = end[np.isfinite(end)].max(initial=begin[-1])
    end = np.where(np.isfinite(end), end, last)  # of jobs that still run
    places = [text or "" for text in jobs["allocated_resources"][rows]]
    intervals = np.array([text.count(" ") + 1 for text in places])
    work = (end - begin) * jobs["requested_number_of_resources"][rows]
    if shown is None:
        period = _busiest(begin, last, intervals, work, most)
        held = (begin < period[1]) & (end >= period[0])
        view = _busiest(begin[held], period[1], intervals[held], work[held], AT_ONCE)
    else:
        period, view = shown
    inside = np.flatnonzero((begin < period[1]) & (end >= period[0]))
    own = rows[inside]
    names = jobs.get("user_name", np.full(len(jobs["user"]), "", dtype=object))[own]
    users = [one_line(name or "") or str(user) for name, user in zip(names, jobs["user"][own])]
    known = {user: place for place, user in enumerate(dict.fromkeys(users))}
    started = int(((begin >= period[0]) & (begin < period[1])).sum())
    which = "The busiest period" if shown is None else "A part of the time"
    part = f"{which}: {started:,} of {counted(len(rows), 'job')}"
    return {
        "about": part if len(inside) < len(rows) else f"All {counted(len(rows), 'job')}",
        "period": _seconds(np.array(period)),
        "view": _seconds(np.array([max(view[0], period[0]), view[1]])),
        "job": jobs["job_id"][own].tolist(),
        "users": [*known],
        "user": [known[user] for user in users],
        "processors": jobs["requested_number_of_resources"][own].tolist(),
        "wait": _seconds(jobs["starting_time"][own] - jobs["submission_time"][own]),
        "begin": _seconds(begin[inside]),
        "length": _seconds((end - begin)[inside]),
        "places": [places[row] for row in inside.tolist()],
        "fills": list(FILLS),
        "dark": [dark(fill) for fill in FILLS],
    }


def write_charts(charts: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the data of charts, which have names, to `CHARTS` in a folder."""
    write_text(folder / CHARTS, json_text({"charts": charts}) + "\n")


def read_charts(folder: Path) -> list[dict[str, Any]]:
    """Return the data of the charts in a folder; none without `CHARTS`."""
    file = folder / CHARTS
    if not file.exists():
        return []
    charts = read_object(file, {"charts": list})["charts"]
    return [checked(chart, CHART, file, "charts") for chart in charts]


def _busiest(
    begin: Floats, last: float, intervals: Ints, work: Floats, most: int
) -> tuple[float, float]:
    """Return the period with the most work by length; all of them start with a job, by time."""
    counts, works = (np.concatenate(([0], np.cumsum(of))) for of in (intervals, work))
    if counts[-1] <= most:
        return float(begin[0]), max(float(last), float(begin[0]) + 1)
    after = np.maximum(np.searchsorted(counts, counts[:-1] + most, side="right") - 1, 1)
    whole = after < len(begin)  # the others are cut off by the end of the run
    first = np.flatnonzero(whole)
    length = np.maximum(begin[after[whole]] - begin[first], 1.0)
    busiest = int(np.argmax((works[after[whole]] - works[first]) / length))
    return float(begin[first[busiest]]), float(begin[after[first[busiest]]])


def _seconds(times: Floats) -> list[float | int]:
    """Return times to the millisecond, whole ones as integers."""
    return [int(time) if time == int(time) else round(time, 3) for time in times.tolist()]
