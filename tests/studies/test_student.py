from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from optsched.studies.student import mean_of


def test_the_interval_is_that_of_student():
    values = np.random.default_rng(1).normal(5, 2, 6)
    low, high = stats.t.interval(0.95, 5, values.mean(), stats.sem(values))
    assert mean_of(values) == pytest.approx((values.mean(), low, high))


def test_numbers_that_are_none_are_left_out_and_few_have_no_interval():
    nan = float("nan")
    assert mean_of([1.0, nan, 3.0]) == pytest.approx((2.0, nan, nan), nan_ok=True)
    assert mean_of([1.0, nan, 3.0, 5.0])[0] == 3.0
    assert mean_of([]) == pytest.approx((nan, nan, nan), nan_ok=True)
    assert mean_of([2.0, 2.0, 2.0]) == (2.0, 2.0, 2.0)
