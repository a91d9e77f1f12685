"""Pictures of jobs side by side in rows: slots of a line, or the rows of a matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HIGHEST, TALLEST = 0.26, 9.0
"""Largest height of a row and of all rows, in inches."""

READABLE = 0.12
"""Least height of a row with labels, in inches."""

INSIDE = 7.2
"""Approximate width of the rows, in inches; it depends on their names."""

CHARACTER = 0.075
"""Width of a character of a label, in inches."""


class Stretch(NamedTuple):
    """Part of a row that a job has, from `begin` to before `end`."""

    row: int
    begin: int
    end: int
    fill: str
    label: str


@style.applied()
def figure_of(
    title: str,
    heading: str,
    axis: tuple[str, str],
    names: Sequence[str],
    lengths: Sequence[int],
    stretches: Sequence[Stretch],
) -> Figure:
    """Return a picture of rows, the first one on top.

    `heading` is a sentence below the title, and `axis` has the labels along the rows and across
    them. The rows have `names` and `lengths`; `stretches` are the jobs in them.
    """
    height = min(HIGHEST, TALLEST / max(1, len(names)))
    longest = max((*lengths, 1))
    shown = range(0, len(names), math.ceil(READABLE / height))
    drawing = style.new_figure(1.1 + height * len(names), title)
    axes = drawing.subplots()
    axes.set_title(heading)
    axes.grid(visible=False)
    look: dict[str, Any] = {"height": 0.8, "linewidth": 0.6, "clip_on": False}
    axes.barh(range(len(names)), lengths, color="white", edgecolor=style.GREY, **look)
    for row, begin, end, fill, label in stretches:
        axes.barh(row, end - begin, left=begin, color=fill, edgecolor=style.INK, **look)
        width = (end - begin) / longest * INSIDE
        if height >= READABLE and width >= CHARACTER * len(label):
            axes.text((begin + end) / 2, row, label, ha="center", va="center", fontsize=8)
    axes.set_yticks(list(shown), [names[row] for row in shown], fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, longest)
    axes.set_xlabel(axis[0])
    axes.set_ylabel(axis[1])
    style.count_ticks(axes.xaxis)
    return drawing
