"""Jobs side by side in rows: slots of a line, or the rows of a matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HIGHEST, TALLEST = 0.26, 9.0
"""Height of a row and of all rows, in inches, at most."""

READABLE = 0.12
"""Height of a row that has room for labels, in inches."""

INSIDE = 7.2
"""Width of the rows, in inches: about, for it depends on their names."""

CHARACTER = 0.075
"""Width of a character of a label, in inches."""


class Stretch(NamedTuple):
    """A part of a row, from `begin` to before `end`, that a job has."""

    row: int
    begin: int
    end: int
    fill: str
    label: str


def figure_of(
    title: str,
    heading: str,
    axis: tuple[str, str],
    names: Sequence[str],
    lengths: Sequence[int],
    stretches: Sequence[Stretch],
) -> Figure:
    """Return a picture of rows, the first one on top.

    Parameters
    ----------
    title, heading : str
        Of the picture, and what it says.
    axis : (str, str)
        What is along the rows, and what they are.
    names, lengths : sequence of str and of int
        Of the rows.
    stretches : sequence of Stretch
        What is in them.
    """
    height = min(HIGHEST, TALLEST / max(1, len(names)))
    longest = max((*lengths, 1))
    shown = range(0, len(names), math.ceil(READABLE / height))
    with style.applied():
        drawing = style.new_figure(1.1 + height * len(names), title)
        axes = drawing.subplots()
        axes.set_title(heading)
        axes.grid(visible=False)
        look: dict[str, Any] = {"height": 0.8, "linewidth": 0.6, "clip_on": False}
        axes.barh(range(len(names)), lengths, color="white", edgecolor=style.GREY, **look)
        for row, begin, end, fill, label in stretches:
            axes.barh(row, end - begin, left=begin, color=fill, edgecolor=style.INK, **look)
            room = (end - begin) / longest * INSIDE
            if height >= READABLE and room >= CHARACTER * len(label):
                axes.text((begin + end) / 2, row, label, ha="center", va="center", fontsize=8)
        axes.set_yticks(list(shown), [names[row] for row in shown], fontsize=8)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(0, longest)
        axes.set_xlabel(axis[0])
        axes.set_ylabel(axis[1])
        style.count_ticks(axes.xaxis)
    return drawing
