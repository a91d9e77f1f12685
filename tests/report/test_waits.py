from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.report.pictures.load_and_waits import Waits, ecdf, size_classes


def test_the_distribution_by_hand():
    values, shares = ecdf(np.array([0.0, 5.0, 0.0, np.inf, 5.0]))
    assert values.tolist() == [0, 5]
    assert shares.tolist() == [0.4, 0.8]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=100), st.integers(0, 10**6))
def test_shares_are_those_of_the_jobs_that_waited_no_longer(times, at):
    values, shares = ecdf(np.array(times, dtype=float))
    upto = np.searchsorted(values, at, side="right")
    share = shares[upto - 1] if upto else 0.0
    assert share == np.mean(np.array(times) <= at)
    assert shares[-1] == 1


def test_size_classes_cover_the_machine_without_overlap():
    sizes = np.arange(1, 129)
    classes = size_classes(sizes, 128)
    assert [(found.low, found.high) for found in classes] == [(1, 1), (2, 2), (3, 16), (17, 128)]
    assert np.sum([found.jobs for found in classes], axis=0).tolist() == [1] * 128
    assert size_classes(np.array([100]), 128)[0].low == 17
    assert [c.high for c in size_classes(np.array([1, 2]), 2)] == [1, 2]


def test_waits_of_zero_are_on_the_axis_and_said(small_run):
    axes = Waits().figure(small_run).axes[0]
    assert axes.get_xlim()[0] == 0
    assert axes.get_xticklabels()[0].get_text() == "0"
    assert axes.get_title(loc="left").startswith("66.7% of the jobs started at once")
    x, y = axes.lines[0].get_data()
    assert (x[:2].tolist(), y[1]) == ([0, 0], 2 / 3)


def test_the_longest_wait_is_written(small_run):
    assert Waits().figure(small_run).axes[0].get_title(loc="left").endswith("all within 55 seconds")


def test_jobs_that_never_start_keep_the_curve_below_one(interrupted_run):
    axes = Waits().figure(interrupted_run).axes[0]
    assert max(axes.lines[0].get_ydata()) == 2 / 3
    assert axes.get_title(loc="left").endswith("1 never")
