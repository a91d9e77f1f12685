"""A rule for whole nodes: the largest job first, each on as few leaf switches as it can."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.node_placement import NodePlacement, Placements
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.node_placement._leaf_filling import filled_by_priority
from optsched.solvers.node_placement._whole_nodes import placements, pools


@solvers.register("leaf-best-fit")
@dataclass(frozen=True)
class LeafBestFit(Heuristic):
    """Best fit of whole nodes into leaf switches.

    A knapsack chooses the jobs of greatest weight that the free nodes hold together. Of these, the
    largest comes first. It gets the leaf with the fewest free nodes that holds it. If none does, it
    gets the leaf with the most free nodes, and its remaining nodes are placed likewise; if a block
    must hold it, in the block with the fewest free nodes that does. A job that fits in no block, or
    on no leaf if a leaf must hold it, is left out.

    Problems in which chunks may share a node, or whose objective is another than most weight and
    then fewest switches, are refused.

    Examples
    --------
    Jobs of 2, 2, 3 and 4 nodes, of which leaves have 5 and 6, span 5 switches in place of 4:

    >>> problem = NodePlacement(
    ...     ["cores"], free=[[8]] * 11, chunks=[2, 2, 3, 4], demand=[[8]] * 4,
    ...     then=("switches",), switches=["a"] * 5 + ["b"] * 6)
    >>> problem.measures(LeafBestFit().place(problem))
    {'weight': 4, 'switches': 5, 'nodes': 11}
    """

    models = frozenset({"node-placement"})
    work_unit = "jobs times nodes"
    seconds_per_work = 1e-8

    def place(self, problem: NodePlacement) -> Placements:
        """Return the placements by the rule.

        Raises
        ------
        InputError
            If the problem is not one of whole nodes, see `pools`.
        """
        return placements(problem, [(pool, filled_by_priority(pool)) for pool in pools(problem)])

    def effort(self, problem: NodePlacement) -> int:
        """Return the number of jobs times the number of nodes."""
        return len(problem.chunks) * len(problem.free)
