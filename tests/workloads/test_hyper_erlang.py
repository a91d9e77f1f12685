"""The distribution, the fit of moments, and generated traces within the errors of sampling."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from optsched.errors import InputError
from optsched.traces.facts import facts
from optsched.workloads.hyper_erlang import (
    HIGHEST_ORDER,
    HyperErlang,
    HyperErlangClasses,
    JobClass,
    fit_moments,
    fit_workload,
)
from optsched.workloads.spec_file import read_workload
from optsched.workloads.workload_model import RAISED

FRANKE = read_workload("franke-1999")
BOUNDARIES = [8, 16, 32, 64, 128, 256]
LARGE = 32
"""Jobs of more nodes are large, in the paper."""

SIGNIFICANCE = 1e-3
"""How likely it is that sampling alone breaks a test that looks at a new seed."""


def limit(comparisons):
    """Return how many standard errors the greatest of so many deviations may have."""
    return stats.norm.isf(SIGNIFICANCE / comparisons / 2)


@pytest.mark.parametrize("seed", range(3))
def test_the_moments_of_each_class_are_those_of_the_tables(seed):
    trace = FRANKE.generate(10_000, seed)
    deviations = []
    for one in FRANKE.classes:
        rows = (trace.processors >= one.smallest) & (trace.processors <= one.largest)
        gaps = np.diff(trace.submit[rows], prepend=0)
        for times, seconds in ((one.interarrival, gaps), (one.service, trace.runtime[rows])):
            data = seconds.astype(float)
            for k in (1, 2, 3):
                error = math.sqrt((times.moment(2 * k) - times.moment(k) ** 2) / len(data))
                deviations.append(((data**k).mean() - times.moment(k)) / error)
    assert np.abs(deviations).max() < limit(len(deviations))


def test_ten_thousand_jobs_are_the_baseline_of_the_paper_and_large_ones_do_most_of_the_work():
    rates = np.array([1 / one.interarrival.mean for one in FRANKE.classes])
    work = rates * [one.service.mean * (one.smallest + one.largest) / 2 for one in FRANKE.classes]
    large = np.array([one.smallest > LARGE for one in FRANKE.classes])
    days, load = 10_000 / rates.sum() / 86400, work.sum() / FRANKE.processors
    assert (days, load) == (pytest.approx(61.7, abs=0.05), pytest.approx(0.53, abs=0.005))
    for amount, stated in ((rates, 0.306), (work, 0.830)):
        assert amount[large].sum() / amount.sum() == pytest.approx(stated, abs=0.001)
    trace = FRANKE.generate(10_000, 0)
    assert trace.submit[-1] / 86400 == pytest.approx(days, rel=0.1)
    assert facts(trace)["offered_load"] == pytest.approx(load, rel=0.1)


def test_sizes_are_uniform_within_their_class_or_as_often_as_their_weights_say():
    trace = FRANKE.generate(20_000, 4)
    for one in FRANKE.classes:
        counts = np.bincount(trace.processors, minlength=257)[one.smallest : one.largest + 1]
        assert stats.chisquare(counts).pvalue > SIGNIFICANCE
    hour = HyperErlang.erlang(1, 1 / 3600)
    one = JobClass(1, 100, hour, hour, sizes=(3, 50, 99), weights=(6, 3, 1))
    trace = HyperErlangClasses(100, (one,)).generate(5_000, 2)
    sizes, counts = np.unique(trace.processors, return_counts=True)
    assert sizes.tolist() == [3, 50, 99]
    assert stats.chisquare(counts, [3000, 1500, 500]).pvalue > SIGNIFICANCE


def test_a_fit_of_what_was_generated_is_near():
    trace = FRANKE.generate(100_000, 11)
    fitted = fit_workload(trace, boundaries=BOUNDARIES, sizes="uniform")
    assert fitted.notes == ()
    deviations = []
    for one, again, found in zip(FRANKE.classes, fitted.model.classes, fitted.classes):
        assert (again.smallest, again.largest) == (one.smallest, one.largest)
        assert again.share == pytest.approx(100 * found.jobs / 100_000, abs=0.005)
        for times, refit in ((one.interarrival, again.interarrival), (one.service, again.service)):
            for k in (1, 2, 3):
                error = math.sqrt((times.moment(2 * k) - times.moment(k) ** 2) / found.jobs)
                deviations.append((refit.moment(k) - times.moment(k)) / error)
    assert np.abs(deviations).max() < limit(len(deviations))


def test_run_times_that_round_to_0_are_raised_and_counted():
    minute = HyperErlang.erlang(1, 1 / 60)
    instant = HyperErlangClasses(4, (JobClass(1, 4, minute, HyperErlang.erlang(1, 4.0)),))
    trace = instant.generate(1_000, 3)
    drawn = instant.draw(1_000, 3, 1.0, 1.0).runtime
    assert trace.runtime.min() == 1
    assert trace.oddities == {RAISED: int((drawn < 0.5).sum())}
    assert trace.oddities[RAISED] > 500
    assert f"{trace.oddities[RAISED]} {RAISED}" in " ".join(trace.header.values("Note"))


def test_a_class_that_hardly_ever_comes_does_not_stop_the_others():
    rare = JobClass(9, 16, HyperErlang(1, (1e-40, 1.0), 1e-12), HyperErlang.erlang(1, 1.0))
    often = JobClass(1, 8, HyperErlang.erlang(1, 1.0), HyperErlang.erlang(1, 1.0))
    trace = HyperErlangClasses(16, (often, rare)).generate(2_000, 1)
    # as long as the endless gap is not drawn, both classes arrive once a second
    assert (trace.processors > 8).mean() == pytest.approx(0.5, abs=limit(1) / 2 / math.sqrt(2_000))


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


def test_families_have_their_names():
    parameters = ((3, (0.5, 0.1), 0.0), (1, (0.5, 0.1), 0.5), (2, (0.5, 0.1), 0.5))
    families = [HyperErlang(*each).family for each in parameters]
    assert families == ["Erlang", "hyper-exponential", "hyper-Erlang"]


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


def test_constant_times_become_erlang_and_two_moments_are_matched_where_three_cannot_be():
    fit = fit_moments(60.0, 3600.0, 216000.0)
    assert (fit.distribution.order, fit.distribution.family) == (HIGHEST_ORDER, "Erlang")
    assert fit.matched == 1
    assert fit.distribution.mean == pytest.approx(60, rel=1e-12)
    assert "nearly constant" in fit.note
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


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ((0, (1.0, 1.0), 0.5), "order: 0; expected a whole number from 1"),
        ((True, (1.0, 1.0), 0.5), "order: True; expected a whole number"),
        ((1, (1.0, math.inf), 0.5), "lambda2: inf; expected a rate"),
        ((1, (1.0, 1.0), 1.5), "p1: 1.5; expected a probability"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, words):
    with pytest.raises(InputError, match=words):
        HyperErlang(*parameters)
