"""Optima by trying everything, and states of a torus."""

from __future__ import annotations

import random
from itertools import product

import numpy as np

from optsched.boxes.box import Box
from optsched.boxes.free_boxes import anchors
from optsched.boxes.shapes import shapes
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
    grid = problem.grid

    def sets(extents):
        boxes = (
            Box(*anchor, *extent)
            for extent in extents
            for anchor in product(*map(range, problem.torus))
        )
        return [(b, frozenset(grid.cells(b).tolist())) for b in boxes if not grid.mistake(b)]

    def limited(nodes):
        routers = -(-nodes // problem.nodes_per_router)
        return shapes(routers, grid, problem.links)[: problem.shapes]

    ending = frozenset(cell for box in problem.ending for cell in grid.cells(box).tolist())
    movable = range(len(problem.running)) if problem.movable is None else problem.movable
    choices = []
    for job, box in enumerate(problem.running):
        cost = problem.sizes[job] * problem.elapsed[job]
        choices.append([(0, frozenset(grid.cells(box).tolist()))])
        if job in movable:
            extents = {*limited(problem.sizes[job]), box.extent}
            choices[-1] += [
                (cost, cells)
                for other, cells in sets(extents)
                if other != box and not cells & ending
            ]
    holes = frozenset(cell for hole in problem.holes for cell in grid.cells(hole).tolist())
    best = None

    def search(job, spent, taken):
        nonlocal best
        if best is not None and spent >= best:
            return
        if job == len(choices):
            best = spent
            return
        for cost, cells in choices[job]:
            if not cells & taken:
                search(job + 1, spent + cost, taken | cells)

    for _, cells in sets(limited(problem.incoming)):
        if not cells & holes:
            search(0, 0, holes | cells)
    return best


def random_state(seed, *, side=8, busy=0.6, nodes=2, large=60, largest=5, **options):
    """Fill a torus with jobs at random places, and let some go and come until the end."""
    rng = random.Random(seed)
    problem = Migration((side,) * 3, [], [], [], 1)
    grid, free, running = problem.grid, np.ones((side,) * 3, dtype=bool), []
    for _ in range(20 * side**2):
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
