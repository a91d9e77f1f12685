"""Boxes on a torus, and those that are free, against plain sets of routers."""

from itertools import product

import numpy as np
import pytest
from boxes.trying_boxes import all_boxes, occupied
from hypothesis import given
from hypothesis import strategies as st

from optsched.boxes.box import Box, Grid, bisection, box_of_text, shapes
from optsched.boxes.free_boxes import (
    anchors,
    disjoint_bins,
    first_fit,
    fullest_box,
    holds,
    largest_free_box,
    maximal_free_boxes,
)
from optsched.boxes.layer_shapes import (
    find_layer_shape,
    largest_layered_box,
    layer_shape,
    layered_bins,
)
from optsched.models.torus import LONGEST_SIDE

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


@pytest.mark.parametrize(
    ("bins", "largest"), [(disjoint_bins, largest_free_box), (layered_bins, largest_layered_box)]
)
@given(occupied(), st.integers(1, 6))
def test_bins_are_the_largest_boxes_one_after_the_other(bins, largest, case, at_least):
    free, grid = case
    before, left = free.copy(), free.copy()
    for box in bins(free, grid, at_least):
        assert box == largest(left, grid)
        assert box.volume >= at_least
        left[grid.routers_of(box)] = False
    rest = largest(left, grid)
    assert rest is None or rest.volume < at_least
    assert (free == before).all()


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


@st.composite
def boxes(draw, most):
    """The extent of a box, and its grid of any or of convex boxes."""
    extent = draw(st.tuples(*[st.integers(1, most)] * 3))
    sides = tuple(min(most, n + draw(st.sampled_from([0, 1, n]))) for n in extent)
    return extent, Grid(sides, draw(st.tuples(*[st.booleans()] * 3)), draw(st.booleans()))


@given(st.integers(1, 200), boxes(9))
def test_whole_layers_or_the_best_rectangle_inside_one(routers, box):
    extent, grid = box
    width, depth, height = extent
    shape = layer_shape(routers, extent, grid)
    if not grid.convex:
        assert shape == layer_shape(routers, extent)
    if routers > width * height:
        fitting = [
            n
            for n in range(1, depth + 1)
            if n * width * height >= routers and grid.admits((width, n, height))
        ]
        assert shape == ((width, fitting[0], height) if fitting else None)
        return
    rectangles = [
        (wide, high)
        for wide in range(1, width + 1)
        for high in range(1, height + 1)
        if wide * high >= routers and grid.admits((wide, 1, high))
    ]
    best = min(rectangles, key=lambda r: (r[0] * r[1], sum(r), r[1]), default=None)
    assert shape == (None if best is None else (best[0], 1, best[1]))


@given(st.integers(1, 5000), boxes(LONGEST_SIDE))
def test_the_kernel_finds_the_same_shape(routers, box):
    extent, grid = box
    found = np.full(3, 7)
    fits = find_layer_shape(routers, np.array(extent), grid.shape, grid.longest, found)
    shape = layer_shape(routers, extent, grid)
    assert (fits, tuple(found.tolist())) == (shape is not None, shape or (0, 0, 0))


def halves(first, end):
    """The layers of all nodes of a tree."""
    middle = (first + end) // 2
    below = halves(first, middle) | halves(middle, end) if end - first > 1 else set()
    return {(first, end)} | below


def largest_over_the_nodes(free, grid):
    def slices(side):
        return [slice(a, b) for a in range(side) for b in range(a + 1, side + 1)]

    layers = [slice(*node) for node in halves(0, free.shape[1])]
    parts = (free[part] for part in product(slices(free.shape[0]), layers, slices(free.shape[2])))
    return max((p.size for p in parts if p.all() and grid.admits(p.shape)), default=0)


@given(occupied())
def test_the_best_over_all_nodes_is_found(case):
    free, grid = case
    box = largest_layered_box(free, grid)
    assert (0 if box is None else box.volume) == largest_over_the_nodes(free, grid)
    if box is not None:
        assert not grid.mistake(box)
        assert grid.admits(box.extent)
        assert free[grid.routers_of(box)].all()
        assert (box.y, box.y + box.ny) in halves(0, grid.shape[1])


def test_layers_without_a_node_of_their_own_are_missed():
    grid = Grid((2, 4, 4), (True, True, True))
    free = grid.free_of([Box(0, 0, 0, 2, 1, 4), Box(0, 3, 0, 2, 1, 4)])
    assert largest_free_box(free, grid) == Box(0, 1, 0, 2, 2, 4)
    assert layered_bins(free, grid) == (Box(0, 1, 0, 2, 1, 4), Box(0, 2, 0, 2, 1, 4))
