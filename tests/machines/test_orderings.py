import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.machines.orderings import ORDERINGS, hilbert_numbers, ordering

shapes = st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple)


def steps(name, shape):
    """Return the hops of each step on the grid, without its wrap-around links."""
    return np.abs(np.diff(ordering(name, shape), axis=0)).sum(axis=1)


@pytest.mark.parametrize("name", ORDERINGS)
@given(shape=shapes)
def test_every_router_has_one_position(name, shape):
    coordinates = ordering(name, shape)
    assert coordinates.shape == (np.prod(shape), len(shape))
    assert {tuple(router) for router in coordinates.tolist()} == set(np.ndindex(shape))


@given(shape=shapes)
def test_row_major_is_the_order_of_nested_loops(shape):
    assert [tuple(router) for router in ordering("row-major", shape)] == list(np.ndindex(shape))


@given(shape=shapes)
def test_a_snake_goes_from_neighbour_to_neighbour(shape):
    assert (steps("snake", shape) == 1).all()
    assert ordering("snake", shape)[0].tolist() == [0] * len(shape)


def test_a_snake_turns_round_at_the_end_of_a_row():
    assert ordering("snake", (2, 2, 2)).tolist() == [
        *([0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 0]),
        *([1, 1, 0], [1, 1, 1], [1, 0, 1], [1, 0, 0]),
    ]


def test_the_hilbert_curve_of_the_plane_is_the_known_one():
    x, y = ordering("hilbert", (4, 4)).T
    place = np.empty((4, 4), dtype=int)
    place[x, y] = np.arange(16)
    assert place.tolist() == [[0, 3, 4, 5], [1, 2, 7, 6], [14, 13, 8, 9], [15, 12, 11, 10]]
    last = np.array([[2**20 - 1, 0, 0], [0, 0, 0]])  # as far as the largest machine needs
    assert hilbert_numbers(last, 20).tolist() == [2**60 - 1, 0]


@pytest.mark.parametrize("dimensions", [2, 3, 4])
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_the_hilbert_curve_fills_cube_after_cube_from_neighbour_to_neighbour(dimensions, bits):
    """At every scale: this, with the two ends of the curve on one edge, is what defines it."""
    curve = ordering("hilbert", (2**bits,) * dimensions)
    assert (steps("hilbert", (2**bits,) * dimensions) == 1).all()
    assert curve[0].tolist() == [0] * dimensions
    assert sorted(curve[-1]) == [0] * (dimensions - 1) + [2**bits - 1]
    for level in range(1, bits):
        for cube in np.split(curve >> level, 2 ** (dimensions * (bits - level))):
            assert (cube == cube[0]).all()


@given(shape=shapes)
def test_on_other_grids_the_hilbert_curve_of_the_cube_around_is_followed(shape):
    side = 1 << (max(shape) - 1).bit_length()
    around = ordering("hilbert", (side,) * len(shape))
    inside = around[(around < np.array(shape)).all(axis=1)]
    assert ordering("hilbert", shape).tolist() == inside.tolist()


def test_an_ordering_is_computed_once_and_cannot_be_written():
    coordinates = ordering("hilbert", (4, 4, 4))
    assert ordering("hilbert", (4, 4, 4)) is coordinates
    with pytest.raises(ValueError, match="read-only"):
        coordinates[0] = 1
