"""Boxes and their shapes, against sets of routers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.boxes.box import Box, Grid, bisection, box_of_text, shapes

WRAPS = list(product([False, True], repeat=3))


def routers(grid, box):
    """Return the routers of a box, one by one."""
    return {
        tuple((at + step) % side for at, step, side in zip(box.anchor, steps, grid.shape))
        for steps in product(*map(range, box.extent))
    }


@st.composite
def grids_with_boxes(draw, count=2):
    grid = Grid(draw(st.tuples(*[st.integers(1, 5)] * 3)), draw(st.sampled_from(WRAPS)))
    boxes = []
    for _ in range(count):
        extent = draw(st.tuples(*(st.integers(1, side) for side in grid.shape)))
        anchor = [
            0 if n == side else draw(st.integers(0, side - 1 if ring else side - n))
            for n, side, ring in zip(extent, grid.shape, grid.wrap)
        ]
        boxes.append(Box(*anchor, *extent))
    return grid, boxes


@given(grids_with_boxes())
def test_a_box_is_its_routers(drawn):
    grid, (one, other) = drawn
    assert grid.mistake(one) == ""
    mine, theirs = routers(grid, one), routers(grid, other)
    assert len(mine) == one.volume
    free = np.ones(grid.shape, np.bool_)
    free[grid.routers_of(one)] = False
    assert {tuple(at) for at in np.argwhere(~free).tolist()} == mine
    assert (grid.free_of([one]) == free).all()
    assert set(grid.cells(one).tolist()) == set(np.flatnonzero(~free).tolist())
    assert grid.overlap(one, other) == bool(mine & theirs)
    both = np.array([one, other])
    assert grid.overlapping(both, [other]).tolist() == [bool(mine & theirs), True]
    assert grid.overlapping(both[:1], [other, one]).tolist() == [True]
    assert box_of_text(str(one)) == one


@pytest.mark.parametrize("text", ["", "1x1@0,0,0", "1x1x1", "1x1x1@0,0,-1", "1x1x1@0,0,0 "])
def test_other_texts_are_no_boxes(text):
    assert box_of_text(text) is None


@pytest.mark.parametrize(
    ("box", "mistake"),
    [
        (Box(0, 0, 0, 5, 1, 1), "5 routers along x; expected 1 to 4"),
        (Box(0, 3, 0, 1, 1, 1), "begins at y = 3; expected 0 to 2"),
        (Box(1, 0, 0, 4, 1, 1), "a whole ring from x = 1; expected to begin at 0"),
    ],
)
def test_boxes_off_the_grid_are_told(box, mistake):
    assert Grid((4, 3, 5), (True, True, False)).mistake(box) == mistake


SIDES = [((4, 3, 5), (True, False, True)), ((6, 2, 4), (True, False, True))]
SIDES += [((side, 1, 1), (ring, True, True)) for side in range(1, 10) for ring in (True, False)]


@pytest.mark.parametrize(("shape", "wrap"), SIDES)
def test_a_box_is_admitted_if_and_only_if_all_shortest_paths_stay_inside(shape, wrap):
    """By distances: a router is on a shortest path if its distances to both ends add up to it."""
    grid = Grid(shape, wrap, convex=True)
    every = list(product(*map(range, shape)))

    def hops(one, other):
        return sum(
            min(abs(a - b), side - abs(a - b)) if ring else abs(a - b)
            for a, b, side, ring in zip(one, other, shape, wrap)
        )

    apart = {(one, other): hops(one, other) for one in every for other in every}
    for extent in product(*(range(1, side + 1) for side in shape)):
        inside = routers(grid, Box(0, 0, 0, *extent))
        leaves = any(
            apart[one, at] + apart[at, other] == apart[one, other]
            for at in {*every} - inside
            for one in inside
            for other in inside
        )
        assert grid.admits(extent) == (not leaves), extent
        if shape[1:] == (1, 1):
            assert (extent[0] in grid.sides(0, shape[0])) == (not leaves)


@given(st.tuples(*[st.integers(1, 6)] * 3), st.integers(1, 130), st.booleans())
def test_shapes_are_all_that_hold_a_job_and_no_part_of_which_does(sides, count, convex):
    grid = Grid(sides, (True, True, True), convex)
    every = filter(grid.admits, product(*(range(1, side + 1) for side in sides)))
    holding = {shape for shape in every if np.prod(shape) >= count}
    least = {
        shape
        for shape in holding
        if not any(part != shape and all(p <= s for p, s in zip(part, shape)) for part in holding)
    }
    found = shapes(count, grid)
    assert len(found) == len(set(found))
    assert set(found) == least
    ranks = [(np.prod(shape), sum(shape), -bisection(shape, grid)) for shape in found]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize(
    ("shape", "wrap", "speed"),
    [
        ((2, 2, 2), True, 4.0),  # cut along y, where links are slow
        ((1, 4, 1), False, 1.0),
        ((1, 4, 1), True, 2.0),  # a ring is cut twice
        ((1, 1, 1), True, 0.0),
    ],
)
def test_a_bisection_is_the_slowest_cut(shape, wrap, speed):
    assert bisection(shape, Grid((4, 4, 4), (wrap,) * 3), links=(2, 1, 2)) == speed


def test_links_rank_equal_shapes():
    grid = Grid((8, 8, 8), (True, True, True))
    assert shapes(4, grid, links=(1, 1, 1))[0] == (1, 2, 2)
    assert shapes(4, grid, links=(2, 1, 2))[0] == (2, 1, 2)
