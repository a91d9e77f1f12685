"""Pictures of a comparison of runs: waits, load over time, and Gantt charts of the same time."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched import registry
from optsched.errors import InputError
from optsched.folders import read_columns
from optsched.machines.machine import read_machine
from optsched.machines.site import SiteMachine
from optsched.machines.texts import Texts
from optsched.numbers import DAY, MINUTE, spoken
from optsched.report import style
from optsched.report.load import (
    Steps,
    accepted,
    at_least,
    held,
    log_ticks,
    or_end,
    time_axis,
    unit_for,
    waiting,
)
from optsched.report.pictures.gantt import (
    MOST,
    MOST_LABELS,
    NEARBY,
    Rectangles,
    Schedule,
    Window,
    busiest_part,
    chart_data,
    colors,
    rectangles,
    rectangles_between,
    write_charts,
)
from optsched.report.pictures.gantt import draw as draw_rectangles
from optsched.report.pictures.load_and_waits import MOST_BINS, draw_waits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.report.run_comparison import ComparedRun, RunComparison

LABEL = 30  # most characters in a line of a label


def draw(comparison: RunComparison, folder: Path, days: tuple[float, float] | None = None) -> None:
    """Write the pictures of a comparison to `folder`, each as SVG and PNG.

    ``waits``: the share of all jobs that waited no longer than a time. ``load``: processors in use,
    waiting jobs and waits over time. The runs have the same strokes in both, in their order.
    ``gantt``: the schedules below each other, in a period of days if one is given; their data, to
    zoom on a page, are a file too.
    """
    pictures = {"waits": waits(comparison), "load": load(comparison)}
    if (charts := gantt(comparison, days)) is not None:
        pictures["gantt"] = charts.figure()
        write_charts(charts.data(), folder)
    for name, made in pictures.items():
        style.save(made, folder, name)


@style.applied()
def waits(comparison: RunComparison) -> Figure:
    """Return the distributions of the waits, over all jobs: one that never starts counts too."""
    samples = [np.nan_to_num(run.waits, nan=np.inf) for run in comparison.runs]
    figure = style.new_figure(_height(comparison, 4.5), "Waits")
    axes = figure.subplots()
    draw_waits(axes, np.concatenate(samples), zip(samples, _looks()))
    axes.set_title(f"{len(comparison.jobs['job_id']):,} jobs under each policy")
    _name_lines(axes, comparison.runs)
    return figure


@style.applied()
def load(comparison: RunComparison) -> Figure:
    """Return the processors in use, the waiting jobs and the waits over time, of all runs."""
    begin, end = comparison.span
    unit = unit_for(end - begin)
    figure = style.new_figure(_height(comparison, 7.5), "Load and waits over time")
    panels = figure.subplots(3, 1, sharex=True)
    submit, processors = (
        comparison.jobs[name] for name in ("submission_time", "requested_number_of_resources")
    )
    widest = 0.0
    highest = [1.0, 1.0]
    for run, look in zip(comparison.runs, _looks()):
        start, finish = run.outcome["starting_time"], run.outcome["finish_time"]
        queued = accepted(run.outcome["final_state"])
        loads = (
            held(start, finish, processors, begin, end),
            waiting(submit[queued], start[queued], 1, begin, end),
        )
        for place, (axes, steps) in enumerate(zip(panels, loads)):
            bins = steps.binned(MOST_BINS)
            highest[place] = max(highest[place], float(bins.mean.max()))
            widest = max(widest, bins.width)
            edges = (bins.edges - begin) / unit[0]
            style.draw_steps(axes, bins.mean, edges, baseline=None, fill=False, **look)
    for axes, measured, most in zip(panels, ("processors in use", "waiting jobs"), highest):
        axes.set_ylabel(measured)
        axes.set_ylim(0, 1.05 * most)
        style.count_ticks(axes.yaxis)
    _mean_waits(panels[2], comparison, unit[0])
    if widest:
        panels[0].set_title(f"means of {spoken(widest)}")
    figure.align_ylabels(panels)
    time_axis(panels[2], 0.0, end - begin, unit)
    _name_lines(panels[0], comparison.runs)
    return figure


def _mean_waits(axes: Axes, comparison: RunComparison, unit: float) -> None:
    """Draw the mean wait of the jobs of each interval of submissions, where any of them starts."""
    begin, end = comparison.span
    submit = comparison.jobs["submission_time"]
    edges = np.arange(begin, end + (width := at_least((end - begin) / MOST_BINS)), width)
    at = np.searchsorted(edges, submit, side="right") - 1
    means = []
    for run in comparison.runs:
        ran = np.isfinite(run.waits)
        jobs = np.bincount(at[ran], minlength=len(edges) - 1)
        total = np.bincount(at[ran], run.waits[ran], len(edges) - 1)
        means.append(np.where(jobs > 0, total, np.nan) / np.maximum(jobs, 1))
    highest = 1.5 * max(float(np.max(own[np.isfinite(own)], initial=MINUTE)) for own in means)
    axes.set_yscale("symlog", linthresh=MINUTE, linscale=0.5)
    axes.set_ylim(0, highest)
    log_ticks(axes.yaxis, MINUTE, highest, zero=True)
    for own, look in zip(means, _looks()):
        shown = {"baseline": None, "fill": False, **look}
        style.draw_steps(axes, own, (edges - begin) / unit, **shown)
    axes.set_ylabel("mean wait, log scale")
    axes.set_title(f"by the time of submission, means of {spoken(width)}")


def _looks() -> Iterator[dict[str, Any]]:
    """Yield the look of the line of each run; the baseline shows below a line on top of it."""
    for stroke, width in zip(style.STROKES, chain([2.4], repeat(1.1))):
        yield {"color": stroke.colour, "linestyle": stroke.dashes, "linewidth": width}


def _height(comparison: RunComparison, least: float) -> float:
    """Return the height of a picture with room for the names of all runs, in inches."""
    lines = sum(_label(run.name).count("\n") + 1 for run in comparison.runs)
    return max(least, 1.0 + 0.19 * lines)


def _name_lines(axes: Axes, runs: Sequence[ComparedRun]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **look) for _, look in zip(runs, _looks())]
    legend = axes.legend(lines, ["run"] * len(runs), loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for text, run in zip(legend.get_texts(), runs):  # a legend leaves out names with an underscore
        text.set_text(_label(run.name))


def _label(name: str) -> str:
    lines = textwrap.wrap(name, LABEL, max_lines=3, placeholder=" ...", break_on_hyphens=False)
    return "\n".join(lines) or name


MOST_CHARTS = 8  # most charts; further runs are left out
MOST_RECTANGLES = 500  # most rectangles of a chart in a time that is chosen here
MOST_ASKED = 10_000  # most rectangles of a chart in a time that the user states
ROWS = 100  # most rectangles of the usual height above each other that can be distinguished
HEIGHT = 1.6  # height of a chart, in inches


@dataclass(frozen=True)
class GanttCharts:
    """Charts of the first `MOST_CHARTS` runs: a picture, and data to zoom."""

    comparison: RunComparison
    schedules: Sequence[Schedule]
    part: Window

    @property
    def runs(self) -> Sequence[ComparedRun]:
        """Runs that have a chart."""
        return self.comparison.runs[: len(self.schedules)]

    @style.applied()
    def figure(self) -> Figure:
        """Return the picture."""
        part, span = self.part, self.comparison.span
        boxes = [rectangles(schedule, part) for schedule in self.schedules]
        painted = _same_colors(boxes, part)
        all_runs = len(self.runs) == len(self.comparison.runs)
        title = "The schedules" if all_runs else f"The first {MOST_CHARTS} schedules"
        if (part.begin, part.end) != span:
            since, until = (spoken(at - span[0]) for at in (part.begin, part.end))
            title += f" from {since} to {until} after the first submission"
        figure = style.new_figure(1.2 + HEIGHT * len(self.runs), title)
        panels = figure.subplots(len(self.runs), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        unit = unit_for(span[1] - span[0])
        few = all(len(np.unique(own.job)) <= MOST_LABELS for own in boxes)
        labels = self.comparison.jobs["job_id"] if few else None
        for axes, run, own, color in zip(panels, self.runs, boxes, painted):
            wide = np.minimum(own.end, part.end) - np.maximum(own.begin, part.begin)
            tall = np.minimum(own.high, part.processors) - own.low
            in_use = float(wide @ tall) / (part.end - part.begin) / part.processors
            axes.set_title(f"{run.name}, {in_use:.0%} of processors in use")
            axes.set_ylabel("processor")
            draw_rectangles(axes, own, color, part, span[0], unit[0], labels)
        time_axis(panels[-1], part.begin - span[0], part.end - span[0], unit)
        return figure

    def data(self, most: int = MOST) -> list[dict[str, Any]]:
        """Return the data of charts to zoom, which begin with the part of the picture.

        Their period is longer, as long as no chart has more than its share of `most` rectangles.
        """
        zero = self.comparison.span[0]
        period = self._around(most // len(self.runs))
        view = self.part.begin - zero, self.part.end - zero
        charts = []
        for run, schedule in zip(self.runs, self.schedules):
            places = {"allocated_resources": np.asarray(schedule.texts)}
            jobs = {**self.comparison.jobs, **run.outcome, **places}
            made = chart_data(jobs, shown=((period[0] - zero, period[1] - zero), view))
            charts += [{"name": run.name, **made}] if made else []
        return charts

    def _around(self, most: int) -> tuple[float, float]:
        """Return the longest time around the part, in doublings, with few enough rectangles."""
        span, length = self.comparison.span, self.part.end - self.part.begin
        doublings = math.ceil(math.log2((span[1] - span[0]) / length)) + 1
        more = length * (2.0 ** np.arange(doublings + 1) - 1)
        begins = np.maximum(self.part.begin - more, span[0])
        ends = np.minimum(self.part.end + more, span[1])
        eligible = np.ones(len(more), dtype=bool)
        for one in self.schedules:
            ran = np.isfinite(one.start)
            shown = rectangles_between(one.start[ran], one.until[ran], one.rectangles[ran])
            eligible &= shown(begins, ends) <= most
        longest = int(np.flatnonzero(eligible).max(initial=0))
        return float(begins[longest]), float(ends[longest])


def gantt(comparison: RunComparison, days: tuple[float, float] | None = None) -> GanttCharts | None:
    """Return the charts of runs, for a period in days if one is given.

    By default the time is one in which the schedules differ most from the baseline. None if jobs
    share processors, or hold nodes of a site or boxes of a torus, in any of the runs.
    """
    runs = comparison.runs[:MOST_CHARTS]
    sizes = [size for run in runs for size in [_processors(run)] if size is not None]
    if len(sizes) < len(runs):
        if days is not None:
            reason = "these runs have no Gantt chart; expected jobs alone on a line of processors"
            raise InputError(reason, field="days")
        return None
    span = comparison.span
    schedules = []
    for run in runs:
        kinds = {"allocated_resources": "str"}
        places = read_columns(Path(run.path) / "jobs.parquet", kinds)["allocated_resources"]
        texts = Texts.of([text or "" for text in places.tolist()])
        until = or_end(run.outcome["finish_time"], span[1])
        schedules.append(Schedule(run.outcome["starting_time"], until, texts))
    if days is None:
        part = window(comparison.jobs["requested_number_of_resources"], schedules, max(sizes), span)
    else:
        part = _stated(days, schedules, max(sizes), span)
    return GanttCharts(comparison, schedules, part)


def _processors(run: ComparedRun) -> int | None:
    """Return the number of processors, None if jobs do not hold processors of a line alone."""
    spec = run.config["machine"]
    kind = spec.partition(":")[0]
    if kind not in registry.machines or "node_time" in run.summary:  # the boxes of a torus
        return None
    machine = registry.machines[kind]
    if machine.time_shared or issubclass(machine, SiteMachine):
        return None
    return read_machine(spec).size


def window(
    processors: NDArray[np.int64],
    schedules: Sequence[Schedule],
    size: int,
    span: tuple[float, float],
    most: int = MOST_RECTANGLES,
) -> Window:
    """Return the part of the schedules to show, see `busiest_part`.

    Its time is one in which many processors are held by jobs that run under one policy and not
    under the other.
    """
    difference = partial(_difference, processors, schedules, span)
    return busiest_part(processors, schedules, size, span, difference, most, ROWS)


def _difference(
    processors: NDArray[np.int64], schedules: Sequence[Schedule], span: tuple[float, float]
) -> Steps:
    """Return the processors held by jobs that run in a schedule or in the first, not in both."""
    base, *others = schedules
    stays = [
        (begin[held], end[held], sign * processors[held])
        for other in others
        for begin, end, sign in (
            (base.start, base.until, 1),
            (other.start, other.until, 1),
            (np.maximum(base.start, other.start), np.minimum(base.until, other.until), -2),
        )
        for held in [begin < end]  # not where one is nan
    ]
    since, until, amounts = map(np.concatenate, zip(*stays))
    found = Steps.from_stays(since, until, amounts, *span)
    if found.values.any():
        return found
    ran = np.isfinite(base.start)  # all are the same: the processors in use
    return Steps.from_stays(base.start[ran], base.until[ran], processors[ran], *span)


def _stated(
    days: tuple[float, float], schedules: Sequence[Schedule], size: int, span: tuple[float, float]
) -> Window:
    """Return the part that the user states, in days since the first submission."""
    begin, end = (span[0] + DAY * day for day in days)
    if begin >= span[1]:
        reason = f"{days[0]:g}:{days[1]:g}; expected a part of {spoken(span[1] - span[0])}"
        raise InputError(reason, field="days")
    part = Window(begin, min(end, span[1]), size)
    most = max(
        int(one.rectangles[(one.start < part.end) & (one.until > part.begin)].sum())
        for one in schedules
    )
    if most > MOST_ASKED:
        reason = f"{most:,} rectangles in one chart; expected a time with at most {MOST_ASKED:,}"
        raise InputError(reason, field="days")
    return part


def _same_colors(charts: Sequence[Rectangles], part: Window) -> list[NDArray[np.int64]]:
    """Return the color of each rectangle of each chart; a job has one color in all of them."""
    apart = (1 + 2 / NEARBY) * part.processors  # no chart has borders with the next
    columns = [
        (own.job, own.begin, own.end, own.low + int(place * apart), own.high + int(place * apart))
        for place, own in enumerate(charts)
    ]
    every = Rectangles(*map(np.concatenate, zip(*columns)))
    color = colors(every, part.end - part.begin, part.processors)
    return np.split(color, np.cumsum([len(own.job) for own in charts])[:-1])
