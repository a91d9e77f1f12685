"""Picture of a migration plan: the torus before and after, with moves numbered by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.numbers import counted
from optsched.report.torus_maps import moves_of, relocation_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.migration import Migration, Plan

COMING = -1


def figure(problem: Migration, solution: Plan) -> Figure:
    """Return the torus before the plan, and after the last step with the large job."""
    names = problem.running_jobs or range(1, len(problem.running) + 1)
    moves = moves_of(solution.steps, names)
    before = dict(enumerate(problem.running))
    after = before | solution.destinations
    ends = dict(enumerate(problem.ending, start=len(problem.running)))
    coming = {}
    if solution.place is not None:
        after[COMING] = solution.place
        coming[COMING] = "" if problem.incoming_job is None else str(problem.incoming_job)
    moved = counted(len(moves), "job")
    to_end = f", {len(ends)} to end" if ends else ""
    return relocation_figure(
        f"{problem.name} {problem.size}",
        (
            f"before: {moved} to move{to_end}; numbers are steps",
            f"after: the large job of {counted(problem.incoming, 'node')} in {solution.place}",
        ),
        problem.grid,
        problem.holes,
        before | ends,
        after,
        moves,
        coming,
    )
