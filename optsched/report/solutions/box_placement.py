"""Picture of a box placement: placed and running jobs on the torus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.numbers import counted
from optsched.report.torus_maps import BUSY, HOLES, Entry, Panel, Part, colors, figure_of, holes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.box_placement import BoxPlacement, Placement


def figure(problem: BoxPlacement, solution: Placement) -> Figure:
    """Return the torus with running jobs in gray, and placed ones in color."""
    names = problem.waiting_jobs or range(1, len(solution) + 1)
    boxes = {job: box for job, box in enumerate(solution) if box is not None}
    fills = colors(problem.grid, boxes)
    parts = holes_of(problem.holes)
    parts += [Part(box, BUSY) for box in problem.running]
    parts += [Part(box, fills[job], str(names[job])) for job, box in boxes.items()]
    heading = f"{len(boxes):,} of {counted(len(solution), 'job')} placed"
    legend = [Entry("running", BUSY)] if problem.running else []
    legend += [HOLES] if problem.holes else []
    title = f"{problem.name} {problem.size}"
    return figure_of(title, problem.grid, [Panel(heading, parts)], legend)
