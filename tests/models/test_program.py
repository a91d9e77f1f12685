from __future__ import annotations

import numpy as np
import pytest

from optsched.models.program import UNBOUNDED, Program


@pytest.fixture
def program():
    """Two variables and the rows 2 x0 - x1 <= 3 and 1 <= x1."""
    ints = np.int64
    return Program(
        sense="min",
        objective=np.array([5, -2], dtype=ints),
        lower=np.array([0, 0], dtype=ints),
        upper=np.array([1, 9], dtype=ints),
        row_start=np.array([0, 2, 3], dtype=ints),
        columns=np.array([0, 1, 1], dtype=ints),
        values=np.array([2, -1, 1], dtype=ints),
        row_lower=np.array([-UNBOUNDED, 1], dtype=ints),
        row_upper=np.array([3, UNBOUNDED], dtype=ints),
        offset=10,
    )


def test_sizes_value_and_names(program):
    assert (program.num_variables, program.num_rows) == (2, 2)
    assert program.value(np.array([1, 4])) == 10 + 5 - 8
    assert isinstance(program.value(np.array([1, 4])), int)
    assert (program.variable_name(1), program.row_name(0)) == ("x1", "r0")


def test_no_bound_has_a_negative_and_is_beyond_every_number():
    assert np.int64(-UNBOUNDED) == -np.int64(UNBOUNDED)
    assert UNBOUNDED > 10**18


def test_a_vector_is_admitted_if_it_keeps_all_bounds(program):
    assert program.admits(np.array([1, 1]))
    for x in ([2, 1], [1, 0], [1, 10], [-1, 1]):
        assert not program.admits(np.array(x))


def test_common_divisors_are_taken_out_and_rows_rounded_inwards():
    ints = np.int64
    program = Program(
        sense="max",
        objective=np.array([30, -45], dtype=ints),
        lower=np.array([0, -3], dtype=ints),
        upper=np.array([1, 2], dtype=ints),
        row_start=np.array([0, 2, 2, 3], dtype=ints),
        columns=np.array([0, 1, 1], dtype=ints),
        values=np.array([2048, -1024, -7], dtype=ints),
        row_lower=np.array([-5000, -1, -UNBOUNDED], dtype=ints),
        row_upper=np.array([3000, 1, 20], dtype=ints),
        offset=10**12,
    )
    divided, divisor = program.divided(offset=False)
    assert (divisor, divided.offset) == (15, 0)
    assert divided.objective.tolist() == [2, -3]
    assert divided.values.tolist() == [2, -1, -1]
    assert divided.row_lower.tolist() == [-4, -1, -UNBOUNDED]
    assert divided.row_upper.tolist() == [2, 1, 2]
    assert divided.terms.tolist() == [2, 3 * 3, 0]
    kept, divisor = program.divided(offset=True)
    assert (divisor, kept.terms.tolist()) == (5, [6, 27, 2 * 10**11])
