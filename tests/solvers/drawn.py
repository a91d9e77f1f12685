"""Random problems that take a search, for tests of several solvers."""

from __future__ import annotations

import random

import numpy as np

from optsched.boxes.box import Box, shapes
from optsched.boxes.free_boxes import anchors
from optsched.models import GangPacking, Migration
from optsched.models.node_placement import NodePlacement


def random_matrix(seed, *, columns=64, rows=4, jobs=34, waiting=14, **options):
    """Draw jobs that arrived and left for a while: their columns are in pieces."""
    rng = random.Random(seed)
    free, running = [(1 << columns) - 1] * rows, []
    for _ in range(4 * jobs):
        row, size = rng.randrange(rows), int(columns ** rng.uniform(0, 5 / 6))
        there = [column for column in range(columns) if free[row] >> column & 1]
        if len(there) >= size:
            mask = sum(1 << column for column in sorted(rng.sample(there, size)))
            free[row] ^= mask
            running.append((mask, row))
        while len(running) > jobs:
            mask, row = running.pop(rng.randrange(len(running)))
            free[row] |= mask
    masks, in_rows = zip(*running)
    sizes = [int(columns ** rng.uniform(1 / 3, 1)) for _ in range(waiting)]
    return GangPacking(columns, rows, masks, in_rows, sizes, **options)


def random_state(seed, *, sides=(8, 8, 8), busy=0.6, nodes=2, large=60, largest=5, **options):
    """Fill a torus with jobs at random places, and let some go and come until the end."""
    rng = random.Random(seed)
    problem = Migration(sides, [], [], [], 1)
    grid, free, running = problem.grid, np.ones(sides, dtype=bool), []
    for _ in range(20 * sides[0] * sides[1]):
        routers = int(2 ** rng.uniform(0, largest))
        ranked = shapes(routers, grid)[:4]
        shape = rng.choice(ranked)
        there = anchors(free, grid, shape)
        if len(there):
            box = Box(*rng.choice(there.tolist()), *shape)
            free[grid.routers_of(box)] = False
            running.append((box, routers * nodes, int(rng.expovariate(1 / 7200))))
        while free.sum() < (1 - busy) * grid.routers:
            box, _, _ = running.pop(rng.randrange(len(running)))
            free[grid.routers_of(box)] = True
    boxes, sizes, elapsed = zip(*running)
    return Migration(grid.shape, boxes, sizes, elapsed, large, nodes_per_router=nodes, **options)


def whole_nodes(room, jobs, weights=None, *, blocks=None, span="anywhere"):
    """Return the problem of jobs on leaves with free nodes, which may be in blocks."""
    leaves = [leaf for leaf, nodes in enumerate(room) for _ in range(nodes)]
    return NodePlacement(
        ["cores"],
        [[8]] * len(leaves),
        jobs,
        [[8]] * len(jobs),
        weights=weights,
        then=("switches",),
        switches=[f"leaf {leaf}" for leaf in leaves],
        blocks=None if blocks is None else [f"block {blocks[leaf]}" for leaf in leaves],
        span=[span] * len(jobs) if isinstance(span, str) else span,
    )


def with_devices(seed, *, nodes, jobs, sorts=3, weights=9, **fields):
    """Draw jobs with shares of devices and gangs for partly busy nodes of some sorts."""
    rng = random.Random(seed)
    rooms = [[1000, 1000, 1000, 1000], [1000, 600], [400, 1000], []]
    free = [[rng.randint(4, 16), rng.randint(8, 32)] for _ in range(sorts)]
    devices = [rng.choice(rooms) for _ in range(sorts)]
    sort_of = [rng.randrange(sorts) for _ in range(nodes)]
    demand = [[rng.randint(1, 6), rng.randint(1, 12)] for _ in range(jobs)]
    return NodePlacement(
        ["cores", "memory"],
        [free[sort] for sort in sort_of],
        [rng.choice([1, 1, 2, 5]) for _ in range(jobs)],
        demand,
        weights=[rng.randint(1, weights) * cores for cores, _ in demand],
        most_per_node=[rng.choice([0, 0, 1, 2]) for _ in range(jobs)],
        devices=[devices[sort] for sort in sort_of],
        share=[rng.choice([0, 200, 300, 500, 700, 1000, 2000]) for _ in range(jobs)],
        **fields,
    )


def on_leaves(seed, *, nodes, leaf, jobs, load=None, sizes=(1, 2, 3, 6)):
    """Draw jobs of several chunks on nodes that they share, at most a share of the free cores."""
    rng = random.Random(seed)
    free = [[rng.choice([8, 12, 16]), rng.choice([16, 32])] for _ in range(nodes)]
    chunks, demand = [], []
    for _ in range(jobs):
        chunks.append(rng.choice(sizes))
        demand.append([rng.choice([2, 3, 4, 8]), rng.randint(1, 10)])
        asked = sum(size * cores for size, (cores, _) in zip(chunks, demand))
        if load is not None and asked > load * sum(cores for cores, _ in free):
            break
    return NodePlacement(
        ["cores", "memory"],
        free,
        chunks,
        demand,
        weights=[size * cores for size, (cores, _) in zip(chunks, demand)],
        then=("switches",),
        switches=[str(node // leaf) for node in range(nodes)],
    )
