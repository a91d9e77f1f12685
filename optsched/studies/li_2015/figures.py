"""The pictures of the study: Figures 5 to 7, where the node time goes, the waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from optsched.metrics.node_time import PARTS
from optsched.report import style
from optsched.report.pictures.histogram import FILLS
from optsched.studies.li_2015.evaluation import LEVELS, NODE_TIME, of, variants, workloads
from optsched.studies.li_2015.plan import CEILING, OWN, PUBLISHED
from optsched.studies.panels import legend, panels_of, rows_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MARKS = "os^Dv"

HOUR = 3600


def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    drawn = {
        f"figure-{window['figure']}": _histograms(frame, name, **window)
        for name, window in OWN.items()
    }
    return drawn | {"node-time": _node_time(frame), "waits": _waits(frame)}


def _height(names: Sequence[str], row: float) -> float:
    return 0.8 + row * rows_of(len(names))


def _histograms(frame: pd.DataFrame, variant: str, depth: int, figure: int) -> Figure:
    """Draw the share of the recorded time by level of nodes held and running."""
    from matplotlib.ticker import PercentFormatter

    names = workloads(frame)
    title = f"Figure {figure}. Recorded time by utilization, scan window of {depth}"
    with style.applied():
        drawn = style.new_figure(_height(names, 2.0), title)
        panels = panels_of(drawn, names)
        for panel, name in zip(panels, names):
            own = frame[frame["workload"] == name]
            held, running = (
                [np.nan_to_num(of(own, variant, f"{metric}.{level}").mean()) for level in LEVELS]
                for metric in ("recorded_held", "recorded_running")
            )
            edges = [*LEVELS, 100]
            panel.stairs(held, edges, fill=True, color=style.FAINT, label="held")
            panel.stairs(running, edges, color=style.LINES[0], linewidth=1.5, label="running")
            panel.axvline(
                100 * PUBLISHED["utilization"], color=style.GREY, linewidth=0.8, linestyle="--"
            )
            panel.xaxis.set_major_formatter(PercentFormatter(decimals=0))
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            panel.set_xlim(0, 100)
        drawn.supxlabel("share of the nodes (dashed: the paper's level)", fontsize=9)
        drawn.supylabel("share of the recorded time", fontsize=9)
        legend(drawn, panels[0])
    return drawn


def _node_time(frame: pd.DataFrame) -> Figure:
    """Draw the parts of the recorded node time of each variant, side by side."""
    from matplotlib.ticker import PercentFormatter

    names = workloads(frame)
    shown = [name for name in variants(frame) if name != CEILING]
    places = np.arange(len(shown))[::-1]
    with style.applied():
        figure = style.new_figure(
            _height(names, 0.6 + 0.22 * len(shown)), "Where the recorded node time goes"
        )
        panels = panels_of(figure, names)
        for panel, name in zip(panels, names):
            own = frame[frame["workload"] == name]
            left = np.zeros(len(shown))
            for part, colour in zip(PARTS, FILLS):
                width = np.array([of(own, one, NODE_TIME[part]).mean() for one in shown])
                width = np.nan_to_num(width)
                panel.barh(places, width, 0.75, left, color=colour, label=part)
                left += width
            panel.set_xlim(0, 1)
            panel.set_yticks(places, shown)
            panel.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            panel.grid(axis="y", visible=False)
        legend(figure, panels[0], "below")
    return figure


def _waits(frame: pd.DataFrame) -> Figure:
    """Draw the mean waits of each variant, of all jobs and of large ones, over those on nodes."""
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    shown = variants(frame)
    places = np.arange(len(shown))[::-1]
    with style.applied():
        figure = style.new_figure(1.2 + 0.28 * len(shown), "Mean waits, in hours")
        panels = figure.subplots(1, 2, sharey=True)
        for panel, (metric, title) in zip(
            panels, (("mean_wait", "all jobs"), ("large_mean_wait", "large jobs"))
        ):
            for name, colour, mark in zip(workloads(frame), style.LINES, MARKS):
                own = frame[frame["workload"] == name]
                hours = [of(own, one, metric).mean() / HOUR for one in shown]
                panel.plot(hours, places, mark, color=colour, markersize=5, label=name)
            panel.set_xscale("log")
            panel.xaxis.set_major_locator(LogLocator(subs=(1.0,)))
            panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            panel.set_title(title)
            panel.set_xlabel("hours")
            panel.set_yticks(places, shown)
        legend(figure, panels[0], "below")
    return figure
