"""Processors in use, waiting jobs and waiting work over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.numbers import counted, spoken
from optsched.registry import pictures
from optsched.report import load, style
from optsched.report.load import Steps, time_axis, unit_for
from optsched.report.run_picture import RunFacts, RunPicture
from optsched.schedule import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.report.load import Binned
    from optsched.simulator.run import Run

MOST_BINS = 200
"""Most bins of a line that stays readable: weeks of a trace of two years."""


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
        binned, highest = zip(*map(_shortened, shown))
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
        names = ("submission_time", "starting_time", "finish_time")
        submit, start, finish = (jobs[name][queued] for name in names)
        begin = float(jobs["submission_time"].min())
        end = begin + 1.0
        for times in (submit, start, finish):
            end = max(end, float(np.nanmax(times, initial=begin)))
        ran = np.isfinite(start)
        until = np.nan_to_num(finish[ran], nan=end)
        held = jobs["requested_number_of_resources"][queued][ran]
        in_use = Steps.from_stays(start[ran], until, held, begin, end)
        waits = submit, np.nan_to_num(start, nan=end)
        waiting = Steps.from_stays(*waits, np.ones(len(submit)), begin, end)
        mean = summary["utilization"]
        whose = "of running jobs, which share them" if shared else "in use"
        words = "" if mean is None else f"; a utilization of {mean:.1%}"
        return (
            f"Load over time: at most {in_use.values.max():,.0f} processors {whose}{words};"
            f" at most {counted(int(waiting.values.max()), 'job')} waiting."
        )


def _shortened(steps: Steps) -> tuple[Binned, float]:
    """Return a function by bins, and its highest value."""
    return steps.binned(MOST_BINS), float(steps.values.max())


def _draw(axes: Axes, bins: Binned, begin: float, unit: float, scale: float, color: str) -> None:
    edges = (bins.edges - begin) / unit
    mean, low, high = bins.mean / scale, bins.low / scale, bins.high / scale
    area: dict[str, Any] = {"facecolor": color, "linewidth": 0}
    if bins.width:
        style.draw_steps(axes, high, edges, baseline=low, alpha=0.18, **area)
    else:
        style.draw_steps(axes, mean, edges, alpha=0.25, **area)
    line: dict[str, Any] = {"edgecolor": color, "fill": False}
    style.draw_steps(axes, mean, edges, baseline=None, linewidth=1.0, **line)


def _of_days(days: load.Days, in_use: Binned, size: int) -> str:
    """Return a caption of the lines of a period."""
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
