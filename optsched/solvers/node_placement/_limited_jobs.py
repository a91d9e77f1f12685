"""Problems in which only some jobs are held by groups of nodes, taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.node_placement.fields import WHOLE
from optsched.solvers.node_placement.fit_rules import BestFit

Flags = NDArray[np.bool_]


def limited_jobs(problem: NodePlacement) -> Flags:
    """Return which jobs one switch or block must hold, or levels limit, shape (jobs,)."""
    limited: Flags = np.array(problem.span, dtype=str) != "anywhere"
    return limited | problem.most_groups.any(axis=1) | (problem.segments > 1).any(axis=1)


def packed_around(
    problem: NodePlacement, solve: Callable[[NodePlacement], Placements | None]
) -> Placements | None:
    """Return placements for which limited jobs come first, None if none are found.

    The problem without limits says which of these jobs are worth it. They are placed by best fit,
    those of most weight first, and the others are packed around them.

    Parameters
    ----------
    problem : NodePlacement
        The problem.
    solve : callable
        Returns placements of a problem without limited jobs, None if it finds none.
    """
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
