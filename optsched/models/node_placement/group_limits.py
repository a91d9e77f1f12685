"""Limits of a job on the groups of its nodes, and how many chunks they let it place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
