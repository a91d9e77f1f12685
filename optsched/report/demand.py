"""What is demanded of shared resources, node by node over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HIGHEST, TALLEST = 0.45, 9.0
"""Height of a node and of all nodes, in inches, at most."""

READABLE = 0.14
"""Height of a node that has room for its name, in inches."""

FILLED = 0.85
"""Share of its height that the highest demand of a node takes."""


AREA: dict[str, Any] = {"fill": True, "linewidth": 0.6}
"""Look of a demand."""

LIMIT: dict[str, Any] = {"color": style.INK, "linewidth": 0.8, "linestyle": (0, (4, 2))}
"""Look of a capacity."""


class Demand(NamedTuple):
    """The demand on a node over time, as steps.

    Parameters
    ----------
    node : str
        The name of the node.
    times : sequence of int
        The edges of the steps, one more than there are steps.
    others, total : sequence of float
        Shares of the capacity, without the job and with it.
    """

    node: str
    times: Sequence[int]
    others: Sequence[float]
    total: Sequence[float]


def figure_of(title: str, heading: str, demands: Sequence[Demand], fill: str) -> Figure:
    """Return a picture of the demand on nodes, the first one on top.

    Others are grey, the job is in `fill` on top of them; a line is at the capacity of each node.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    height = min(HIGHEST, TALLEST / max(1, len(demands)))
    highest = max((share for demand in demands for share in demand.total), default=1.0)
    scale = FILLED / max(highest, 1.0)
    shown = range(0, len(demands), math.ceil(READABLE / height))
    with style.applied():
        drawing = style.new_figure(1.4 + height * len(demands), title)
        axes = drawing.subplots()
        axes.set_title(heading)
        axes.grid(visible=False, axis="y")
        for row, (_, times, others, total) in enumerate(demands):
            floor = row + 0.5
            lower = [floor - scale * share for share in others]
            upper = [floor - scale * share for share in total]
            axes.stairs(lower, times, baseline=floor, color=style.FAINT, **AREA)
            axes.stairs(upper, times, baseline=lower, color=fill, **AREA)
            axes.axhline(floor, color=style.GREY, linewidth=0.6)
            axes.axhline(floor - scale, **LIMIT)
        axes.set_yticks(list(shown), [demands[row].node for row in shown], fontsize=8)
        axes.set_ylim(len(demands) - 0.4, -0.5)
        axes.set_xlim(0, max((demand.times[-1] for demand in demands), default=1))
        axes.set_xlabel("seconds from now")
        axes.set_ylabel("node")
        style.count_ticks(axes.xaxis)
        drawing.legend(
            handles=[
                Patch(color=fill, label="the job"),
                Patch(color=style.FAINT, label="others"),
                Line2D([], [], label="capacity", **LIMIT),
            ],
            loc="outside lower center",
            ncols=3,
        )
    return drawing
