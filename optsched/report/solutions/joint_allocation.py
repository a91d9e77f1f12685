"""Picture of a joint allocation: the jobs that start on the processors of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.numbers import counted
from optsched.report.rows import Stretch, figure_of
from optsched.report.style import FAINT, FILLS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.joint_allocation import JointAllocation, JointPlacement


FEW = 16
"""Most nodes that are all drawn; of more, only the nodes on which jobs start."""


def figure(problem: JointAllocation, solution: JointPlacement) -> Figure:
    """Return a row for each node, with running jobs in gray and starting ones in color."""
    names = problem.jobs or range(1, len(problem.asked) + 1)
    used = np.flatnonzero(solution.processes.any(axis=0))
    nodes = (np.arange(problem.nodes) if problem.nodes <= FEW else used).tolist()
    running = problem.held[problem.held[:, 2] == 0]
    stretches: list[Stretch] = []
    for row, node in enumerate(nodes):
        there = [(count, FAINT, "") for count in running[running[:, 0] == node, 1].tolist()]
        there += [
            (count, FILLS[job % len(FILLS)], str(names[job]))
            for job, count in enumerate(solution.processes[:, node].tolist())
        ]
        end = 0
        for count, fill, label in there:
            if count:
                stretches.append(Stretch(row, end, end := end + count, fill, label))
    started = int(solution.processes.any(axis=1).sum())
    return figure_of(
        f"{problem.name} {problem.size}",
        f"{started:,} of {counted(len(problem.asked), 'job')} start on "
        f"{counted(len(used), 'node')}, in color; running jobs in gray",
        ("processors", "node"),
        [str(node) for node in nodes],
        [problem.processors] * len(nodes),
        stretches,
    )
