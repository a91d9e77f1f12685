"""Whole nodes on the leaf switches of Alibaba's Lingjun cluster, of which some are busy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from optsched.models.node_placement import NodePlacement

from .trace import Table

LAYERS = ("DSW", "PSW", "ASW")
"""The switches above a host, the leaf switch last."""


def read_leaves(path: Path) -> list[int]:
    """Read the number of hosts of each leaf switch, in the order of the names of the switches."""
    table = Table(path, LAYERS)
    hosts = Counter(zip(*(table.texts(layer) for layer in LAYERS)))
    return [hosts[leaf] for leaf in sorted(hosts)]


def whole_nodes(
    leaves: Sequence[int],
    *,
    busy: float,
    jobs: int,
    sizes: Sequence[int],
    blocks: int,
    fill: float,
    seed: int,
) -> NodePlacement:
    """Return the problem of jobs of whole nodes, with most weight and then fewest switches.

    Hosts are busy with a probability; `jobs`, or fewer, of drawn `sizes` ask for a share `fill` of
    the free ones at most. With `blocks` of leaves, one must hold a job, whose weight is its size.
    """
    rng = np.random.default_rng(seed)
    free = [int((rng.random(hosts) > busy).sum()) for hosts in leaves]
    asked: list[int] = []
    while len(asked) < jobs:
        size = int(rng.choice(sizes))
        if sum(asked) + size > fill * sum(free):
            break
        asked.append(size)
    leaf_of = [leaf for leaf, hosts in enumerate(free) for _ in range(hosts)]
    return NodePlacement(
        resources=["nodes"],
        free=np.ones((len(leaf_of), 1), dtype=np.int64),
        chunks=asked,
        demand=np.ones((len(asked), 1), dtype=np.int64),
        weights=asked if blocks else None,
        then=("switches",),
        switches=[str(leaf) for leaf in leaf_of],
        blocks=[str(leaf * blocks // len(leaves)) for leaf in leaf_of] if blocks else None,
        span=["block" if blocks else "anywhere"] * len(asked),
    )
