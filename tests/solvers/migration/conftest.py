"""Optima by trying everything, and states of a torus."""

import random

import numpy as np
from boxes.trying_boxes import boxes_of, cheapest, choices_of, extents_of, holes_of

from optsched.boxes.box import Box, shapes
from optsched.boxes.free_boxes import anchors
from optsched.models import Migration

SWAP = Migration(
    (8, 1, 1),
    ["3x1x1@0,0,0", "2x1x1@5,0,0"],
    sizes=[3, 2],
    elapsed=[20, 10],
    incoming=2,
    holes=["1x1x1@4,0,0"],
    wrap=(False, False, False),
)
"""The large job has room if the others change places; neither can leave before the other."""


def optimum_of(problem):
    """Try every place of the large job, and every box for every job, but for what costs more."""
    holes, choices = holes_of(problem), choices_of(problem)
    best = None
    for _, cells in boxes_of(problem, extents_of(problem, problem.incoming)):
        if not cells & holes:
            best = cheapest(choices, holes | cells, best)
    return best


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
