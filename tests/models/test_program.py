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
