"""Smaller problems for those with levels or spans: nodes counted, or limited jobs placed first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.node_placement._whole_nodes import (
    alike_jobs,
    devices_for,
    most_on_nodes,
    shareable,
)
from optsched.solvers.node_placement.fit_rules import BestFit

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AlikeNodes:
    """A problem whose nodes stand for those of another to which the same jobs and groups go."""

    whole: NodePlacement  # in which a node holds one chunk at most
    problem: NodePlacement  # in which a node has a unit for each node it stands for
    nodes: tuple[tuple[int, ...], ...]  # for which each stands

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
    """Return the smaller problem; None if a node may hold two chunks or idle nodes matter."""
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


Flags = NDArray[np.bool_]


def limited_jobs(problem: NodePlacement) -> Flags:
    """Return which jobs one switch or block must hold, or levels limit, shape (jobs,)."""
    limited: Flags = np.array(problem.span, dtype=str) != "anywhere"
    return limited | problem.most_groups.any(axis=1) | (problem.segments > 1).any(axis=1)


def packed_around(
    problem: NodePlacement, solve: Callable[[NodePlacement], Placements | None]
) -> Placements | None:
    """Return placements for which limited jobs come first, None if none are found."""
    limited = limited_jobs(problem)
    free = dict.fromkeys(("span", "most_groups", "segments"))
    without = solve(_changed(problem, free))
    if without is None:
        return None
    worth = limited & np.array([bool(nodes) for nodes in without.nodes], dtype=bool)
    weights = np.where(worth, problem.weights, 0)
    fitted = BestFit(order="largest").place(_changed(problem, {"weights": weights}))
    taken = {job for job in np.flatnonzero(worth).tolist() if fitted.nodes[job]}
    rest = solve(_changed(problem, {**free, **_beside(problem, limited, fitted, taken)}))
    if rest is None:
        return None
    source = [fitted if job in taken else rest for job in range(len(limited))]
    found = Placements(
        tuple(one.nodes[job] for job, one in enumerate(source)),
        tuple(one.devices[job] for job, one in enumerate(source)),
    )
    return None if problem.violations(found) else found


def _beside(
    problem: NodePlacement, limited: Flags, fitted: Placements, taken: set[int]
) -> dict[str, Any]:
    """Return the fields of the problem beside the limited jobs that are taken."""
    amounts, licences = problem.free.copy(), problem.licences.copy()
    devices = [list(row) for row in problem.devices]
    exclusive = {*problem.exclusive}
    busy = {*problem.busy}
    for job in taken:
        licences -= problem.licences_of[job]
        for node, chosen in zip(fitted.nodes[job], fitted.devices[job]):
            busy.add(node)
            amounts[node] -= problem.demand[job]
            for device in chosen:
                devices[node][device] -= min(int(problem.share[job]), WHOLE)
            if job in exclusive:
                amounts[node] = 0
    return {
        "free": amounts,
        "devices": devices,
        "licences": licences,
        "busy": tuple(busy),
        "kinds": problem.kinds or [""] * len(amounts),
        "allowed": [
            () if is_limited else allowed
            for is_limited, allowed in zip(limited.tolist(), problem.allowed)
        ],
    }


def _changed(problem: NodePlacement, changes: Mapping[str, Any]) -> NodePlacement:
    fields = {each.name: getattr(problem, each.name) for each in problem.schema.fields}
    return NodePlacement(**{**fields, **changes})
