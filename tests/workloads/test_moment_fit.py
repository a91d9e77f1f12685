"""The fit: the simplest family that has the moments, and has them to the last digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.workloads.hyper_erlang import HIGHEST_ORDER, HyperErlang, fit_moments
from optsched.workloads.spec_file import read_workload

FRANKE = read_workload("franke-1999")


def moments(times):
    return [times.moment(k) for k in (1, 2, 3)]


def errors(times, expected):
    return [abs(times.moment(k) / mu - 1) for k, mu in enumerate(expected, 1)]


def is_feasible(order, mu1, mu2, mu3):
    """Return whether some Hyper-Erlang distribution of that order has the moments."""
    return mu2 / mu1**2 > (order + 1) / order and mu1 * mu3 / mu2**2 > (order + 2) / (order + 1)


@pytest.mark.parametrize("part", ["interarrival", "service"])
@pytest.mark.parametrize("number", range(6))
def test_the_rows_of_the_paper_come_back_from_their_moments(number, part):
    row = getattr(FRANKE.classes[number], part)
    fit = fit_moments(*moments(row))
    assert (fit.matched, fit.note) == (3, "")
    assert fit.distribution.order == row.order
    assert fit.distribution.rates == pytest.approx(row.rates, rel=1e-9)
    assert fit.distribution.p1 == pytest.approx(row.p1, rel=1e-9)
    simpler = [order for order in range(1, row.order) if is_feasible(order, *moments(row))]
    assert simpler == []


@given(
    st.integers(1, 900),
    st.tuples(*[st.floats(-9, 4)] * 2),
    st.one_of(st.floats(0, 1), st.floats(0, 1e-9), st.floats(1 - 1e-9, 1)),
)
def test_moments_come_back(order, exponents, p1):
    times = HyperErlang(order, (10.0 ** exponents[0], 10.0 ** exponents[1]), p1)
    expected = moments(times)
    fit = fit_moments(*expected)
    assert fit.matched == 3
    assert max(errors(fit.distribution, expected)) <= 1e-9
    # the distribution itself has the moments; only rounding can ask for one order more
    assert fit.distribution.order <= order + 1


@given(st.integers(1, HIGHEST_ORDER), st.floats(1e-9, 1e4))
def test_an_erlang_distribution_is_found_to_be_one(order, rate):
    fit = fit_moments(*moments(HyperErlang.erlang(order, rate)))
    assert fit.distribution.family == ("exponential" if order == 1 else "Erlang")
    assert fit.distribution.order == order
    assert fit.distribution.rates == pytest.approx((rate, rate))


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=40).filter(lambda v: max(v) > 0))
def test_whatever_the_data_it_matches_what_it_claims(values):
    data = np.array(values, dtype=np.float64)
    expected = [float((data**k).mean()) for k in (1, 2, 3)]
    fit = fit_moments(*expected)
    assert fit.matched >= 1
    assert max(errors(fit.distribution, expected)[: fit.matched]) <= 1e-9
    assert bool(fit.note) == (fit.matched < 3)


def test_no_lower_order_would_do():
    rng = np.random.default_rng(3)
    orders = set()
    for spread in rng.uniform(0.05, 2, 300):
        data = rng.lognormal(6, spread, 200)
        expected = [float((data**k).mean()) for k in (1, 2, 3)]
        order = fit_moments(*expected).distribution.order
        orders.add(min(order, 10))
        assert [n for n in range(1, order) if is_feasible(n, *expected)] == []
    assert orders >= {1, 2, 3, 4, 5, 10}


def test_constant_times_become_erlang_of_the_highest_order():
    fit = fit_moments(60.0, 3600.0, 216000.0)
    assert (fit.distribution.order, fit.distribution.family) == (HIGHEST_ORDER, "Erlang")
    assert fit.matched == 1
    assert fit.distribution.mean == pytest.approx(60, rel=1e-12)
    assert "nearly constant" in fit.note


def test_two_moments_are_matched_where_three_cannot_be():
    # half of the times are 0, the others one value: m1 m3 = m2^2
    fit = fit_moments(50.0, 5000.0, 500000.0)
    assert fit.matched == 2
    assert "third moment" in fit.note
    weights = [p / rate for p, rate in zip(fit.distribution.probabilities, fit.distribution.rates)]
    assert weights[0] == pytest.approx(weights[1])


@pytest.mark.parametrize(
    "impossible", [(0.0, 1.0, 1.0), (-1.0, 1.0, 1.0), (np.nan, 1, 1), (2, 3, 9), (1, 2, 3)]
)
def test_moments_of_no_positive_times_are_refused(impossible):
    with pytest.raises(InputError, match="moments"):
        fit_moments(*map(float, impossible))
