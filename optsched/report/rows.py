"""Pictures of jobs side by side in rows: slots of a line, rows of a matrix, nodes of a site."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HIGHEST, TALLEST = 0.26, 9.0
"""Largest height of a row and of all rows, in inches."""

READABLE = 0.12
"""Least height of a row with labels, in inches."""

INSIDE = 7.2
"""Approximate width of all panels, in inches; it depends on the names of rows."""

CHARACTER = 0.075
"""Width of a character of a label, in inches."""


class Stretch(NamedTuple):
    """Part of a row that a job has, from `begin` to before `end`."""

    row: int
    begin: float
    end: float
    fill: str
    label: str


class Panel(NamedTuple):
    """Rows of one kind: the label along them, the length of each row, and the jobs in them."""

    along: str
    lengths: Sequence[float]
    stretches: Sequence[Stretch]


@style.applied()
def figure_of(
    title: str, heading: str, across: str, names: Sequence[str], panels: Sequence[Panel]
) -> Figure:
    """Return a picture of rows, the first one on top, in panels side by side.

    `heading` is a sentence below the title, `across` the label across the rows, and `names` are
    those of the rows, which all panels have in common.
    """
    height = min(HIGHEST, TALLEST / max(1, len(names)))
    shown = range(0, len(names), math.ceil(READABLE / height))
    drawing = style.new_figure(1.1 + height * len(names), title)
    first, *others = drawing.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    style.subtitle(first, heading)
    first.set_ylabel(across)
    first.set_yticks(list(shown), [names[row] for row in shown], fontsize=8)
    first.set_ylim(len(names) - 0.4, -0.6)
    for axes, panel in zip((first, *others), panels):
        _draw(axes, panel, INSIDE / len(panels), labeled=height >= READABLE)
    return drawing


def _draw(axes: Axes, panel: Panel, inside: float, *, labeled: bool) -> None:
    """Draw a panel whose longest row is `inside` inches long."""
    axes.grid(visible=False)
    look: dict[str, Any] = {"height": 0.8, "linewidth": 0.6, "clip_on": False}
    axes.barh(range(len(panel.lengths)), panel.lengths, color="white", edgecolor=style.GREY, **look)
    longest = max((*panel.lengths, 1))
    rows, begins, ends, fills, names = zip(*panel.stretches) if panel.stretches else ((),) * 5
    widths = [end - begin for begin, end in zip(begins, ends)]
    axes.barh(rows, widths, left=begins, color=fills, edgecolor=style.INK, **look)
    for row, begin, width, name in zip(rows, begins, widths, names):
        if labeled and width / longest * inside >= CHARACTER * len(name):
            axes.text(begin + width / 2, row, name, ha="center", va="center", fontsize=8)
    axes.set_xlim(0, longest)
    axes.set_xlabel(panel.along)
    style.count_ticks(axes.xaxis)
