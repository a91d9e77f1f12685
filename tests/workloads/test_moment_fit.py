"""The distribution, a mixture of gamma distributions, and the simplest one that has moments."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from optsched.errors import InputError
from optsched.workloads.hyper_erlang import HIGHEST_ORDER, HyperErlang, fit_moments
from optsched.workloads.spec_file import read_workload

FRANKE = read_workload("franke-1999")
EXAMPLES = [
    HyperErlang(1, (0.002, 0.002)),
    HyperErlang(1, (1.02e-4, 2.06e-3), 0.107),
    HyperErlang(4, (0.5, 0.01), 0.25),
    HyperErlang.erlang(300, 2.0),
]

distributions = st.builds(
    HyperErlang, st.integers(1, 500), st.tuples(*[st.floats(1e-7, 1e3)] * 2), st.floats(0, 1)
)


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


@given(distributions, st.integers(1, 4))
def test_moments_are_those_of_gamma_distributions(times, k):
    phases = [stats.gamma.moment(k, times.order, scale=1 / rate) for rate in times.rates]
    expected = times.p1 * phases[0] + (1 - times.p1) * phases[1]
    assert times.moment(k) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("times", EXAMPLES)
def test_samples_follow_the_distribution(times):
    def distribution(t):
        phases = [stats.gamma.cdf(t, times.order, scale=1 / rate) for rate in times.rates]
        return times.p1 * phases[0] + (1 - times.p1) * phases[1]

    sample = times.sample(np.random.default_rng(20), 20_000)
    assert stats.kstest(sample, distribution).pvalue > 0.01


def test_families():
    named = {
        "exponential": HyperErlang.erlang(1, 0.5),
        "Erlang": HyperErlang(3, (0.5, 0.1), 0.0),
        "hyper-exponential": HyperErlang(1, (0.5, 0.1), 0.5),
        "hyper-Erlang": HyperErlang(2, (0.5, 0.1), 0.5),
    }
    assert [times.family for times in named.values()] == list(named)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ((0, (1.0, 1.0), 0.5), "order: 0; expected a whole number from 1"),
        ((True, (1.0, 1.0), 0.5), "order: True; expected a whole number"),
        ((1, (0, 1.0), 0.5), "lambda1: 0; expected a rate"),
        ((1, (1.0, math.inf), 0.5), "lambda2: inf; expected a rate"),
        ((1, (1.0, "a"), 0.5), "lambda2: 'a'; expected a rate"),
        ((1, (1.0, 1.0), 1.5), "p1: 1.5; expected a probability"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, words):
    with pytest.raises(InputError, match=words):
        HyperErlang(*parameters)
