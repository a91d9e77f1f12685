"""Box placement: which jobs lie where on the torus, beside those that run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.numbers import counted
from optsched.report.torus_maps import BUSY, HOLES, Entry, Panel, Part, colours, figure_of, holes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.box_placement import BoxPlacement, Placement


def figure(problem: BoxPlacement, solution: Placement) -> Figure:
    """Return the torus with running jobs in grey, and placed ones in colour."""
    names = problem.waiting_jobs or range(1, len(solution) + 1)
    boxes = {job: box for job, box in enumerate(solution) if box is not None}
    fills = colours(problem.grid, boxes)
    parts = holes_of(problem.holes)
    parts += [Part(box, BUSY) for box in problem.running]
    parts += [Part(box, fills[job], str(names[job])) for job, box in boxes.items()]
    heading = f"{len(boxes):,} of {counted(len(solution), 'job')} placed"
    legend = [Entry("running", BUSY)] if problem.running else []
    legend += [HOLES] if problem.holes else []
    title = f"{problem.name} {problem.size}"
    return figure_of(title, problem.grid, [Panel(heading, parts)], legend)
