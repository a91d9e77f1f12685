"""Picture of a reconfiguration: the torus before and after, with moves numbered by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.numbers import counted
from optsched.report.torus_maps import moves_of, relocation_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.reconfiguration import Arrangement, Reconfiguration


def figure(problem: Reconfiguration, solution: Arrangement) -> Figure:
    """Return the torus before the steps, and after the last one with the waiting jobs started."""
    running, waiting = len(problem.running), len(problem.waiting)
    names = problem.running_jobs or range(1, running + 1)
    labels = problem.waiting_jobs or [f"w{job + 1}" for job in range(waiting)]
    moves = moves_of(solution.steps, names)
    before = dict(enumerate(problem.running))
    ends = dict(enumerate(problem.ending, start=running + waiting))
    to_end = f", {len(ends)} to end" if ends else ""
    started = {running + job: box for job, box in enumerate(solution.boxes) if box is not None}
    return relocation_figure(
        f"{problem.name} {problem.size}",
        (
            f"before: {counted(len(moves), 'job')} to move{to_end}; numbers are steps",
            f"after: {len(started):,} of {counted(waiting, 'job')} started",
        ),
        problem.grid,
        problem.holes,
        before | ends,
        before | solution.destinations | started,
        moves,
        {job: str(labels[job - running]) for job in started},
    )
