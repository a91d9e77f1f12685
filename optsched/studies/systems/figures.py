"""The picture of the study: times beside those of the baselines."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.report import style
from optsched.studies.systems.evaluation import GAIN, TIMES, is_baseline

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = "gains"
"""The name of the picture."""

SHOWN = ("mean_wait", "mean_bounded_slowdown", "mean_response")
FARTHEST = 16.0
"""Factor from which longer and shorter times are drawn at the edge."""

TICKS = {"1/16": 1 / FARTHEST, "1/4": 0.25, "1": 1.0, "4": 4.0, "16": FARTHEST}

ROW = 0.22
"""Height of a system, in inches."""

LABEL = 32
"""Characters of a system's name in a line."""


@style.applied()
def figures(frame: pd.DataFrame) -> Mapping[str, Figure]:
    """Draw a point for each system: its times over those of its baseline, by world."""
    compared = frame[~is_baseline(frame)]
    places, labels = _places(compared)
    lines = 1 + max(labels)
    figure = style.new_figure(1.2 + ROW * lines, "Times, as multiples of the baseline's")
    figure.set_layout_engine("constrained", w_pad=0.12)  # long labels are a little wider than found
    panels = figure.subplots(1, len(SHOWN), sharex=True, sharey=True)
    for panel, metric in zip(panels, SHOWN):
        for (name, own), colour in zip(compared.groupby("world", sort=False), style.LINES):
            _points(panel, places[str(name)], own[GAIN[metric]].to_numpy(dtype=float), colour)
        panel.set_title(TIMES[metric])
        panel.axvline(1, **style.RULE)
        panel.tick_params(axis="x", labelsize=8)
    _scale(panels[0], lines, labels)
    figure.supxlabel("left of 1: shorter than with the baseline")
    return {PICTURE: figure}


def _places(runs: pd.DataFrame) -> tuple[dict[str, NDArray[np.int64]], dict[int, str]]:
    """Return the lines of the systems by world, and what stands at each line from the top."""
    places: dict[str, NDArray[np.int64]] = {}
    labels: dict[int, str] = {}
    line = 0
    for name, own in runs.groupby("world", sort=False):
        labels[line] = str(name)
        places[str(name)] = line + 1 + np.arange(len(own))
        labels |= dict(zip(places[str(name)].tolist(), own["system"]))
        line += len(own) + 2
    return places, labels


def _points(
    panel: Axes, places: NDArray[np.int64], gains: NDArray[np.float64], colour: str
) -> None:
    """Draw a line from the baseline to each system; an arrow where it ends beyond the edge."""
    times = 1 - gains
    at = np.clip(times, 1 / FARTHEST, FARTHEST)
    panel.hlines(places, 1, at, color=colour, linewidth=1)
    for shown, mark in ((times == at, "o"), (times < at, "<"), (times > at, ">")):
        if shown.any():  # an empty line that is not clipped has no extent to lay out
            panel.plot(at[shown], places[shown], mark, color=colour, markersize=4.5, clip_on=False)


def _scale(panel: Axes, lines: int, labels: Mapping[int, str]) -> None:
    """Name the lines, worlds in bold, and the multiples."""
    panel.set_xscale("log", base=2)
    panel.set_xlim(1 / FARTHEST, FARTHEST)
    panel.set_xticks(list(TICKS.values()), list(TICKS))
    panel.set_ylim(lines - 0.4, -0.6)
    names = [textwrap.fill(name, LABEL) for name in labels.values()]
    panel.set_yticks(list(labels), names, fontsize=7, linespacing=0.9)
    for place, label in zip(labels, panel.get_yticklabels()):
        if place - 1 not in labels:
            label.set_fontweight("bold")
