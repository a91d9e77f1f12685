"""How many chunks of a job each part of the nodes gets, where its levels limit groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.node_placement import NodePlacement
from optsched.models.node_placement.limits import Limit, most_chunks, nodes_by_group, unit_of

Ints = NDArray[np.int64]


class Allotment(NamedTuple):
    """Chunks of a job for the parts of the nodes.

    Parameters
    ----------
    part_of : ndarray of int, shape (nodes,)
        Part of each node, -1 where the job gets nothing.
    chunks : ndarray of int, shape (parts,)
        Chunks of each part, no more than it has room for; together all chunks of the job.
    """

    part_of: Ints
    chunks: Ints

    def restrict(self, room: Ints) -> None:
        """Lower the room of each node to what is left for its part."""
        left = np.append(self.chunks, 0)  # nothing where the part is -1
        np.minimum(room, left[self.part_of], out=room)


def limits_of(problem: NodePlacement, job: int, numbered: dict[str, Ints]) -> list[Limit]:
    """Return the limits of a job, a level of few groups first, and its span as one of them.

    A job whose levels limit nothing has none, whatever its span.

    Parameters
    ----------
    problem : NodePlacement
        The problem.
    job : int
        The job.
    numbered : dict of str to array of int, shape (nodes,)
        Group of each node, from 0, in ``switch``, in ``block``, and in ``level`` with its name.
    """
    found = []
    for level, name in enumerate(problem.levels):
        most, segment = int(problem.most_groups[job, level]), int(problem.segments[job, level])
        if most or segment > 1:
            found.append(Limit(numbered[f"level {name}"], most, max(1, segment)))
    if found and problem.span[job] in numbered:
        found.append(Limit(numbered[problem.span[job]], 1, 1))
    return sorted(found, key=lambda one: int(one.group_of.max(initial=0)))


def allotment(limits: list[Limit], chunks: int, room: Ints) -> Allotment | None:
    """Return an allotment of the chunks of a job that keeps its limits, or None.

    At each level, from that of the fewest groups on, the group with the least room that suffices
    gets all chunks; if none does, the group with the most room gets as many segments as it can
    hold, and the search begins again for the rest. So it is with the blocks of Slurm. If the groups
    of each level are parts of those of the level before, which the job may only have one of, an
    allotment is found if there is any; otherwise, it may be missed.
    """
    part_of = np.full(len(room), -1)
    counts: list[int] = []

    def fill(depth: int, nodes: Ints, wanted: int) -> None:
        if depth == len(limits):
            part_of[nodes] = len(counts)
            counts.append(wanted)
            return
        unit = unit_of(limits[depth:])
        groups = nodes_by_group(limits[depth], nodes)
        most = [most_chunks(limits[depth + 1 :], each, room) // unit * unit for each in groups]
        while wanted:
            enough = [place for place, one in enumerate(most) if one >= wanted]
            best = min(enough or range(len(most)), key=lambda place: abs(most[place] - wanted))
            share = min(most[best], wanted)
            fill(depth + 1, groups[best], share)
            wanted -= share
            most[best] = 0

    nodes = np.flatnonzero(room)
    if most_chunks(limits, nodes, room) < chunks:
        return None
    fill(0, nodes, chunks)
    found = Allotment(part_of, np.array(counts, dtype=np.int64))
    return found if _keeps(limits, found) else None


def _keeps(limits: list[Limit], found: Allotment) -> bool:
    """Return whether an allotment keeps the limits."""
    for group_of, most, segment in limits:
        groups = np.zeros(int(group_of.max(initial=0)) + 1, dtype=np.int64)
        for part, count in enumerate(found.chunks.tolist()):
            groups[group_of[found.part_of == part][0]] += count
        if (groups % segment).any() or (most and np.count_nonzero(groups) > most):
            return False
    return True
