from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.boxes.box import Grid
from optsched.boxes.layer_shapes import find_layer_shape, layer_shape
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


@given(st.integers(1, 200), boxes(9))
def test_a_convex_box_holds_every_job_of_its_size(routers, box):
    extent, grid = box
    if grid.admits(extent):
        held = routers <= extent[0] * extent[1] * extent[2]
        assert (layer_shape(routers, extent, grid) is not None) == held


def test_bins_of_other_widths_leave_other_routers_idle():
    assert layer_shape(10, (8, 2, 4)) == (5, 1, 2)
    assert layer_shape(10, (3, 2, 4)) == (3, 1, 4)
    assert layer_shape(10, (3, 4, 3)) == (3, 2, 3)
    assert layer_shape(10, (3, 1, 3)) is None
