"""Limits of a job on its nodes and on groups of them, and the check of its nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.problem import Violation


def beyond_limits(
    name: str,  # what messages call the job
    nodes: Sequence[int],  # the node of each chunk
    *,
    # Kind of each node of the problem, and the kinds that the job may use; None for all
    kinds: Sequence[str] | None,
    allowed: Sequence[str] | None,
    most_per_node: int,  # most chunks on a node, 0 for no limit
    # The switch or block of each node if one must hold the job, named `span`
    groups: Sequence[str] | None,
    span: str,
) -> list[Violation]:
    """Return where the chunks of a job are on nodes on which they may not be."""
    found = []
    if kinds is not None and allowed is not None:
        wrong = [node for node in nodes if kinds[node] not in allowed]
        if wrong:
            detail = f"{name} is on node {wrong[0]} of kind {kinds[wrong[0]]}"
            found.append(Violation("kind", detail))
    for node, count in Counter(nodes).most_common(1):
        if most_per_node and count > most_per_node:
            detail = f"{name} has {count} chunks on node {node}, more than {most_per_node}"
            found.append(Violation("per node", detail))
    if groups is not None and len(spanned := {groups[node] for node in nodes}) > 1:
        found.append(Violation("span", f"{name} is in {len(spanned)} of {span}"))
    return found


Ints = NDArray[np.int64]


class Limit(NamedTuple):
    """Limit of a job at a level."""

    group_of: Ints  # group of each node, from 0, shape (nodes,)
    most: int  # most groups that the job may span, 0 for any number
    segment: int  # number of chunks in a segment, each in one group; 1 for no segments


def unit_of(limits: Sequence[Limit]) -> int:
    """Return the number of which the chunks in a group of the first level are a multiple."""
    return math.lcm(*(limit.segment for limit in limits))


def nodes_by_group(limit: Limit, nodes: Ints) -> list[Ints]:
    """Return the nodes of each group that has some of `nodes`."""
    group_of = limit.group_of[nodes]
    order = np.argsort(group_of, kind="stable")
    _, first = np.unique(group_of[order], return_index=True)
    return np.split(nodes[order], first[1:])


def most_chunks(limits: Sequence[Limit], nodes: Ints, room: Ints) -> int:
    """Return the most chunks of a job on nodes, if the groups of a level are parts of those before.

    If they are not, or if several of those before may have part of a number of groups, the job may
    place fewer.

    `limits`: limits of the job, that of the largest groups first; `room`: how many chunks each node
    can hold, shape (all nodes,).
    """
    if not limits:
        return int(room[nodes].sum())
    unit = unit_of(limits)
    found = sorted(
        most_chunks(limits[1:], there, room) // unit * unit
        for there in nodes_by_group(limits[0], nodes)
    )
    return sum(found[-limits[0].most :])
