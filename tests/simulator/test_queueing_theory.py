"""Queues whose means theory knows, simulated by the engine.

Arrivals are Poisson. The simulated means are compared with the exact ones inside the 99 %
confidence intervals of batch means; the seeds are fixed.
"""

import math

import numpy as np
import pytest
from scipy import stats

from optsched import simulate
from optsched.traces.trace import Trace

BATCHES = 20


def queue(rng, rate, service):
    """Return a trace of one-processor jobs: exponential gaps, these service times."""
    jobs, service = np.arange(len(service)), np.maximum(service, 1.0)  # shorter ones are dropped
    submit = np.cumsum(rng.exponential(1 / rate, len(jobs)))
    return Trace(jobs, submit, service, service, np.ones_like(jobs))


def is_mean(expected, values):
    """Return whether a mean is in the 99 % confidence interval; the first tenth is warm-up."""
    steady = values[len(values) // 10 :]
    means = [batch.mean() for batch in np.array_split(steady, BATCHES)]
    half = stats.t.ppf(0.995, BATCHES - 1) * np.std(means, ddof=1) / math.sqrt(BATCHES)
    return abs(np.mean(means) - expected) < half


def erlang_c_wait(servers, rate, mean):
    """Return the mean wait of M/M/k (Erlang's second formula)."""
    offered = rate * mean
    busy = offered**servers / math.factorial(servers) * servers / (servers - offered)
    idle = sum(offered**n / math.factorial(n) for n in range(servers))
    return busy / (idle + busy) * mean / (servers - offered)


def test_m_g_1_waits_as_pollaczek_and_khinchine_say():
    rng = np.random.default_rng(1)
    rate, means, first, jobs = 0.7 / 1000, (500.0, 3000.0), 0.8, 60_000
    service = rng.exponential(np.where(rng.random(jobs) < first, *means), jobs)
    second = 2 * (first * means[0] ** 2 + (1 - first) * means[1] ** 2)
    expected = rate * second / (2 * (1 - 0.7))
    run = simulate(queue(rng, rate, service), "nodes:1", "fcfs")
    assert is_mean(expected, run.start - run.trace.submit)


@pytest.mark.parametrize("policy", ["fcfs", "conservative"])
def test_m_m_k_waits_as_erlang_says(policy):
    rng = np.random.default_rng(2)
    servers, mean, jobs = 5, 1000.0, 60_000
    rate = 0.8 * servers / mean
    run = simulate(queue(rng, rate, rng.exponential(mean, jobs)), f"nodes:{servers}", policy)
    assert is_mean(erlang_c_wait(servers, rate, mean), run.start - run.trace.submit)


@pytest.mark.parametrize("mpl", [1, 60])
def test_m_m_1_responds_as_theory_says_in_order_and_by_processor_sharing(mpl):
    """On one column with more rows than there are ever jobs, gang scheduling shares equally."""
    rng = np.random.default_rng(4)
    mean, load, jobs = 1000.0, 0.7, 30_000
    trace = queue(rng, load / mean, rng.exponential(mean, jobs))
    run = simulate(trace, "matrix:1", "gang", settings={"mpl": mpl})
    assert is_mean(mean / (1 - load), run.end - run.trace.submit)
    assert (run.start == run.trace.submit).all() == (mpl == 60)
