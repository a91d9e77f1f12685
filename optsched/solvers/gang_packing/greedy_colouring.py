"""Graph coloring: running jobs that share a column get different rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from optsched.models.gang_packing import GangPacking, Packing
from optsched.registry import solvers
from optsched.solvers.gang_packing.fit_rules import FitHeuristic, fitted


@solvers.register("greedy-colouring")
@dataclass(frozen=True)
class GreedyColoring(FitHeuristic):
    """Coloring of running jobs by DSATUR, then first fit of waiting jobs.

    Running jobs that share a column are adjacent in a graph whose colors are the rows. DSATUR
    (Brelaz 1979) of networkx colors it. Running jobs keep their rows if that is required, or if
    DSATUR needs more colors than there are rows. Waiting jobs are placed in the order of the queue
    under ``fcfs``, and by decreasing size under ``skip``. This is a baseline, since a coloring
    ignores how full rows are.

    References
    ----------
    D. Brelaz, "New methods to color the vertices of a graph", Communications of the ACM 22,
    251-256, 1979.
    """

    requires = "networkx"
    seconds_per_solve = 1e-3
    seconds_per_work = 1e-5

    def place(self, problem: GangPacking) -> Packing:
        """Return the packing by coloring."""
        order = None
        if problem.admission == "skip":
            order = sorted(range(len(problem.waiting)), key=lambda job: -problem.waiting[job])
        rows = _colors(problem) if problem.rerow else problem.rows_of_running
        return problem.packing(rows, fitted(problem, rows, tightest=False, order=order))


def _colors(problem: GangPacking) -> Sequence[int]:
    """Return the color of each running job, or its row if there are too few colors."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(problem.running)))
    graph.add_edges_from(
        (one, other)
        for (one, mask), (other, shared) in combinations(enumerate(problem.running), 2)
        if mask & shared
    )
    colors = nx.greedy_color(graph, strategy="DSATUR")
    if max(colors.values(), default=0) >= problem.rows:
        return problem.rows_of_running
    return [colors[job] for job in range(len(problem.running))]
