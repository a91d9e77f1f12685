"""The pictures of the study: Figures 3 to 8 of the paper, and how the variants differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.report import style
from optsched.studies.franke_1999.evaluation import (
    BACKFILLING,
    FCFS,
    METRICS,
    STRATEGIES,
    baseline,
    compared,
    keeping_up,
)
from optsched.studies.franke_1999.plan import PUBLISHED, SHOWN, SKIPPED, VARIANTS
from optsched.studies.panels import legend, panels_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


HOUR = 3600


class ByUtilization(NamedTuple):
    """A picture of Figures 5 to 8: its number, the metric, and the variant of gang scheduling."""

    number: int
    metric: str
    variant: str


FIGURES = {
    f"figure-{number}-{variant.partition(',')[0]}": ByUtilization(number, metric, variant)
    for number, metric in enumerate(METRICS, 5)
    for variant in (SHOWN, SKIPPED)
}

MARKS = dict(zip(STRATEGIES, "svo^D"))


def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    drawn = {
        "figure-3": _distribution(frame, "Figure 3. Job sizes of the baseline", work=False),
        "figure-4": _distribution(frame, "Figure 4. CPU time of the baseline by size", work=True),
    }
    drawn |= {
        name: _by_utilization(compared(frame, shown.variant), shown)
        for name, shown in FIGURES.items()
    }
    return drawn | {"variants": _variants(frame)}


def _distribution(frame: pd.DataFrame, title: str, *, work: bool) -> Figure:
    """Draw the jobs of each size, by number or by work, and those of at most each size."""
    trace = baseline(frame)
    hours = trace.runtime / HOUR
    amount = trace.processors * hours if work else np.ones(len(trace))
    of_size = np.bincount(trace.processors, amount)
    sizes = np.arange(len(of_size))[1:]
    label = "node-hours" if work else "jobs"
    with style.applied():
        figure = style.new_figure(3.0, title)
        left, right = figure.subplots(1, 2, sharex=True)
        left.bar(sizes, of_size[1:], width=1.0, color=style.LINES[0])
        left.set_ylabel(f"{label} of the size")
        right.step(sizes, np.cumsum(of_size)[1:], where="mid", color=style.LINES[0])
        right.set_ylabel(f"{label} of at most the size")
        for axes in (left, right):
            axes.axvline(
                PUBLISHED["large_from"] - 0.5, color=style.GREY, linewidth=0.8, linestyle="--"
            )
            axes.set_xlabel("nodes (dashed: from here on large)")
            axes.set_ylim(0)
            style.count_ticks(axes.yaxis)
    return figure


def _by_utilization(table: pd.DataFrame, what: ByUtilization) -> Figure:
    """Draw a metric against utilization, a panel for each interarrival factor."""
    from matplotlib.ticker import StrMethodFormatter

    metric = what.metric
    factors = list(table.index.get_level_values("interarrival").unique())
    shown = keeping_up(table, BACKFILLING)
    highest = float(shown[metric].to_numpy().max()) / HOUR
    with style.applied():
        figure = style.new_figure(
            6.4, f"Figure {what.number}. Mean {METRICS[metric]}, by utilization; {what.variant}"
        )
        panels = panels_of(figure, [f"interarrival factor {factor:g}" for factor in factors])
        for panel, factor in zip(panels, factors):
            own = table.xs(factor, level="interarrival")
            for colour, strategy in zip(style.LINES, STRATEGIES):
                if (metric, strategy) not in own:
                    continue
                panel.plot(
                    own["utilization", strategy],
                    own[metric, strategy] / HOUR,
                    color=colour,
                    marker=MARKS[strategy],
                    markersize=3,
                    linewidth=1.0,
                    label=strategy,
                )
        panels[0].set_yscale("log")
        panels[0].yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        panels[0].set_ylim(top=1.1 * highest)
        figure.supxlabel("utilization", fontsize=9)
        figure.supylabel("hours", fontsize=9)
        legend(figure, panels[0])
    return figure


def _variants(frame: pd.DataFrame) -> Figure:
    """Draw the gain of gang scheduling over backfilling, by offered load, for each variant."""
    from matplotlib.ticker import LogFormatter, StrMethodFormatter

    with style.applied():
        figure = style.new_figure(
            5.2, "Mean response time over that of perfect backfilling, by variant"
        )
        panels = figure.subplots(2, 3, sharex=True, sharey=True)
        for panel, variant in zip(panels.flat, VARIANTS):
            table = compared(frame, variant)
            for colour, strategy in zip(style.LINES, STRATEGIES):
                if strategy == BACKFILLING or ("mean_response", strategy) not in table:
                    continue
                _points(panel, table, strategy, colour)
            panel.axhline(1.0, color=style.GREY, linewidth=0.8)
            panel.set_title(variant)
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            panel.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.4)))
        for panel in panels[-1]:
            panel.set_xlabel("offered load")
        for row in panels:
            row[0].set_ylabel("times backfilling")
        legend(figure, panels[0, 0])
    return figure


def _points(panel: Axes, table: pd.DataFrame, strategy: str, colour: str) -> None:
    both = keeping_up(table, strategy, BACKFILLING)
    panel.plot(
        both["offered", FCFS],
        both["mean_response", strategy] / both["mean_response", BACKFILLING],
        linestyle="none",
        color=colour,
        marker=MARKS[strategy],
        markersize=3,
        label=strategy,
    )
