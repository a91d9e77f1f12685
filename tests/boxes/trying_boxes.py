"""Tori with busy routers, and optima of problems on one by trying every box for every job."""

from functools import lru_cache
from itertools import product

import numpy as np
from hypothesis import strategies as st

from optsched.boxes.box import Box, Grid, shapes


@lru_cache(maxsize=16)
def all_boxes(grid):
    """All boxes of a grid, ordered by x, nx, y, ny, z."""
    sides = [[(at, n) for at in range(side) for n in range(1, side + 1)] for side in grid.shape]
    boxes = (Box(x, y, z, nx, ny, nz) for (x, nx), (y, ny), (z, nz) in product(*sides))
    return [box for box in boxes if not grid.mistake(box)]


@st.composite
def occupied(draw):
    """A grid, and which of its routers are free: around some boxes, or around single routers."""
    shape = draw(st.tuples(*[st.integers(1, 5)] * 3))
    grid = Grid(shape, draw(st.tuples(*[st.booleans()] * 3)), draw(st.booleans()))
    if draw(st.booleans()):
        boxes = draw(st.lists(st.sampled_from(all_boxes(grid)), max_size=6))
        return grid.free_of(boxes), grid
    chance = draw(st.sampled_from([0.1, 0.5, 0.9]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return random.random(shape) < chance, grid


def boxes_of(problem, extents):
    """Return the boxes of some extents with their routers, wherever there is no mistake in one."""
    places = list(product(*map(range, problem.torus)))
    boxes = [Box(*anchor, *extent) for extent in extents for anchor in places]
    grid = problem.grid
    return [(b, frozenset(grid.cells(b).tolist())) for b in boxes if not grid.mistake(b)]


def extents_of(problem, nodes):
    """Return the extents that a job may get."""
    routers = -(-nodes // problem.nodes_per_router)
    return shapes(routers, problem.grid, problem.links)[: problem.shapes]


def holes_of(problem):
    """Return the routers that no job may have."""
    return frozenset(cell for hole in problem.holes for cell in problem.grid.cells(hole).tolist())


def choices_of(problem):
    """Return costs and routers of all places of each running job, first where the job is."""
    movable = range(len(problem.running)) if problem.movable is None else problem.movable
    ending = {cell for box in problem.ending for cell in problem.grid.cells(box).tolist()}
    choices = []
    for job, box in enumerate(problem.running):
        cost = problem.sizes[job] * problem.elapsed[job]
        choices.append([(0, frozenset(problem.grid.cells(box).tolist()))])
        if job in movable:
            extents = {*extents_of(problem, problem.sizes[job]), box.extent}
            others = boxes_of(problem, extents)
            choices[-1] += [
                (cost, cells) for other, cells in others if other != box and not cells & ending
            ]
    return choices


def cheapest(choices, taken, best=None):
    """Try all combinations of choices, but for what costs `best` or more; None if there is none."""

    def search(number, spent, taken):
        nonlocal best
        if best is not None and spent >= best:
            return
        if number == len(choices):
            best = spent
            return
        for cost, cells in choices[number]:
            if not cells & taken:
                search(number + 1, spent + cost, taken | cells)

    search(0, 0, taken)
    return best
