"""The pictures of the study: Figures 3 to 8 of the paper, how the variants differ, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.report import style
from optsched.report.pictures.matrix import MatrixRows
from optsched.simulator.simulate import simulate
from optsched.studies.franke_1999.evaluation import (
    BACKFILLING,
    FCFS,
    METRICS,
    STRATEGIES,
    baseline,
    compared,
    keeping_up,
)
from optsched.studies.franke_1999.plan import PUBLISHED, SHARED, SHOWN, SKIPPED
from optsched.studies.franke_1999.sensitivity import CLAIMED, CLAIMED_OF_LARGE, ONE_ROW, cases
from optsched.studies.panels import legend, paneled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


HOUR = 3600

FIRST_JOBS = 300
"""The jobs of the picture of the matrix."""

FIGURES: Mapping[str, Mapping[str, Any]] = {
    f"figure-{number}-{variant.partition(',')[0]}": {
        "number": number,
        "metric": metric,
        "variant": variant,
    }
    for number, metric in enumerate(METRICS, 5)
    for variant in (SHOWN, SKIPPED)
}
"""Figures 5 to 8, each with two variants of gang scheduling."""

LOOKS: Mapping[str, Mapping[str, Any]] = {
    name: {"color": colour, "marker": mark, "markersize": 3, "label": name}
    for name, colour, mark in zip(STRATEGIES, style.LINES, "svo^D")
}
"""The look of the curves and points of each strategy."""


@style.applied()
def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    drawn = {
        "figure-3": _distribution(frame, "Figure 3. Job sizes of the baseline", work=False),
        "figure-4": _distribution(frame, "Figure 4. CPU time of the baseline by size", work=True),
    }
    drawn |= {name: _by_utilization(frame, **shown) for name, shown in FIGURES.items()}
    drawn |= {"variants": _variants(frame), "changes": _changes(frame)}
    return drawn | {"matrix": _matrix(frame)}


def _distribution(frame: pd.DataFrame, title: str, *, work: bool) -> Figure:
    """Draw the jobs of each size, by number or by work, and those of at most each size."""
    trace = baseline(frame)
    hours = trace.runtime / HOUR
    amount = trace.processors * hours if work else np.ones(len(trace))
    of_size = np.bincount(trace.processors, amount)
    sizes = np.arange(len(of_size))[1:]
    label = "node-hours" if work else "jobs"
    figure = style.new_figure(3.0, title)
    left, right = figure.subplots(1, 2, sharex=True)
    left.bar(sizes, of_size[1:], width=1.0, color=style.LINES[0])
    left.set_ylabel(f"{label} of the size")
    right.step(sizes, np.cumsum(of_size)[1:], where="mid", color=style.LINES[0])
    right.set_ylabel(f"{label} of at most the size")
    for axes in (left, right):
        axes.axvline(PUBLISHED["large_from"] - 0.5, linestyle="--", **style.RULE)
        axes.set_xlabel("nodes (dashed: from here on large)")
        axes.set_ylim(0)
        style.count_ticks(axes.yaxis)
    return figure


def _by_utilization(frame: pd.DataFrame, number: int, metric: str, variant: str) -> Figure:
    """Draw a metric against utilization, a panel for each interarrival factor."""
    table = compared(frame, variant)
    highest = float(keeping_up(table, BACKFILLING)[metric][list(STRATEGIES)].to_numpy().max())
    by_factor = {
        f"interarrival factor {factor:g}": table.xs(factor, level="interarrival")
        for factor in table.index.get_level_values("interarrival").unique()
    }
    title = f"Figure {number}. Mean {METRICS[metric]}, by utilization; {variant}"
    figure, panels = paneled(title, list(by_factor), row=0.0, margin=6.4)
    for panel, own in zip(panels, by_factor.values()):
        for name, look in LOOKS.items():
            if (metric, name) in own:
                seconds = own[metric, name].clip(lower=1.0)  # a logarithmic axis has no 0
                panel.plot(own["utilization", name], seconds, linewidth=1.0, **look)
    panels[0].set_yscale("log")
    style.log_labels(panels[0].yaxis, powers=1)
    panels[0].set_ylim(top=1.1 * highest)
    figure.supxlabel("utilization")
    figure.supylabel("seconds")
    legend(figure, panels[0])
    return figure


def _variants(frame: pd.DataFrame) -> Figure:
    """Draw the gain of gang scheduling over backfilling, by offered load, for each variant."""
    title = "Mean response time over that of perfect backfilling, by variant"
    figure = style.new_figure(5.2, title)
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    for panel, variant in zip(panels.flat, SHARED):
        table = compared(frame, variant)
        for name, look in LOOKS.items():
            if name != BACKFILLING and ("mean_response", name) in table:
                both = keeping_up(table, name, BACKFILLING)
                times = both["mean_response", name] / both["mean_response", BACKFILLING]
                panel.plot(both["offered", FCFS], times, linestyle="none", **look)
        panel.axhline(1.0, **style.RULE)
        panel.set_title(variant)
        panel.set_yscale("log")
        style.log_labels(panel.yaxis)
    for panel in panels[-1]:
        panel.set_xlabel("offered load")
    for row in panels:
        row[0].set_ylabel("times backfilling")
    legend(figure, panels[0, 0])
    return figure


def _changes(frame: pd.DataFrame) -> Figure:
    """Draw ratios to backfilling, with their intervals, a row for each changed workload."""
    found = cases(frame)
    figure = style.new_figure(1.0 + 0.22 * len(found), "Response time over that of backfilling")
    panels = figure.subplots(1, 2, sharey=True)
    shown = {
        "all jobs": {"MPL 5": CLAIMED, "a single row": ONE_ROW},
        "large jobs": {"MPL 3": CLAIMED_OF_LARGE},
    }
    rows = np.arange(len(found))[::-1]
    for panel, (jobs, quantities) in zip(panels, shown.items()):
        for name, quantity in quantities.items():
            mean, low, high = np.array([case.ratios[quantity][:3] for case in found]).T
            look = {"color": style.GREY, "marker": "|"} | dict(LOOKS.get(name, {}))
            ends = np.nan_to_num([mean - low, high - mean])
            panel.errorbar(mean, rows, xerr=ends, linestyle="none", **look | {"label": name})
        panel.axvline(1.0, **style.RULE)
        panel.set_title(jobs)
        panel.set_xscale("log")
        style.log_labels(panel.xaxis)
        panel.set_xlabel("times backfilling")
        panel.legend(loc="best")
    panels[0].set_yticks(rows, [case.words for case in found])
    return figure


def _matrix(frame: pd.DataFrame) -> Figure:
    """Draw the matrix under the first jobs of the baseline."""
    admission, sharing = SHOWN.split(", ")
    jobs = baseline(frame).jobs(1, FIRST_JOBS)
    settings = {"mpl": 3, "admission": admission, "sharing": sharing}
    run = simulate(jobs, f"matrix:{PUBLISHED['nodes']}", "gang", settings=settings, journal=True)
    figure = MatrixRows().figure(run)
    title = f"The Ousterhout matrix under the first {FIRST_JOBS} jobs of the baseline"
    figure.suptitle(title, x=0.01, ha="left")
    figure.supylabel("nodes")
    return figure
