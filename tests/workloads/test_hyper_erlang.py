"""The distribution: its moments and samples are those of a mixture of gamma distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from optsched.errors import InputError
from optsched.workloads.hyper_erlang import HyperErlang

EXAMPLES = [
    HyperErlang(1, (0.002, 0.002)),
    HyperErlang(1, (1.02e-4, 2.06e-3), 0.107),
    HyperErlang(4, (0.5, 0.01), 0.25),
    HyperErlang.erlang(300, 2.0),
]

distributions = st.builds(
    HyperErlang, st.integers(1, 500), st.tuples(*[st.floats(1e-7, 1e3)] * 2), st.floats(0, 1)
)


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
        ((1.0, (1.0, 1.0), 0.5), "order: 1.0; expected a whole number"),
        ((True, (1.0, 1.0), 0.5), "order: True; expected a whole number"),
        ((1, (0, 1.0), 0.5), "lambda1: 0; expected a rate"),
        ((1, (1.0, math.inf), 0.5), "lambda2: inf; expected a rate"),
        ((1, (1.0, "a"), 0.5), "lambda2: 'a'; expected a rate"),
        ((1, (1.0, 1.0), 1.5), "p1: 1.5; expected a probability"),
        ((1, (1.0, 1.0), math.nan), "p1: nan; expected a probability"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, words):
    with pytest.raises(InputError, match=words):
        HyperErlang(*parameters)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(InputError) as caught:
        HyperErlang(0, (-1.0, -1.0), 2.0)
    assert len(caught.value.mistakes) == 4
