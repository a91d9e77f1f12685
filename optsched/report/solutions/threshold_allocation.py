"""Picture of a threshold allocation: the demand on the nodes of the job, over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.numbers import counted
from optsched.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.threshold_allocation import Placement, ThresholdAllocation


FEW = 8
"""Most nodes that are all drawn; of more, only those of the job."""

BEHIND = 1.2
"""Time drawn, from now on, relative to the time until the job ends."""

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


@style.applied()
def figure(problem: ThresholdAllocation, solution: Placement) -> Figure:
    """Return the demand on the nodes of the job, or on all nodes if there are at most `FEW`.

    At each time, the resource with the highest demand relative to its capacity is shown. The demand
    of the job is stacked on that of others, in gray; a line is at the capacity of each node.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    used = np.flatnonzero(solution.processes).tolist()
    nodes = list(range(problem.nodes)) if problem.nodes <= FEW else used
    demands = [_demand(problem, solution, node) for node in nodes]
    height = min(HIGHEST, TALLEST / max(1, len(nodes)))
    highest = max((share for _, _, total in demands for share in total), default=1.0)
    scale = FILLED / max(highest, 1.0)
    drawing = style.new_figure(1.4 + height * len(nodes), f"{problem.name} {problem.size}")
    axes = drawing.subplots()
    processes = "1 process" if problem.asked == 1 else f"{problem.asked:,} processes"
    style.subtitle(
        axes,
        f"{processes} on {counted(len(used), 'node')} at {solution.start:,} s, "
        f"penalty factor {problem.factor(solution):.3f}"
        f"{'; at each time, the scarcest resource' if len(problem.capacity) > 1 else ''}",
    )
    axes.grid(visible=False, axis="y")
    fill = style.FILLS[0]
    for row, (times, others, total) in enumerate(demands):
        floor = row + 0.5
        lower = [floor - scale * share for share in others]
        upper = [floor - scale * share for share in total]
        axes.stairs(lower, times, baseline=floor, color=style.FAINT, **AREA)
        axes.stairs(upper, times, baseline=lower, color=fill, **AREA)
        axes.axhline(floor, color=style.GREY, linewidth=0.6)
        axes.axhline(floor - scale, **LIMIT)
    shown = range(0, len(nodes), math.ceil(READABLE / height))
    axes.set_yticks(list(shown), [str(nodes[row]) for row in shown], fontsize=8)
    axes.set_ylim(len(nodes) - 0.4, -0.5)
    axes.set_xlim(0, max((times[-1] for times, _, _ in demands), default=1))
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


def _demand(
    problem: ThresholdAllocation, solution: Placement, node: int
) -> tuple[list[int], list[float], list[float]]:
    """Return edges of time, and between them the demand of others and with the job.

    The demand is a share of the capacity, of the resource with the largest share in all; there is
    one edge more than demands.
    """
    end = solution.start + problem.walltime
    horizon = int(BEHIND * end) + 1
    held = problem.held[problem.held[:, 0] == node]
    times = np.unique(np.concatenate(([0, solution.start, end, horizon], held[:, 2:4].ravel())))
    times = times[times <= horizon]
    begins = times[:-1, None]
    inside = (held[:, 2] <= begins) & (begins < held[:, 3])
    others = inside @ (held[:, 1:2] * held[:, 4:])
    runs = (solution.start <= begins) & (begins < end)
    total = others + runs * int(solution.processes[node]) * problem.demand
    # one more column, of zeros, where nothing is shared
    of_others, of_all = (
        np.pad(demand / problem.capacity, ((0, 0), (0, 1))) for demand in (others, total)
    )
    steps, scarcest = np.arange(len(of_all)), of_all.argmax(axis=1)
    return times.tolist(), of_others[steps, scarcest].tolist(), of_all[steps, scarcest].tolist()
