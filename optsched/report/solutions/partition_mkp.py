"""Partition knapsack: the bins on the torus, and the jobs in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.boxes.box import Box
from optsched.numbers import counted
from optsched.report.torus_maps import (
    BUSY,
    HOLES,
    THICK,
    Entry,
    Panel,
    Part,
    colours,
    figure_of,
    holes_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.partition_mkp import PartitionMKP, Placement


def figure(problem: PartitionMKP, solution: Placement) -> Figure:
    """Return the torus with bins outlined, jobs in colour, and all that is in no bin in grey."""
    names = problem.waiting_jobs or range(1, len(solution) + 1)
    boxes = {job: box for job, box in enumerate(problem.boxes(solution)) if box is not None}
    fills = colours(problem.grid, boxes)
    everything = Box(0, 0, 0, *problem.torus)
    parts = [Part(everything, BUSY, outline=0.0)]
    parts += [Part(box, "white", outline=0.0) for box in (*problem.bins, *problem.holes)]
    parts += holes_of(problem.holes)
    parts += [Part(box, fills[job], str(names[job])) for job, box in boxes.items()]
    parts += [Part(box, None, outline=THICK) for box in problem.bins]
    heading = f"{len(boxes):,} of {counted(len(solution), 'job')} placed"
    heading += f" in {counted(len(problem.bins), 'bin')}"
    legend = [Entry("bin", None, outline=THICK), Entry("in no bin", BUSY, outline=0.0)]
    legend += [HOLES] if problem.holes else []
    title = f"{problem.name} {problem.size}"
    return figure_of(title, problem.grid, [Panel(heading, parts)], legend)
