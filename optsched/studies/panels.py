"""Small panels side by side, one for each workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from optsched.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3
"""Panels side by side."""

NARROW = 0.1
"""Share of a bar from which on a number fits into it."""


def paneled(
    title: str, names: Sequence[str], row: float, margin: float = 1.0
) -> tuple[Figure, list[Axes]]:
    """Make a figure with a panel under each name, all with the same axes.

    It is as high as the margin and all rows of panels, of `row` inches each.
    """
    rows = -(-len(names) // COLUMNS)
    columns = min(COLUMNS, len(names))
    figure = style.new_figure(margin + row * rows, title)
    panels = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for panel, name in zip(panels, names):
        panel.set_title(name)
    for spare in panels[len(names) :]:
        spare.set_visible(False)
    for above, below in zip(panels, panels[columns:]):
        if not below.get_visible():
            above.tick_params(labelbottom=True)
    return figure, panels[: len(names)]


def stacked_shares(
    panel: Axes,
    names: Sequence[str],
    shares: Mapping[str, ArrayLike],
    colours: Iterable[str],
    numbers: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Draw shares of 1 as stacked bars, one for each name, the first on top.

    `shares` has the share of each bar by part, and `numbers` what is written into it if it fits.
    """
    places = np.arange(len(names))[::-1]
    left = np.zeros(len(names))
    for (part, own), colour in zip(shares.items(), colours):
        width = np.asarray(own)
        panel.barh(places, width, 0.75, left, color=colour, label=part)
        for place, share, number, start in zip(places, width, (numbers or {}).get(part, ()), left):
            if share >= NARROW:
                middle = start + share / 2
                panel.text(middle, place, f"{number:.2f}", ha="center", va="center", size=7.5)
        left = left + width
    panel.set_xlim(0, 1)
    panel.set_yticks(places, names)
    panel.xaxis.set_major_formatter("{x:.0%}")
    panel.grid(axis="y", visible=False)


def legend(figure: Figure, panel: Axes, place: str = "right", title: str = "") -> None:
    """Put the legend of a panel to the right of all panels, or below them."""
    handles, labels = panel.get_legend_handles_labels()
    if place == "below":
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    else:
        figure.legend(handles, labels, title=title or None, loc="outside right center")
