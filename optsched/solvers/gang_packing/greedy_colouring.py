"""The colouring view: running jobs that share a column get different rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from optsched.registry import solvers
from optsched.solvers.gang_packing.placing import FitHeuristic, fitted

if TYPE_CHECKING:
    from optsched.models.gang_packing import GangPacking, Packing


@solvers.register("greedy-colouring")
@dataclass(frozen=True)
class GreedyColoring(FitHeuristic):
    """Colour the running jobs by DSATUR, and put waiting jobs where they first fit.

    Running jobs that share a column are neighbours in a graph, and rows are its colours: DSATUR
    (Brelaz 1979), by networkx. Where it needs more colours than there are rows, and where running
    jobs keep their rows, the present rows stay. Waiting jobs go in the order of the queue under
    ``fcfs``, and by decreasing size under ``skip``, as in `FirstFit`. A baseline: colours say
    nothing of how full rows are.

    References
    ----------
    D. Brelaz, "New methods to color the vertices of a graph", Communications of the ACM 22,
    251-256, 1979.
    """

    requires = "networkx"
    seconds_per_solve = 1e-3
    seconds_per_work = 1e-5

    def place(self, problem: GangPacking) -> Packing:
        """Return the packing by colours."""
        order = None
        if problem.admission == "skip":
            order = sorted(range(len(problem.waiting)), key=lambda job: -problem.waiting[job])
        rows = _colours(problem) if problem.rerow else problem.rows_of_running
        return problem.packing(rows, fitted(problem, rows, tightest=False, order=order))


def _colours(problem: GangPacking) -> Sequence[int]:
    """Return the colour of each running job, or its present row if the colours do not suffice."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(problem.running)))
    graph.add_edges_from(
        (one, other)
        for (one, mask), (other, shared) in combinations(enumerate(problem.running), 2)
        if mask & shared
    )
    colours = nx.greedy_color(graph, strategy="DSATUR")
    if max(colours.values(), default=0) >= problem.rows:
        return problem.rows_of_running
    return [colours[job] for job in range(len(problem.running))]
