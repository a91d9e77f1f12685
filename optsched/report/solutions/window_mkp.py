"""Picture of a window knapsack: the jobs in the slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.models.window_mkp import NOT_PLACED
from optsched.numbers import counted
from optsched.report.rows import Panel, Stretch, figure_of
from optsched.report.style import FILLS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optsched.models.window_mkp import Assignment, WindowMKP


def figure(problem: WindowMKP, solution: Assignment) -> Figure:
    """Return a row for each slot, with its jobs side by side from its first node on."""
    names = problem.jobs or range(1, len(solution) + 1)
    slots = problem.slots or range(1, len(problem.capacities) + 1)
    weights = problem.weights.tolist()
    placed = [job for job, slot in enumerate(solution) if slot != NOT_PLACED]
    filled = [0] * len(problem.capacities)
    stretches: list[Stretch] = []
    for job in sorted(placed, key=solution.__getitem__):  # so that neighbors differ in color
        slot, fill = solution[job], FILLS[len(stretches) % len(FILLS)]
        begin, filled[slot] = filled[slot], filled[slot] + weights[job]
        stretches.append(Stretch(slot, begin, filled[slot], fill, str(names[job])))
    jobs = counted(len(solution), "job")
    return figure_of(
        f"{problem.name} {problem.size}",
        f"{len(placed):,} of {jobs} placed, on {sum(filled):,} nodes",
        "slot",
        [str(slot) for slot in slots],
        [Panel("nodes", problem.capacities.tolist(), stretches)],
    )
