"""The pictures of the study: Figures 4 to 9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from optsched.report import style
from optsched.studies.guim_2009.evaluation import (
    KILLED,
    LCT,
    TABULATED,
    as_stated,
    mean,
    published,
    read_as,
)
from optsched.studies.guim_2009.plan import CENTRES
from optsched.studies.panels import legend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SLOWDOWN, PENALISED = "p95_bounded_slowdown", "p95_penalised_percent"

AGAINST = {PENALISED: "percentage of penalized runtime, 95th percentile", KILLED: "killed jobs"}
"""Metrics against which the bounded slowdown is drawn."""

RUA = "RUA"
NUMBERS = {
    (centre, of): number
    for number, (of, centre) in enumerate(product((PENALISED, KILLED, RUA), ("CTC", "SDSC")), 4)
}
"""The numbers of the figures in the paper."""

NAMES = {PENALISED: "slowdown-penalised", KILLED: "slowdown-killed", RUA: "rua"}
"""The names of the pictures of centres that are not in the paper."""

SHOWN = {
    SLOWDOWN: "bounded slowdown, 95th percentile",
    "p95_wait": "wait in seconds, 95th percentile",
    **AGAINST,
}
"""The panels of Figures 8 and 9."""

APART = {"FF": "s", "LC": "D"}
"""Policies without a threshold, and their markers."""

MARKERS = dict(zip(LCT, "o^vX"))
"""The markers of the thresholds."""

BARS = dict(zip(("FF", "LC", RUA), style.FILLS))
WIDTH = 0.27
"""Of a bar; mixes are 1 apart."""


@style.applied()
def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    frame = as_stated(read_as(frame))
    there = list(dict.fromkeys(frame["centre"]))
    drawn = {
        picture_name(centre, of): _trade_off(frame, centre, of)
        for of in AGAINST
        for centre in there
    }
    return drawn | {picture_name(centre, RUA): _bars(frame, centre) for centre in there}


def picture_name(centre: str, of: str) -> str:
    """Return the name of the picture of slowdowns against something else, or of RUA."""
    number = NUMBERS.get((centre, of))
    return NAMES[of] if number is None else f"figure-{number}"


def _titled(centre: str, of: str, title: str) -> str:
    number = NUMBERS.get((centre, of))
    return f"{title}, {centre}" if number is None else f"Figure {number}. {title}, {centre}"


def _trade_off(frame: pd.DataFrame, centre: str, of: str) -> Figure:
    """Draw a curve through the thresholds for each mix: ours above, the paper's below."""

    def measured(mix: str, name: str, metric: str) -> float:
        return mean(frame, centre, mix, name, metric).mean

    def of_paper(mix: str, name: str, metric: str) -> float:
        return published(metric, centre, mix, name) or np.nan

    shown = list(dict.fromkeys(frame["mix"]))
    rows = {"measured": measured} | ({"published": of_paper} if centre in CENTRES else {})
    title = f"Bounded slowdown against {AGAINST[of].partition(',')[0]}"
    figure = style.new_figure(0.9 + 2.3 * len(rows), _titled(centre, of, title))
    grid = figure.subplots(len(rows), len(shown), squeeze=False)
    for panels, (whose, value), colour in zip(grid, rows.items(), style.LINES):
        for panel, mix in zip(panels, shown):
            points = {
                name: (value(mix, name, of), value(mix, name, SLOWDOWN)) for name in TABULATED
            }
            _through_thresholds(panel, points, colour)
            panel.set_title(f"{mix}, {whose}")
            if of == KILLED:
                style.count_ticks(panel.xaxis)
    figure.supxlabel(AGAINST[of])
    figure.supylabel(SHOWN[SLOWDOWN])
    legend(figure, grid[0, 0])
    return figure


def _through_thresholds(
    panel: Axes, points: Mapping[str, tuple[float, float]], colour: str
) -> None:
    """Draw the points that are known, and a line through those of the thresholds."""
    known = {name: point for name, point in points.items() if not np.isnan(point).any()}
    line = [known[name] for name in LCT if name in known]
    panel.plot(*np.array(line).T, color=colour, linewidth=1)
    for name, (x, y) in known.items():
        if name in APART:
            # hollow and large: another point in the same place stays visible
            [point] = panel.plot(x, y, APART[name], color=style.INK, label=name)
            point.set(markersize=10, fillstyle="none")
        else:
            panel.plot(x, y, MARKERS[name], color=colour, label=name)
    panel.margins(0.18)


def _bars(frame: pd.DataFrame, centre: str) -> Figure:
    """Draw bars by mix for First Fit, LessConsume and RUA, with the ranges of the parts."""
    shown = list(dict.fromkeys(frame["mix"]))
    figure = style.new_figure(5.2, _titled(centre, RUA, "RUA beside SJBF"))
    panels: Sequence[Axes] = list(figure.subplots(2, 2).flat)
    for panel, (metric, label) in zip(panels, SHOWN.items()):
        for place, (name, colour) in enumerate(BARS.items()):
            found = [mean(frame, centre, mix, name, metric) for mix in shown]
            at = np.arange(len(shown)) + (place - 1) * WIDTH
            panel.bar(at, [one.mean for one in found], WIDTH, color=colour, label=name)
            ends = [(at, one) for at, one in zip(at, found) if np.isfinite(one.low)]
            panel.vlines(
                [at for at, _ in ends],
                [one.low for _, one in ends],
                [one.high for _, one in ends],
                color=style.INK,
                linewidth=1,
            )
        panel.set_title(label)
        panel.set_xticks(range(len(shown)), shown)
        if metric == KILLED:
            style.count_ticks(panel.yaxis)
        else:
            panel.yaxis.set_major_formatter("{x:,g}")
        panel.grid(axis="x", visible=False)
    legend(figure, panels[0], "below")
    return figure
