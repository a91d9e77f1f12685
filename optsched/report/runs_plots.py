"""Pictures of a comparison of runs: waits, load over time, and Gantt charts."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.durations import MINUTE, spoken
from optsched.report import style
from optsched.report.gantt_chart import write_charts
from optsched.report.pictures.utilization import MOST_BINS
from optsched.report.pictures.waits import curve
from optsched.report.runs_gantt import gantt
from optsched.report.steps import Steps, at_least, log_ticks, time_axis, unit_for
from optsched.schedule import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.report.run_comparison import ComparedRun, RunComparison

LABEL = 30
"""Most characters in a line of a label."""


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
    longest = max(float(np.max(own[np.isfinite(own)], initial=0.0)) for own in samples)
    right = 1.5 * max(60.0, longest)
    figure = style.new_figure(_height(comparison, 4.5), "Waits")
    axes = figure.subplots()
    for sample, look in zip(samples, _looks()):
        axes.step(*curve(sample, right), where="post", **look)
    axes.set_xscale("symlog", linthresh=1.0, linscale=0.5)
    axes.set_xlim(0, right)
    log_ticks(axes.xaxis, 1.0, right, zero=True)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xlabel("wait (linear up to 1 s, logarithmic beyond)")
    axes.set_ylabel("share of jobs that waited no longer")
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
    parts: list[tuple[Axes, str, Callable[..., Steps]]] = [
        (panels[0], "processors in use", _in_use),
        (panels[1], "waiting jobs", _waiting),
    ]
    widths = []
    for axes, label, of in parts:
        highest = 1.0
        for run, look in zip(comparison.runs, _looks()):
            bins = of(comparison, run, begin, end).binned(MOST_BINS)
            highest = max(highest, float(bins.mean.max()))
            widths.append(bins.width)
            edges = (bins.edges - begin) / unit[0]
            style.draw_steps(axes, bins.mean, edges, baseline=None, fill=False, **look)
        axes.set_ylabel(label)
        axes.set_ylim(0, 1.05 * highest)
        style.count_ticks(axes.yaxis)
    _mean_waits(panels[2], comparison, unit[0])
    if max(widths):
        panels[0].set_title(f"means of {spoken(max(widths))}")
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


def _in_use(comparison: RunComparison, run: ComparedRun, begin: float, end: float) -> Steps:
    start, finish = run.outcome["starting_time"], run.outcome["finish_time"]
    ran = np.isfinite(start)
    held = comparison.jobs["requested_number_of_resources"][ran]
    return Steps.from_stays(start[ran], _until(finish[ran], end), held, begin, end)


def _waiting(comparison: RunComparison, run: ComparedRun, begin: float, end: float) -> Steps:
    """Return the number of submitted jobs that have not started, without the rejected ones."""
    queued = ~np.isin(run.outcome["final_state"], (State.REJECTED, State.UNSUBMITTED))
    submit = comparison.jobs["submission_time"][queued]
    until = _until(run.outcome["starting_time"][queued], end)
    return Steps.from_stays(submit, until, np.ones(len(submit)), begin, end)


def _until(times: NDArray[np.float64], end: float) -> NDArray[np.float64]:
    return np.where(np.isfinite(times), times, end)


def _looks() -> Iterator[dict[str, Any]]:
    """Yield the look of the line of each run; the baseline shows below a line on top of it."""
    for stroke, width in zip(style.STROKES, chain([2.4], repeat(1.1))):
        yield {"color": stroke.colour, "linestyle": stroke.dashes, "linewidth": width}


def _height(comparison: RunComparison, least: float) -> float:
    """Return the height of a picture with room for the names of all runs, in inches."""
    lines = sum(_label(run.name).count("\n") + 1 for run in comparison.runs)
    return max(least, 1.0 + 0.19 * lines)


def _name_lines(axes: Axes, runs: Sequence[ComparedRun]) -> None:
    """Write the names of the runs to the right of the axes."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], **look) for _, look in zip(runs, _looks())]
    legend = axes.legend(lines, ["run"] * len(runs), loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for text, run in zip(legend.get_texts(), runs):  # a legend leaves out names with an underscore
        text.set_text(_label(run.name))


def _label(name: str) -> str:
    lines = textwrap.wrap(name, LABEL, max_lines=3, placeholder=" ...", break_on_hyphens=False)
    return "\n".join(lines) or name
