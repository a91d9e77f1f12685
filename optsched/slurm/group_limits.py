"""Limits on the groups of nodes that a job may have: blocks, places on a torus, leaf switches.

Slurm numbers the blocks of a topology in the order of its file, and joins each 2, 4, 8 or more of
them, from the first on, to larger blocks; ``block_sizes`` says which of these there are. So it is
with blocks of 4 nodes and the sizes 4, 8 and 16: the third pair of blocks may be a block alone.

A set of nodes is placed in one block of the smallest size that is large enough. If not every
power of two is among the sizes, it has the fewest blocks of the largest size below half of what it
needs, rounded up to a power of two; so in the whole topology if no size is large enough. The set is
the job, or each of its segments (``--segment``). Segments may share blocks, and the number of
nodes is a multiple of theirs; one larger than the job is ignored.

On a torus, the set has exactly one of the places of its size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from optsched.arrays import Ints
from optsched.models.node_placement.fields import Limit
from optsched.sites.job_request import UnplaceableError
from optsched.sites.parts import Blocks, Places, Torus, Tree
from optsched.sites.slurm_notation import host_list

LEVELS = 5  # number of block sizes where the file states none, each twice the one before


class GroupLimit(NamedTuple):
    """A limit on the groups of nodes that a job may have."""

    level: str
    # Group of each node of the site, empty for none, where the job has no nodes
    groups: tuple[str, ...]
    most: int = 0  # most groups, 0 for any number
    segment: int = 0  # the number of nodes in each group is a multiple of this, 0 for any number

    @property
    def numbered(self) -> Limit:
        """The limit with numbers of the groups."""
        _, group_of = np.unique(np.array(self.groups, dtype=str), return_inverse=True)
        return Limit(group_of.ravel(), self.most, max(1, self.segment))


def block_limits(
    blocks: Blocks, name: str, nodes: int, segment: int = 0, *, together: bool = False
) -> tuple[GroupLimit, ...]:
    """Return the limits of a job in a topology of blocks, the one of the largest blocks first.

    `nodes`: least number of nodes of the job; `segment`: number of nodes of each segment, 0 for no
    segments; `together`: whether one block of a size that is large enough for the job has all its
    segments.
    """
    if not 0 < segment < nodes:
        return _one_set(blocks, name, nodes)
    _divided(nodes, segment)
    of_segment = _one_set(blocks, name, segment)
    if len(of_segment) != 1 or of_segment[0].most != 1:
        raise UnplaceableError(f"its segments of {segment:,} nodes need several blocks")
    within = of_segment[0]._replace(most=0, segment=segment)
    if not together:
        return (within,)
    of_job = _one_set(blocks, name, nodes)
    if of_job and of_job[0].level == within.level:
        return of_job
    return (*(limit for limit in of_job if limit.most == 1), within)


def torus_limit(
    torus: Torus, name: str, nodes: int, segment: int = 0, *, names: Sequence[str]
) -> GroupLimit:
    """Return the limit of a job on a torus: it has one place, or one for each segment.

    `nodes`: number of nodes of the job; `segment`: number of nodes of each segment, 0 for no
    segments; `names`: names of the nodes of the site.
    """
    size = nodes
    if 0 < segment < nodes:
        _divided(nodes, segment)
        size = segment
    groups = [""] * len(names)
    for places in torus.places:
        if math.prod(places.dims) != size:
            continue
        for there in _places(torus, places):
            if (there < 0).any():  # Slurm gives no place that lacks a node
                continue
            place = host_list(names[node] for node in there.tolist())
            for node in there.tolist():
                if groups[node]:
                    raise UnplaceableError(f"the places of {size:,} nodes on its torus overlap")
                groups[node] = place
    if not any(groups):
        raise UnplaceableError(f"its torus has no place of {size:,} nodes")
    level = f"places of {size:,} nodes of {name}"
    if size < nodes:
        return GroupLimit(level, tuple(groups), segment=size)
    return GroupLimit(level, tuple(groups), most=1)


def switch_limit(tree: Tree, name: str, most: int) -> GroupLimit:
    """Return the limit of a job that has at most some leaf switches of a tree."""
    return GroupLimit(f"leaf switches of {name}", _labels(tree.switches, tree.group), most)


def _divided(nodes: int, segment: int) -> None:
    if nodes % segment:
        raise UnplaceableError(
            f"its {nodes:,} nodes are no multiple of its segments of {segment:,}"
        )


def _one_set(blocks: Blocks, name: str, nodes: int) -> tuple[GroupLimit, ...]:
    """Return the limits of nodes that are placed in one block that is large enough."""
    first = int((blocks.group == 0).sum())
    sizes = blocks.sizes or [first << level for level in range(LEVELS)]
    base = max(1, sizes[0])
    joined = [size // base for size in sizes]  # base blocks of a block of each size
    needed = -(-nodes // base)
    enough = [number for number in joined if number >= needed]
    found = [_limit(blocks, name, base, enough[0], 1)] if enough else []
    if needed > 1:
        half = (1 << (needed - 1).bit_length()) // 2
        part = max(number for number in joined if number <= half)
        most = -(-nodes // (base * part))
        if not enough or enough[0] > part * most:
            found.append(_limit(blocks, name, base, part, most))
    return tuple(found)


def _limit(blocks: Blocks, name: str, base: int, joined: int, most: int) -> GroupLimit:
    """Return the limit on blocks that are each made of some neighbouring base blocks."""
    places = range(0, len(blocks.names), joined)
    names = [host_list(blocks.names[place : place + joined]) for place in places]
    group = np.where(blocks.group < 0, -1, blocks.group // joined)
    return GroupLimit(f"blocks of {base * joined:,} nodes of {name}", _labels(names, group), most)


def _labels(names: Sequence[str], group: Ints) -> tuple[str, ...]:
    return tuple(names[place] if place >= 0 else "" for place in group.tolist())


def _places(torus: Torus, places: Places) -> list[Ints]:
    """Return the nodes at each place, -1 for a position without a node."""
    grid = torus.nodes.reshape(torus.dims[::-1])
    anchors = [
        dict.fromkeys((seed + step * spacing) % size for step in range(size))
        for seed, spacing, size in zip(places.seed, places.spacing, torus.dims)
    ]
    found = []
    for anchor in product(*anchors):
        sides = zip(anchor, places.dims, torus.dims)
        box = [(low + np.arange(size)) % most for low, size, most in sides]
        found.append(grid[np.ix_(*box[::-1])].ravel())
    return found
