"""Shapes in layers, and the layered divide and conquer over the nodes of its tree."""

from __future__ import annotations

from itertools import product

import numpy as np
from boxes.trying_boxes import occupied
from hypothesis import given
from hypothesis import strategies as st

from optsched.boxes.box import Box, Grid
from optsched.boxes.free_boxes import largest_free_box
from optsched.boxes.layer_shapes import (
    find_layer_shape,
    largest_layered_box,
    layer_shape,
    layered_bins,
)
from optsched.models.torus import LONGEST_SIDE


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


def volume(box):
    return 0 if box is None else box.volume


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
    assert volume(box) == largest_over_the_nodes(free, grid)
    assert volume(box) <= volume(largest_free_box(free, grid))
    if box is not None:
        assert not grid.mistake(box)
        assert grid.admits(box.extent)
        assert free[grid.routers_of(box)].all()
        assert (box.y, box.y + box.ny) in halves(0, grid.shape[1])


@given(occupied(), st.integers(1, 6))
def test_bins_are_the_largest_boxes_one_after_the_other(case, at_least):
    free, grid = case
    before, left = free.copy(), free.copy()
    for box in layered_bins(free, grid, at_least):
        assert box == largest_layered_box(left, grid)
        assert box.volume >= at_least
        left[grid.routers_of(box)] = False
    assert largest_over_the_nodes(left, grid) < at_least
    assert (free == before).all()


def test_layers_without_a_node_of_their_own_are_missed():
    grid = Grid((2, 4, 4), (True, True, True))
    free = grid.free_of([Box(0, 0, 0, 2, 1, 4), Box(0, 3, 0, 2, 1, 4)])
    assert largest_free_box(free, grid) == Box(0, 1, 0, 2, 2, 4)
    assert layered_bins(free, grid) == (Box(0, 1, 0, 2, 1, 4), Box(0, 2, 0, 2, 1, 4))
