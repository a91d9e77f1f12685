"""Nodes that hold one chunk at most, counted: a problem of fewer nodes with room for several."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement import NodePlacement, Placements
from optsched.solvers.node_placement._whole_nodes import (
    alike_jobs,
    devices_for,
    most_on_nodes,
    shareable,
)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AlikeNodes:
    """A problem whose nodes stand for those of another that are alike.

    Nodes are alike if the same jobs can have a chunk there, and if they are in the same groups.

    Parameters
    ----------
    whole : NodePlacement
        The problem, of which each node holds one chunk at most.
    problem : NodePlacement
        The smaller problem, of the same jobs, with as many units on a node as nodes it stands for.
    nodes : tuple of tuple of int
        The nodes that each node of the smaller problem stands for.
    """

    whole: NodePlacement
    problem: NodePlacement
    nodes: tuple[tuple[int, ...], ...]

    def counted(self, solution: Placements) -> Placements:
        """Return the placements of the smaller problem for those of the whole one."""
        of_node = {node: place for place, nodes in enumerate(self.nodes) for node in nodes}
        at = tuple(tuple(sorted(of_node[node] for node in nodes)) for nodes in solution.nodes)
        return Placements(at, tuple(((),) * len(nodes) for nodes in at))

    def spread(self, solution: Placements) -> Placements:
        """Return the placements of the whole problem, alike nodes filled in their order."""
        unused = [iter(nodes) for nodes in self.nodes]
        at = [tuple(sorted(next(unused[place]) for place in nodes)) for nodes in solution.nodes]
        devices = [
            tuple(
                devices_for(self.whole.devices[node], int(self.whole.share[job])) for node in there
            )
            for job, there in enumerate(at)
        ]
        return Placements(tuple(at), tuple(devices))


def alike_nodes(problem: NodePlacement) -> AlikeNodes | None:
    """Return the smaller problem; None if a node may hold two chunks.

    None also if anything but switches is minimized, as only these stay the same.
    """
    if {*problem.then} - {"switches"}:
        return None
    fits = np.zeros((len(problem.chunks), len(problem.free)), dtype=bool)
    for jobs in alike_jobs(problem, range(len(problem.chunks))):
        most = most_on_nodes(problem, jobs[0])
        several = problem.most_per_node[jobs[0]] != 1 and problem.chunks[jobs].max() > 1
        if several and most.max(initial=0) > 1:
            return None
        fits[jobs] = most > 0
    groups = [labels for labels in (problem.switches, problem.blocks) if labels is not None]
    keys = zip(map(bytes, np.packbits(fits, axis=0).T), *groups, *problem.groups)
    cells: dict[tuple[object, ...], list[int]] = {}
    for node, key in enumerate(keys):
        cells.setdefault(key, []).append(node)
    sharing = np.ones(len(fits), dtype=bool)
    sharing[list(problem.exclusive)] = False
    for nodes in cells.values():
        there = np.flatnonzero(fits[:, nodes[0]] & sharing).tolist()
        if len(there) > 1 and shareable(problem, there, np.array(nodes)).size:
            return None
    first = [nodes[0] for nodes in cells.values()]
    names = [str(node) for node in first]

    def of_first(labels: object) -> list[str] | None:
        return None if labels is None else [labels[node] for node in first]  # type: ignore[index]

    smaller = NodePlacement(
        ["nodes"],
        np.array([[len(nodes)] for nodes in cells.values()], dtype=np.int64).reshape(-1, 1),
        problem.chunks,
        np.ones((len(fits), 1), dtype=np.int64),
        weights=problem.weights,
        then=problem.then,
        kinds=names,
        allowed=[[names[place] for place in np.flatnonzero(row[first])] for row in fits],
        switches=of_first(problem.switches),
        blocks=of_first(problem.blocks),
        span=problem.span,
        licences=problem.licences,
        licences_of=problem.licences_of,
        levels=problem.levels,
        groups=[of_first(labels) for labels in problem.groups],
        most_groups=problem.most_groups,
        segments=problem.segments,
    )
    return AlikeNodes(problem, smaller, tuple(map(tuple, cells.values())))
