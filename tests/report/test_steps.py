from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.report.load import Steps, thinned

changes = st.lists(st.tuples(st.integers(0, 5000), st.integers(-20, 20)), min_size=1, max_size=200)


def made(pairs, end=5001.0):
    times, amounts = zip(*pairs)
    return Steps.from_changes(times, amounts, 0.0, end)


def test_changes_of_one_instant_are_one_step():
    steps = Steps.from_changes([5, 2, 5, 9], [3, 4, -1, -6], 0.0, 10.0)
    assert steps.times.tolist() == [0, 2, 5, 9]
    assert steps.values.tolist() == [0, 4, 6, 0]


def test_changes_at_the_end_do_not_count():
    steps = Steps.from_changes([0, 10], [2, 7], 0.0, 10.0)
    assert steps.values.tolist() == [2]
    assert steps.integral(10.0) == 20


@given(changes)
def test_the_integral_is_that_of_every_change_alone(pairs):
    whole = sum(amount * (5001 - time) for time, amount in pairs)
    assert made(pairs).integral(5001.0) == pytest.approx(whole)


@given(changes)
def test_bins_keep_the_integral(pairs):
    steps = made(pairs)
    bins = steps.binned(20)
    assert len(bins.mean) <= 20
    assert (bins.mean * np.diff(bins.edges)).sum() == pytest.approx(float(steps.integral(5001.0)))
    assert (bins.low <= bins.high).all()


@given(changes, st.integers(0, 18))
def test_each_bin_has_the_quantiles_of_its_own_seconds(pairs, number):
    steps = made(pairs)
    bins = steps.binned(20)
    number = min(number, len(bins.mean) - 1)
    seconds = np.arange(bins.edges[number], bins.edges[number + 1])
    values = steps.values[np.searchsorted(steps.times, seconds, side="right") - 1]
    for found, share in ((bins.low[number], 0.1), (bins.high[number], 0.9)):
        assert found in values
        assert np.mean(values < found) <= share + 1e-9
        assert np.mean(values <= found) >= share - 1e-9


def test_a_peak_of_a_twentieth_of_the_time_is_not_in_the_band():
    up = np.arange(20, 3600, 100)
    changes = np.concatenate((np.full(36, 100), np.full(36, -100)))
    bins = Steps.from_changes(np.concatenate((up, up + 5)), changes, 0.0, 3600.0).binned(2)
    assert bins.width == 1800
    assert bins.high.tolist() == [0, 0]
    assert bins.mean.tolist() == [5, 5]


def test_short_functions_are_not_averaged():
    bins = Steps.from_changes([0, 3], [1, 1], 0.0, 10.0).binned(5)
    assert bins.width == 0
    assert bins.edges.tolist() == [0, 3, 10]
    assert bins.mean.tolist() == [1, 2]


def test_thinning_keeps_the_ends_and_the_last_point_of_each_cell():
    x = np.array([1.0, 1.1, 1.2, 9.0, 50.0, 99.0, 100.0])
    kept = thinned(x, 4)
    assert x[kept].tolist() == [1.0, 1.2, 9.0, 100.0]
    assert thinned(x, 7).tolist() == list(range(7))
    assert thinned(x[:0], 7).tolist() == []


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=500, unique=True))
def test_thinning_never_exceeds_its_limit(places):
    x = np.sort(np.array(places))
    kept = thinned(x, 50)
    assert len(kept) <= 50
    assert (kept[0], kept[-1]) == (0, len(x) - 1)
    assert (np.diff(kept) > 0).all()
