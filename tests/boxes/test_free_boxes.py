"""Free boxes against brute force on small tori."""

from __future__ import annotations

import numpy as np
import pytest
from boxes.trying_boxes import all_boxes, occupied
from hypothesis import given
from hypothesis import strategies as st

from optsched.boxes.box import Box, Grid, shapes
from optsched.boxes.free_boxes import (
    anchors,
    disjoint_bins,
    first_fit,
    fullest_box,
    holds,
    largest_free_box,
    maximal_free_boxes,
)
from optsched.boxes.layer_shapes import layered_bins


def free_boxes_of(free, grid):
    return [box for box in all_boxes(grid) if free[grid.routers_of(box)].all()]


def largest_of(free, grid):
    """The first of the largest boxes that a job may have."""
    boxes = (box for box in free_boxes_of(free, grid) if grid.admits(box.extent))
    return max(boxes, key=lambda box: box.volume, default=None)


@given(occupied())
def test_maximal_boxes_are_in_no_other(case):
    free, grid = case
    routers = {box: frozenset(grid.cells(box).tolist()) for box in free_boxes_of(free, grid)}
    maximal = [
        box for box, own in routers.items() if not any(own < other for other in routers.values())
    ]
    assert [Box(*row) for row in maximal_free_boxes(free, grid).tolist()] == maximal


@given(occupied())
def test_the_largest_box_is_the_first_of_most_routers_and_holds_what_is_no_larger(case):
    free, grid = case
    largest = largest_of(free, grid)
    assert largest_free_box(free, grid) == largest
    for routers in range(1, grid.routers + 2):
        held = largest is not None and routers <= largest.volume
        assert holds(free, grid, routers) is held
        if routers <= grid.routers:
            assert held == any(len(anchors(free, grid, s)) for s in shapes(routers, grid))


@given(occupied(), st.integers(1, 6))
def test_bins_are_the_largest_boxes_one_after_the_other(case, at_least):
    free, grid = case
    left = free.copy()
    for box in disjoint_bins(free, grid, at_least):
        assert box == largest_of(left, grid)
        assert box.volume >= at_least
        left[grid.routers_of(box)] = False
    rest = largest_of(left, grid)
    assert rest is None or rest.volume < at_least
    if at_least == 1:
        assert not left.any()


@given(occupied(), st.data())
def test_anchors_are_where_a_shape_is_free(case, data):
    free, grid = case
    shape = data.draw(st.tuples(*(st.integers(1, side + 1) for side in grid.shape)))
    found = anchors(free, grid, shape)
    assert found.shape == (len(found), 3)
    expected = [box.anchor for box in free_boxes_of(free, grid) if box.extent == shape]
    assert [tuple(row) for row in found.tolist()] == sorted(expected)


@given(occupied(), st.data())
def test_the_first_shape_that_is_free_is_taken_at_its_first_anchor(case, data):
    free, grid = case
    shape = st.tuples(*(st.integers(1, side + 1) for side in grid.shape))
    ranked = data.draw(st.lists(shape, max_size=4))
    boxes = (Box(*at, *s) for s in ranked for at in anchors(free, grid, s).tolist())
    assert first_fit(free, grid, ranked) == next(boxes, None)


@pytest.mark.parametrize("wrap", [True, False])
def test_rows_of_64_routers_fill_a_word(wrap):
    grid = Grid((2, 1, 64), (True, True, wrap))
    free = np.ones(grid.shape, dtype=bool)
    assert maximal_free_boxes(free, grid).tolist() == [[0, 0, 0, 2, 1, 64]]
    assert largest_free_box(free, grid) == Box(0, 0, 0, 2, 1, 64)
    free[:, :, 20] = False
    longest = Box(0, 0, 21, 2, 1, 63) if wrap else Box(0, 0, 21, 2, 1, 43)
    assert largest_free_box(free, grid) == longest
    assert len(anchors(free, grid, (2, 1, 40))) == (24 if wrap else 4)
    assert sum(box.volume for box in disjoint_bins(free, grid)) == 126


def test_wrong_arrays_are_refused():
    grid = Grid((2, 2, 2), (True, True, True))
    for use in (lambda free: holds(free, grid, 1), lambda free: layered_bins(free, grid)):
        with pytest.raises(ValueError, match="expected \\(2, 2, 2\\)"):
            use(np.ones((2, 2, 3), dtype=bool))
    with pytest.raises(ValueError, match="65 routers along Z"):
        maximal_free_boxes(np.ones((1, 1, 65), dtype=bool), Grid((1, 1, 65), (True,) * 3))


@given(occupied(), st.data())
def test_the_fullest_box_has_the_fewest_free_routers(made, data):
    free, grid = made
    shape = data.draw(st.sampled_from(all_boxes(grid))).extent
    boxes = [Box(*at, *shape) for at in anchors(np.ones_like(free), grid, shape).tolist()]
    fewest = min(boxes, key=lambda box: np.count_nonzero(free[grid.routers_of(box)]))
    assert fullest_box(free, grid, shape, np.ones_like(free)) == fewest
