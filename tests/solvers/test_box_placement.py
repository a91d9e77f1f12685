"""Box placement: job by job as the rule says, and exactly."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

import optsched
from optsched.boxes.box import Box
from optsched.models import BoxPlacement, box_placement
from optsched.solvers.box_placement import place_directly
from optsched.testing import box_placements


def all_boxes(grid, shape):
    boxes = (Box(*anchor, *shape) for anchor in product(*map(range, grid.shape)))
    return [box for box in boxes if not grid.mistake(box)]


def faces(grid, box):
    """Return, for each dimension in which a box has faces, the routers beside both; None: border.

    A router that is beside two faces, or twice beside one, is there twice.
    """
    found = []
    spans = [
        [at % side for at in range(first, first + extent)]
        for first, extent, side in zip(box.anchor, box.extent, grid.shape)
    ]
    for axis, (side, wraps) in enumerate(zip(grid.shape, grid.wrap)):
        beside = (box.anchor[axis] - 1, box.anchor[axis] + box.extent[axis])
        if box.extent[axis] < side:
            planes = [product(*spans[:axis], [at % side], *spans[axis + 1 :]) for at in beside]
            inside = [wraps or 0 <= at < side for at in beside]
            found.append([[r if i else None for r in plane] for i, plane in zip(inside, planes)])
    return found


def touching(free, grid, box):
    """Return how many faces of a box's routers are next to a router in use or at a border."""
    beside = [router for both in faces(grid, box) for routers in both for router in routers]
    return sum(router is None or not free[router] for router in beside)


def cornered(free, grid, box):
    """Return whether something is next to one of both faces in each dimension."""
    return all(
        any(router is None or not free[router] for routers in both for router in routers)
        for both in faces(grid, box)
    )


def placed(problem):
    """State direct placement in plain Python."""
    grid, free = problem.grid, problem.free.copy()
    placement = []
    for size in problem.waiting.tolist():
        ranked = {shape: rank for rank, shape in enumerate(problem.admitted(size))}
        candidates = [
            box
            for shape in ranked
            for box in all_boxes(grid, shape)
            if problem.free[grid.routers_of(box)].all()
        ]
        if problem.anchors == "corners":
            some = [box for box in candidates if cornered(problem.free, grid, box)]
            candidates = some or candidates
        best = min(
            (box for box in candidates if free[grid.routers_of(box)].all()),
            key=lambda box: (ranked[box.extent], -touching(free, grid, box), box.anchor),
            default=None,
        )
        if best is not None:
            free[grid.routers_of(best)] = False
        placement.append(best)
    return tuple(placement)


@settings(max_examples=150, deadline=None)
@given(box_placements(max_running=4, max_waiting=6))
def test_it_places_as_it_says(problem):
    placement = place_directly(problem)
    assert placement == placed(problem)
    assert problem.violations(placement) == []


@pytest.mark.parametrize("sides", [(64, 3, 64), (1, 64, 64), (64, 64, 1)])
def test_rows_as_long_as_a_word(sides):
    rng = np.random.default_rng(1)
    for wrap in ((True, True, True), (False, False, False)):
        taken = {tuple(rng.integers(sides).tolist()) for _ in range(9)}
        running = [f"1x1x1@{x},{y},{z}" for x, y, z in sorted(taken)]
        problem = BoxPlacement(sides, running, [64, 300, 2, 70, 7, 64, 3000], wrap=wrap)
        placement = place_directly(problem)
        assert problem.violations(placement) == []
        assert problem.objective(placement) > 500


@settings(max_examples=25, deadline=None)
@given(box_placements(max_side=3, max_waiting=5))
def test_it_proves_what_others_prove(problem):
    result = optsched.solve(problem, "box-search")
    assert result.status == "optimal"
    assert result.objective == optsched.solve(problem, "highs").objective


def test_where_everything_fits_no_program_is_stated(monkeypatch):
    monkeypatch.setattr(box_placement, "MOST", 0)
    problem = BoxPlacement((4, 4, 4), ["1x1x1@0,0,0"], [8, 7, 32])
    result = optsched.solve(problem, "box-search")
    assert (result.status, result.objective, result.work) == ("optimal", 47, 0)


def test_what_is_too_large_to_be_stated_is_placed_and_bounded(monkeypatch):
    monkeypatch.setattr(box_placement, "MOST", 0)
    problem = BoxPlacement((6, 1, 1), ["1x1x1@0,0,0", "1x1x1@3,0,0"], [3, 1])
    result = optsched.solve(problem, "box-search")
    assert (result.status, result.limit, result.bound) == ("feasible", "memory", 4)
