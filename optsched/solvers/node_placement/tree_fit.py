"""Slurm's best fit over a tree of switches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement import NodePlacement
from optsched.registry import solvers
from optsched.solvers.node_placement.fit_rules import Rule

if TYPE_CHECKING:
    from optsched.solvers.node_placement._leaves import Tree
    from optsched.solvers.node_placement._node_state import NodeState

Ints = NDArray[np.int64]


@solvers.register("tree-best-fit")
@dataclass(frozen=True)
class TreeBestFit(Rule):
    """Slurm's best fit over the tree: the lowest switch whose nodes suffice, then leaf by leaf.

    This is what the topology guide of Slurm states and what its plugin ``topology/tree`` does, one
    job after the other. The tree has the leaf switches, the blocks above them and a root; without
    blocks, leaves and root; without switches, the blocks are the leaves. A node counts for a job if
    it can hold a chunk of it now. A switch *suffices* if it has enough such nodes, and room for all
    chunks on them.

    1. Of two leaves, the one that suffices is better; if both do, that with fewer nodes. If neither
       does and they are in different blocks, the same holds for their blocks. Where none suffices,
       the leaf or block with more nodes is better.
    2. The leaves are looked through once, in the order of their first nodes. A leaf replaces the
       best one so far if it is better and equally far from the leaves in use, or if it is nearer
       and it, or its block where blocks are compared, suffices. Distances are hops between
       switches, added up.
    3. Each node of the leaf, in order, gets as many chunks as it can hold. If chunks are left, the
       search begins again for these, with what is left.

    A job that one switch must hold (``--switches=1``) goes to one that suffices or is left out,
    because waiting for another cycle is what Slurm does until the longest wait is over.

    Not modeled: weights of nodes, which come before the topology in Slurm; nodes asked for by name;
    ranges of numbers of nodes; sockets, cores and their distance to GPUs; more levels of switches;
    the order of switches in Slurm's own file; dragonfly networks, contiguous nodes, least loaded
    nodes and ``TopoOptional``; and backfilling. Slurm compares processors where this rule compares
    chunks, and goes on counting those of leaves in use; for jobs of whole nodes that is the same.

    References
    ----------
    SchedMD, "Topology guide", Slurm documentation, https://slurm.schedmd.com/topology.html.

    Examples
    --------
    Leaves with 2 and 3 free nodes. The job of 2 nodes goes to the first, that of 3 to the second:

    >>> problem = NodePlacement(
    ...     resources=["nodes"], free=np.ones((5, 1), int), switches=["b", "b", "b", "a", "a"],
    ...     chunks=[2, 3], demand=np.array([[1], [1]]))
    >>> TreeBestFit().place(problem).nodes
    ((3, 4), (0, 1, 2))
    """

    def place_all(self, problem: NodePlacement, state: NodeState, jobs: Ints) -> None:
        """Place each job leaf by leaf."""
        from optsched.solvers.node_placement._leaves import tree_of

        tree = tree_of(problem)
        for job in jobs.tolist():
            room = state.room(job)
            if room is not None:
                chunks, most = int(problem.chunks[job]), int(problem.most_per_node[job])
                state.place(job, room, _leaf_by_leaf(tree, room, chunks, most or chunks))


def _leaf_by_leaf(tree: Tree, room: Ints, chunks: int, most: int) -> Iterator[int]:
    """Yield nodes of the best leaf, then of the next, while the chunks of a job are placed."""
    from optsched.solvers.node_placement._leaves import best_leaf

    far = np.zeros(len(tree.parent), dtype=np.int64)
    while True:
        leaf = best_leaf(tree, *tree.counts(room), -(-chunks // most), chunks, far)
        for node in np.flatnonzero((tree.leaf_of == leaf) & (room > 0)).tolist():
            chunks -= int(room[node])  # too many on the last node, after which nobody asks
            yield node
        far += tree.hops_from(leaf)
