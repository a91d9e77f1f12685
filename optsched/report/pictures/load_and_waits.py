"""Load and waits of a run: processors in use, waiting jobs and work over time, and the waits."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.numbers import counted, spoken
from optsched.registry import pictures
from optsched.report import load, style
from optsched.report.load import extended, log_ticks, thinned, time_axis, unit_for
from optsched.report.pictures import RunFacts, RunPicture
from optsched.schedule import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.simulator.run import Run

MOST_BINS = 200  # most bins of a line that stays readable: weeks of a trace of two years


@pictures.register("utilization")
class Utilization(RunPicture):
    """Processors in use, waiting jobs and waiting work over time."""

    rank = 20

    @style.applied()
    def figure(self, run: Run, days: load.Days | None = None) -> Figure:
        """Draw three panels over one time axis: processors in use, waiting jobs, waiting work.

        Parameters
        ----------
        days : (float, float), optional
            Period to show, in days since the first submission; by default the whole run.
        """
        zero, run_end = load.span(run)
        begin, end = load.period(run, days)
        unit = unit_for(run_end - zero)
        size = run.machine.size
        loads = (load.processors_in_use, load.waiting_jobs, load.waiting_work)
        shown = (of(run).between(begin, end) for of in loads)  # one at a time in memory
        binned, highest = zip(*((one.binned(MOST_BINS), float(one.values.max())) for one in shown))
        work_unit, work_name = unit_for(highest[-1] / size)
        shared = run.machine.time_shared
        held = "processors of jobs\nthat share them" if shared else "processors in use"
        series = (
            (held, 1.0, style.LINES[0]),
            ("waiting jobs", 1.0, style.LINES[1]),
            (f"waiting work\n(machine-{work_name})", size * work_unit, style.LINES[2]),
        )
        drawing = style.new_figure(6.0, load.subject(run))
        panels = drawing.subplots(3, 1, sharex=True, height_ratios=(2, 1, 1))
        for axes, bins, most, (label, scale, color) in zip(panels, binned, highest, series):
            most /= scale
            style.subtitle(axes, f"highest: {most:,.0f}" if most >= 100 else f"highest: {most:.3g}")
            _draw(axes, bins, zero, unit[0], scale, color)
            if style.is_narrow():  # the panels are lower than the labels are long
                axes.set_title(label.replace("\n", " "))
            else:
                axes.set_ylabel(label)
            axes.set_ylim(0, 1.05 * max(1.0, float(max(bins.high.max(), bins.mean.max())) / scale))
            style.count_ticks(axes.yaxis)
        drawing.align_ylabels(panels)
        top, bottom = panels[0], panels[-1]
        top.axhline(size, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)))
        top.set_ylim(0, 1.06 * max(size, binned[0].high.max(), binned[0].mean.max()))
        width = max(bins.width for bins in binned)
        if not style.is_narrow():
            told = _caption(run, width) if days is None else _of_days(days, binned[0], size)
            style.subtitle(top, told)
        time_axis(bottom, begin - zero, end - zero, unit)
        return drawing

    def caption(self, facts: RunFacts) -> str:
        held = "Processors of jobs that share them" if facts.time_shared else "Processors in use"
        return f"{held}, waiting jobs and waiting work over time."

    def words(self, facts: RunFacts) -> str:
        summary, jobs, shared = facts.summary, facts.jobs, facts.time_shared
        queued = jobs["final_state"] != State.REJECTED
        names = ("submission_time", "starting_time", "finish_time", "requested_number_of_resources")
        submit, start, finish, processors = (jobs[name][queued] for name in names)
        span = load.span_of(float(jobs["submission_time"].min()), submit, start, finish)
        in_use = load.held(start, finish, processors, *span)
        waiting = load.waiting(submit, start, 1, *span)
        mean = summary["utilization"]
        whose = "of running jobs, which share them" if shared else "in use"
        words = "" if mean is None else f"; a utilization of {mean:.1%}"
        return (
            f"Load over time: at most {in_use.values.max():,.0f} processors {whose}{words};"
            f" at most {counted(int(waiting.values.max()), 'job')} waiting."
        )


def _draw(
    axes: Axes, bins: load.Binned, begin: float, unit: float, scale: float, color: str
) -> None:
    edges = (bins.edges - begin) / unit
    mean, low, high = bins.mean / scale, bins.low / scale, bins.high / scale
    area: dict[str, Any] = {"facecolor": color, "linewidth": 0}
    if bins.width:
        style.draw_steps(axes, high, edges, baseline=low, alpha=0.18, **area)
    else:
        style.draw_steps(axes, mean, edges, alpha=0.25, **area)
    line: dict[str, Any] = {"edgecolor": color, "fill": False}
    style.draw_steps(axes, mean, edges, baseline=None, linewidth=1.0, **line)


def _of_days(days: load.Days, in_use: load.Binned, size: int) -> str:
    share = np.average(in_use.mean, weights=np.diff(in_use.edges)) / size
    words = [f"{load.spoken_days(days)}, {share:.1%} of {size:,} processors in use"]
    return "; ".join(words + _bins(in_use.width))


def _bins(width: float) -> list[str]:
    return [f"line: mean of {spoken(width)}, band: 10th to 90th percentile"] if width else []


def _caption(run: Run, width: float) -> str:
    """Return a caption of the lines, and the number of jobs that the picture cannot show."""
    used = run.summary["utilization"]
    words = [] if used is None else [f"utilization {used:.1%} of {run.machine.size:,} processors"]
    words += _bins(width)
    words += [
        f"{run.summary[name]:,} {text}"
        for name, text in (("rejected", "rejected"), ("waiting", "still waiting at the end"))
        if run.summary[name]
    ]
    return "; ".join(words)


MOST_POINTS = 400
SHARES = (64, 8)
"""Parts of the machine: small jobs have at most a 64th, large ones more than an eighth."""


class SizeClass(NamedTuple):
    """Jobs of `low` to `high` processors, with a mask of the jobs."""

    low: int
    high: int
    jobs: NDArray[np.bool]


def size_classes(processors: NDArray[np.int64], machine_size: int) -> list[SizeClass]:
    """Return the jobs by size: one processor, up to a 64th, an eighth, all of the machine.

    Classes without a job are left out.
    """
    bounds = sorted({0, 1, *(machine_size // share for share in SHARES), machine_size})
    classes = []
    for below, high in pairwise(bounds):
        jobs = (processors > below) & (processors <= high)
        if jobs.any():
            classes.append(SizeClass(below + 1, high, jobs))
    return classes


def ecdf(waits: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each different finite wait, in order, and the share of jobs that waited no longer.

    The wait of a job that never started is infinite, and counts too.
    """
    values, counts = np.unique(waits, return_counts=True)
    finite = np.isfinite(values)
    shares = np.cumsum(counts) / max(1, len(waits))
    return values[finite], shares[finite]


@pictures.register("waits")
class Waits(RunPicture):
    """Distribution of the waits, by size of the jobs."""

    rank = 30

    @style.applied()
    def figure(self, run: Run, days: load.Days | None = None) -> Figure:
        """Draw the distribution of the waits, on an axis with 0 and logarithmic from 1 s.

        Parameters
        ----------
        days : (float, float), optional
            Period in which the jobs were submitted, in days since the first submission; by default
            all jobs.
        """
        begin, end = load.period(run, days)
        submit = np.asarray(run.trace.submit, dtype=np.float64)
        queued = load.accepted(run.state) & (submit >= begin) & (submit <= end)
        waits = np.where(np.isfinite(run.start), run.start - submit, np.inf)[queued]
        classes = size_classes(run.trace.processors[queued], run.machine.size)
        narrow = style.is_narrow()
        everyone = "all" if narrow else f"all {len(waits):,} jobs"
        curves = {everyone: waits} if len(classes) > 1 else {}
        for own in classes:
            number = counted(int(own.jobs.sum()), "job")
            size = f"{own.high:,}" if own.low == own.high else f"{own.low:,} to {own.high:,}"
            of_size = "1 processor" if own.high == 1 else f"{size} processors"
            curves[size if narrow else f"{of_size} ({number})"] = waits[own.jobs]
        drawing = style.new_figure(4.5, load.subject(run))
        axes = drawing.subplots()
        looks: list[dict[str, Any]] = [{"color": style.INK, "linewidth": 2.0}]
        looks += [{"color": color, "linewidth": 1.3} for color in style.LINES]
        lines = zip(curves.items(), looks)
        draw_waits(axes, waits, [(own, {**look, "label": name}) for (name, own), look in lines])
        submitted = "" if days is None else f"submitted in {load.spoken_days(days)}: "
        style.subtitle(axes, submitted + in_words(waits))
        if curves:
            style.legend_beside(axes, title="processors" if narrow else None)
        return drawing

    def caption(self, facts: RunFacts) -> str:
        return "Waits of jobs by size: the share of the jobs that waited no longer than a time."

    def words(self, facts: RunFacts) -> str:
        queued = load.accepted(facts.jobs["final_state"])
        waits = np.nan_to_num(facts.jobs["waiting_time"][queued], nan=np.inf)
        return f"Distribution of the waits: {in_words(waits)}."


def draw_waits(
    axes: Axes,
    waits: NDArray[np.float64],
    curves: Iterable[tuple[NDArray[np.float64], dict[str, Any]]],
) -> None:
    """Draw distributions of waits, each with the look of its line, on an axis for all `waits`."""
    right = 1.5 * max(60.0, float(np.max(waits[np.isfinite(waits)], initial=0.0)))
    for one, look in curves:
        axes.step(*curve(one, right), where="post", **look)
    axes.set_xscale("symlog", linthresh=1.0, linscale=0.5)
    axes.set_xlim(0, right)
    log_ticks(axes.xaxis, 1.0, right, zero=True)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter("{x:.0%}")
    narrow = style.is_narrow()
    axes.set_xlabel("wait" if narrow else "wait (linear up to 1 s, logarithmic beyond)")
    axes.set_ylabel("share of jobs" if narrow else "share of jobs that waited no longer")


def curve(waits: NDArray[np.float64], right: float) -> list[NDArray[np.float64]]:
    """Return the distribution from 0 to the right edge, thinned if it has very many steps."""
    values, shares = ecdf(waits)
    below, beyond = values < 1.0, values >= 1.0
    kept = np.concatenate(
        (np.flatnonzero(below), np.flatnonzero(beyond)[thinned(values[beyond], MOST_POINTS)])
    )
    return extended(values[kept], shares[kept], (0.0, 0.0), right)


def in_words(waits: NDArray[np.float64]) -> str:
    """Return quantiles of the waits in words; infinite waits are of jobs that never started."""
    if not len(waits):
        return "no job joined the queue"
    never = int(np.count_nonzero(np.isinf(waits)))
    words = [f"{np.count_nonzero(waits == 0) / len(waits):.1%} of the jobs started at once"]
    for share, name in ((0.5, "half"), (0.95, "95%"), (1.0, "all")):
        within = float(np.quantile(waits, share, method="inverted_cdf"))
        if np.isfinite(within) and within > 0:
            words.append(f"{name} within {spoken(within)}")
    if never:
        words.append(f"{never:,} never")
    return ", ".join(words)
