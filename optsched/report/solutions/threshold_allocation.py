"""Picture of a threshold allocation: the demand on the nodes of the job, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.numbers import counted
from optsched.report.demand import Demand, figure_of
from optsched.report.style import FILLS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.threshold_allocation import Placement, ThresholdAllocation


FEW = 8
"""Most nodes that are all drawn; of more, only those of the job."""

BEHIND = 1.2
"""Time drawn, from now on, relative to the time until the job ends."""


def figure(problem: ThresholdAllocation, solution: Placement) -> Figure:
    """Return the demand on the nodes of the job, or on all nodes if there are at most `FEW`.

    At each time, the resource with the highest demand relative to its capacity is shown.
    """
    used = np.flatnonzero(solution.processes).tolist()
    nodes = range(problem.nodes) if problem.nodes <= FEW else used
    processes = "1 process" if problem.asked == 1 else f"{problem.asked:,} processes"
    return figure_of(
        f"{problem.name} {problem.size}",
        f"{processes} on {counted(len(used), 'node')} at {solution.start:,} s, "
        f"penalty factor {problem.factor(solution):.3f}",
        [_demand(problem, solution, node) for node in nodes],
        FILLS[0],
    )


def _demand(problem: ThresholdAllocation, solution: Placement, node: int) -> Demand:
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
    shares = [
        (demand / problem.capacity).max(axis=1, initial=0).tolist() for demand in (others, total)
    ]
    return Demand(str(node), times.tolist(), *shares)
