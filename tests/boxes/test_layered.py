"""The layered divide and conquer against brute force over the nodes of its tree."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.boxes.box import Box, Grid
from optsched.boxes.free_boxes import largest_free_box
from optsched.boxes.layer_shapes import largest_layered_box, layered_bins, tree


@st.composite
def occupied(draw):
    sides, rings = st.tuples(*[st.integers(1, 5)] * 3), st.tuples(*[st.booleans()] * 3)
    grid = Grid(draw(sides), draw(rings), draw(st.booleans()))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return random.random(grid.shape) < draw(st.sampled_from([0.3, 0.6, 0.9])), grid


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
    before = free.copy()
    left = free.copy()
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


def test_what_wraps_around_is_missed():
    grid = Grid((1, 1, 5), (True, True, True))
    free = grid.free_of([Box(0, 0, 2, 1, 1, 1)])
    assert largest_free_box(free, grid) == Box(0, 0, 3, 1, 1, 4)
    assert largest_layered_box(free, grid) == Box(0, 0, 0, 1, 1, 2)


def test_a_tree_has_a_leaf_for_each_layer():
    for layers in (1, 2, 5, 24):
        nodes = tree(layers)
        assert {(first, first + height) for first, height, _, _ in nodes} == halves(0, layers)
        assert len(nodes) == 2 * layers - 1


def test_an_array_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="expected \\(2, 2, 2\\)"):
        layered_bins(np.ones((2, 2, 3), dtype=bool), Grid((2, 2, 2), (True, True, True)))
