"""Pictures of the demand on shared resources, by node over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HIGHEST, TALLEST = 0.45, 9.0
"""Largest height of a node and of all nodes, in inches."""

READABLE = 0.14
"""Least height of a node with its name, in inches."""

FILLED = 0.85
"""Height of the highest demand of a node, as a share of the node's height."""


AREA: dict[str, Any] = {"fill": True, "linewidth": 0.6}
"""Style of a demand."""

LIMIT: dict[str, Any] = {"color": style.INK, "linewidth": 0.8, "linestyle": (0, (4, 2))}
"""Style of a capacity."""


class Demand(NamedTuple):
    """Demand on a node over time, as steps.

    Parameters
    ----------
    node : str
        Name of the node.
    times : sequence of int
        Edges of the steps, one more than the steps.
    others, total : sequence of float
        Demand as a share of the capacity, without and with the job.
    """

    node: str
    times: Sequence[int]
    others: Sequence[float]
    total: Sequence[float]


@style.applied()
def figure_of(title: str, heading: str, demands: Sequence[Demand], fill: str) -> Figure:
    """Return a picture of the demand on nodes, the first one on top.

    The demand of the job, in `fill`, is stacked on that of others, in gray; a line is at the
    capacity of each node.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    height = min(HIGHEST, TALLEST / max(1, len(demands)))
    highest = max((share for demand in demands for share in demand.total), default=1.0)
    scale = FILLED / max(highest, 1.0)
    shown = range(0, len(demands), math.ceil(READABLE / height))
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
