"""The pictures of the study: Figures 4 to 9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from optsched.report import style
from optsched.studies.guim_2009.evaluation import KILLED, LCT, TABULATED, mean, published
from optsched.studies.guim_2009.plan import CENTRES
from optsched.studies.panels import legend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SLOWDOWN, PENALISED = "p95_bounded_slowdown", "p95_penalised_percent"

AGAINST = {PENALISED: "percentage of penalized runtime, 95%", KILLED: "killed jobs"}
"""What the bounded slowdown is drawn against."""

TRADE_OFFS = {
    ("CTC", PENALISED): 4,
    ("SDSC", PENALISED): 5,
    ("CTC", KILLED): 6,
    ("SDSC", KILLED): 7,
}
OF_RUA = {"CTC": 8, "SDSC": 9}
"""The numbers of the figures in the paper."""

SHOWN = {
    SLOWDOWN: "bounded slowdown, 95%",
    "p95_wait": "wait, 95%, in seconds",
    **AGAINST,
}
"""The panels of Figures 8 and 9."""

MARKS = {"FF": "s", "LC": "D"} | dict.fromkeys(LCT, "o")
BARS = dict(zip(("FF", "LC", "RUA"), style.FILLS))
WIDTH = 0.27
"""Of a bar; mixes are 1 apart."""

Points = Mapping[str, tuple[float, float]]


def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw all pictures, by name."""
    there = list(dict.fromkeys(frame["centre"]))
    drawn = {
        trade_off_name(centre, of): _trade_off(frame, centre, of)
        for of in AGAINST
        for centre in there
    }
    return drawn | {rua_name(centre): _bars(frame, centre) for centre in there}


def trade_off_name(centre: str, of: str) -> str:
    """Return the name of the picture of slowdowns against something else."""
    number = TRADE_OFFS.get((centre, of))
    what = "killed" if of == KILLED else "penalised"
    return f"slowdown-{what}" if number is None else f"figure-{number}"


def rua_name(centre: str) -> str:
    """Return the name of the picture of RUA."""
    return f"figure-{OF_RUA[centre]}" if centre in OF_RUA else "rua"


def _numbered(number: int | None, title: str) -> str:
    return title if number is None else f"Figure {number}. {title}"


def _trade_off(frame: pd.DataFrame, centre: str, of: str) -> Figure:
    """Draw a curve through the thresholds for each mix: ours above, the paper's below."""
    shown = list(dict.fromkeys(frame["mix"]))
    rows = {"measured": {mix: _measured(frame, centre, mix, of) for mix in shown}}
    if centre in CENTRES:
        rows["published"] = {mix: _published(centre, mix, of) for mix in shown}
    title = f"Bounded slowdown against {AGAINST[of].partition(',')[0]}, {centre}"
    with style.applied():
        figure = style.new_figure(
            0.9 + 2.3 * len(rows), _numbered(TRADE_OFFS.get((centre, of)), title)
        )
        grid = figure.subplots(len(rows), len(shown), squeeze=False)
        for panels, (whose, found), colour in zip(grid, rows.items(), style.LINES):
            for panel, (mix, points) in zip(panels, found.items()):
                _through_thresholds(panel, points, colour)
                panel.set_title(f"{mix}, {whose}")
        figure.supxlabel(AGAINST[of], fontsize=9)
        figure.supylabel(SHOWN[SLOWDOWN], fontsize=9)
    return figure


def _through_thresholds(panel: Axes, points: Points, colour: str) -> None:
    line = [points[name] for name in LCT if name in points]
    panel.plot(*np.array(line).T, color=colour, linewidth=1)
    for name, (x, y) in points.items():
        apart = name in ("FF", "LC")
        panel.plot(x, y, MARKS[name], color=style.GREY if apart else colour)
        offset = (4, -11 if apart else 4)
        label = name.removeprefix("LCT=")
        panel.annotate(label, (x, y), offset, textcoords="offset points", fontsize=7.5)
    panel.margins(0.18)


def _measured(frame: pd.DataFrame, centre: str, mix: str, of: str) -> Points:
    x, y = (
        [mean(frame, centre, mix, name, metric).mean for name in TABULATED]
        for metric in (of, SLOWDOWN)
    )
    return dict(zip(TABULATED, zip(x, y)))


def _published(centre: str, mix: str, of: str) -> Points:
    x, y = (
        [published(metric, centre, mix, name) or np.nan for name in TABULATED]
        for metric in (of, SLOWDOWN)
    )
    points = dict(zip(TABULATED, zip(x, y)))
    return {name: point for name, point in points.items() if not np.isnan(point).any()}


def _bars(frame: pd.DataFrame, centre: str) -> Figure:
    """Draw bars by mix for First Fit, LessConsume and RUA, with the intervals of the means."""
    shown = list(dict.fromkeys(frame["mix"]))
    title = f"RUA beside SJBF, {centre}"
    with style.applied():
        figure = style.new_figure(5.2, _numbered(OF_RUA.get(centre), title))
        panels: Sequence[Axes] = list(figure.subplots(2, 2).flat)
        for panel, (metric, label) in zip(panels, SHOWN.items()):
            for place, (name, colour) in enumerate(BARS.items()):
                found = [mean(frame, centre, mix, name, metric) for mix in shown]
                at = np.arange(len(shown)) + (place - 1) * WIDTH
                panel.bar(at, [one.mean for one in found], WIDTH, color=colour, label=name)
                ends = [(at, one) for at, one in zip(at, found) if np.isfinite(one.half)]
                panel.vlines(
                    [at for at, _ in ends],
                    [max(0.0, one.low) for _, one in ends],
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
