"""Picture of a gang packing: the jobs in the rows and columns of the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.column_sets import runs_of
from optsched.numbers import counted
from optsched.report.rows import Panel, Stretch, figure_of
from optsched.report.style import FAINT, FILLS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.gang_packing import GangPacking, Packing


def figure(problem: GangPacking, solution: Packing) -> Figure:
    """Return the matrix with running jobs in gray, and placed ones in color."""
    running = problem.running_jobs or [f"r{job + 1}" for job in range(len(problem.running))]
    waiting = problem.waiting_jobs or [f"w{job + 1}" for job in range(len(problem.waiting))]
    stretches = [
        Stretch(row, begin, end, FAINT, str(name))
        for name, row, columns in zip(running, solution.rows_of_running, problem.running)
        for begin, end in runs_of(columns)
    ]
    placed = [
        job
        for job in zip(waiting, solution.rows_of_waiting, solution.columns_of_waiting)
        if job[1] >= 0
    ]
    stretches += [
        Stretch(row, begin, end, FILLS[place % len(FILLS)], str(name))
        for place, (name, row, columns) in enumerate(placed)
        for begin, end in runs_of(columns)
    ]
    jobs = counted(len(problem.waiting), "waiting job")
    return figure_of(
        f"{problem.name} {problem.size}",
        f"{len(placed):,} of {jobs} placed, in color; running jobs in gray",
        "row",
        [str(row + 1) for row in range(problem.rows)],
        [Panel("columns", [problem.columns] * problem.rows, stretches)],
    )
