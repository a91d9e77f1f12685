from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.boxes._layer_shapes import find_layer_shape
from optsched.boxes.layer_shapes import layer_shape
from optsched.models.torus_fields import LONGEST_SIDE

SIDE = st.integers(1, 9)


@given(st.integers(1, 200), st.tuples(SIDE, SIDE, SIDE))
def test_whole_layers_or_the_best_rectangle_inside_one(routers, extent):
    width, depth, height = extent
    shape = layer_shape(routers, extent)
    if routers > width * height:
        fitting = [n for n in range(1, depth + 1) if n * width * height >= routers]
        assert shape == ((width, fitting[0], height) if fitting else None)
        return
    rectangles = [
        (wide, high)
        for wide in range(1, width + 1)
        for high in range(1, height + 1)
        if wide * high >= routers
    ]
    wide, high = min(rectangles, key=lambda r: (r[0] * r[1], sum(r), r[1]))
    assert shape == (wide, 1, high)


@given(st.integers(1, 5000), st.tuples(*[st.integers(1, LONGEST_SIDE)] * 3))
def test_the_kernel_finds_the_same_shape(routers, extent):
    found = np.full(3, 7)
    fits = find_layer_shape(routers, *extent, found)
    shape = layer_shape(routers, extent)
    assert (fits, tuple(found.tolist())) == (shape is not None, shape or (0, 0, 0))


def test_bins_of_other_widths_leave_other_routers_idle():
    assert layer_shape(10, (8, 2, 4)) == (5, 1, 2)
    assert layer_shape(10, (3, 2, 4)) == (3, 1, 4)
    assert layer_shape(10, (3, 4, 3)) == (3, 2, 3)
    assert layer_shape(10, (3, 1, 3)) is None
