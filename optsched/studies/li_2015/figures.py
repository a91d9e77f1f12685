"""The pictures of the study: Figures 5 to 7, where the node time goes, the waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from optsched.report import style
from optsched.report.pictures.histogram import FILLS
from optsched.studies.li_2015.evaluation import LEVELS, NODE_TIME, of, read_as, variants
from optsched.studies.li_2015.plan import CEILING, OWN, PUBLISHED
from optsched.studies.panels import legend, paneled, stacked_shares
from optsched.studies.results import by_workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MARKS = "os^Dv"

HOUR = 3600


@style.applied()
def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name; Figures 5 to 7 of the proactive scan."""
    proactive = read_as(frame, "proactive")
    drawn = {
        f"figure-{window['figure']}": _histograms(proactive, name, **window)
        for name, window in OWN.items()
    }
    return drawn | {"node-time": _node_time(frame), "waits": _waits(frame)}


def _histograms(frame: pd.DataFrame, variant: str, depth: int, figure: int) -> Figure:
    """Draw the share of the recorded time by level of nodes held and running."""
    parts = by_workload(frame)
    title = f"Figure {figure}. Recorded time by utilization, proactive scan window of {depth}"
    drawn, panels = paneled(title, list(parts), 2.0, 0.8)
    for panel, own in zip(panels, parts.values()):
        held, running = (
            [np.nan_to_num(of(own, variant, f"{metric}.{level}").mean()) for level in LEVELS]
            for metric in ("recorded_held", "recorded_running")
        )
        edges = [*LEVELS, 100]
        panel.stairs(held, edges, fill=True, color=style.FAINT, label="held")
        panel.stairs(running, edges, color=style.LINES[0], linewidth=1.5, label="running")
        panel.axvline(100 * PUBLISHED["utilization"], linestyle="--", **style.RULE)
        panel.xaxis.set_major_formatter("{x:.0f}%")
        panel.yaxis.set_major_formatter("{x:.0%}")
        panel.set_xlim(0, 100)
    drawn.supxlabel("share of the nodes (dashed: the paper's level)")
    drawn.supylabel("share of the recorded time")
    legend(drawn, panels[0])
    return drawn


def _node_time(frame: pd.DataFrame) -> Figure:
    """Draw the parts of the recorded node time of each variant, side by side."""
    parts = by_workload(frame)
    shown = [name for name in variants(frame) if name != CEILING]
    title = "Where the recorded node time goes"
    figure, panels = paneled(title, list(parts), 0.6 + 0.22 * len(shown), 0.8)
    for panel, own in zip(panels, parts.values()):
        shares = {
            part: np.nan_to_num([of(own, name, column).mean() for name in shown])
            for part, column in NODE_TIME.items()
        }
        stacked_shares(panel, shown, shares, FILLS)
    legend(figure, panels[0], "below")
    return figure


def _waits(frame: pd.DataFrame) -> Figure:
    """Draw the mean waits of each variant of the comparison, of all jobs and of large ones."""
    from matplotlib.ticker import LogLocator

    shown = variants(frame)
    places = np.arange(len(shown))[::-1]
    figure = style.new_figure(1.2 + 0.28 * len(shown), "Mean waits, in hours")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, (metric, title) in zip(
        panels, (("mean_wait", "all jobs"), ("large_mean_wait", "large jobs"))
    ):
        for (name, own), colour, mark in zip(by_workload(frame).items(), style.LINES, MARKS):
            hours = [of(own, one, metric).mean() / HOUR for one in shown]
            shape = {"color": colour, "markersize": 5, "markerfacecolor": "none"}
            panel.plot(hours, places, mark, label=name, **shape)
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0,)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_title(title)
        panel.set_xlabel("hours")
        panel.set_yticks(places, shown)
    legend(figure, panels[0], "below")
    return figure
