"""Leaf switches under blocks, and the comparison of leaves by Slurm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.models.node_placement import NodePlacement
from optsched.solvers.node_placement._node_state import numbered

Ints = NDArray[np.int64]

SIBLINGS, COUSINS = 2, 4
"""Hops between two leaves of a block, and between leaves of two blocks."""


class Tree(NamedTuple):
    """Leaf switches in the order of their first nodes, each in a block.

    Parameters
    ----------
    leaf_of : ndarray of int, shape (nodes,)
        Leaf of each node.
    parent : ndarray of int, shape (leaves,)
        Block of each leaf, from the number of leaves on, so that leaves and blocks can be counted
        in one array.
    """

    leaf_of: Ints
    parent: Ints

    def counts(self, room: Ints) -> tuple[Ints, Ints]:
        """Return the nodes with room in each leaf and block, and their room, in chunks."""
        both = np.zeros((2, 1 + self.parent.max()), dtype=np.int64)
        for counted, values in zip(both, (room > 0, room)):
            np.add.at(counted, self.leaf_of, values)
            np.add.at(counted, self.parent, counted[: len(self.parent)])
        nodes, chunks = both
        return nodes, chunks

    def hops_from(self, leaf: int) -> Ints:
        """Return the hops from a leaf to each other one."""
        hops = np.where(self.parent == self.parent[leaf], SIBLINGS, COUSINS)
        hops[leaf] = 0
        return hops


def tree_of(problem: NodePlacement) -> Tree:
    """Return the tree of a problem: one leaf without switches and blocks."""
    one = ("",) * len(problem.free)
    blocks = problem.blocks or one
    leaf_of = numbered(zip(blocks, problem.switches or one))
    if problem.switches is None:
        blocks = one
    _, first = np.unique(leaf_of, return_index=True)
    return Tree(leaf_of, len(first) + numbered(blocks)[first])


@kernel(allocates=False)
def best_leaf(
    tree: Tree, nodes: Ints, chunks: Ints, nodes_left: int, chunks_left: int, far: Ints
) -> int:
    """Return the best leaf for the chunks that are left, -1 if none has room.

    `nodes` and `chunks` count what leaves and blocks have, `far` adds up hops to leaves in use.
    """
    best = -1
    for leaf in range(len(tree.parent)):
        if nodes[leaf] == 0:
            continue
        if best < 0:
            best = leaf
            continue
        one, other = leaf, best
        one_suffices = nodes[one] >= nodes_left and chunks[one] >= chunks_left
        other_suffices = nodes[other] >= nodes_left and chunks[other] >= chunks_left
        if not (one_suffices or other_suffices) and tree.parent[one] != tree.parent[other]:
            one, other = tree.parent[one], tree.parent[other]
            one_suffices = nodes[one] >= nodes_left and chunks[one] >= chunks_left
            other_suffices = nodes[other] >= nodes_left and chunks[other] >= chunks_left
        better = one_suffices
        if one_suffices == other_suffices:
            better = nodes[one] < nodes[other] if one_suffices else nodes[one] > nodes[other]
        if (far[leaf] < far[best] and one_suffices) or (far[leaf] == far[best] and better):
            best = leaf
    return best
