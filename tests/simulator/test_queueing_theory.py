"""Queues whose means theory knows, simulated by the engine.

Arrivals are Poisson. The simulated means are compared with the exact ones inside the 99 %
confidence intervals of batch means; the seeds are fixed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.sparse.linalg import spsolve

from optsched import simulate
from optsched.traces.trace import Trace

BATCHES = 20


def queue(rng, rate, service):
    """Return a trace of one-processor jobs: exponential gaps, these service times."""
    jobs = len(service)
    service = np.maximum(service, 1.0)  # a run time below a second is cleaned away
    ones = np.ones(jobs, dtype=np.int64)
    return Trace(
        job_id=np.arange(1, jobs + 1),
        submit=np.cumsum(rng.exponential(1 / rate, jobs)),
        runtime=service,
        requested_time=service,
        processors=ones,
    )


def interval(values):
    """Return the 99 % confidence interval of a stationary mean; the first tenth is warm-up."""
    steady = values[len(values) // 10 :]
    means = [batch.mean() for batch in np.array_split(steady, BATCHES)]
    half = stats.t.ppf(0.995, BATCHES - 1) * np.std(means, ddof=1) / math.sqrt(BATCHES)
    return np.mean(means) - half, np.mean(means) + half


def hyper_exponential(rng, means, first, jobs):
    return rng.exponential(np.where(rng.random(jobs) < first, *means), jobs)


def erlang_c_wait(servers, rate, mean):
    """Return the mean wait of M/M/k (Erlang's second formula)."""
    offered = rate * mean
    busy = offered**servers / math.factorial(servers) * servers / (servers - offered)
    idle = sum(offered**n / math.factorial(n) for n in range(servers))
    return busy / (idle + busy) * mean / (servers - offered)


def hyper_exponential_wait(servers, rate, means, first, longest=400):
    """Return the mean wait of M/H2/k, from the stationary state of its Markov chain.

    A state is the number of jobs of each kind in service and the length of the queue, cut at
    `longest`; the kind of a job is drawn when it enters service.
    """
    states = {}
    for short, long in itertools.product(range(servers + 1), repeat=2):
        if short + long <= servers:
            for waiting in range(longest + 1 if short + long == servers else 1):
                states[short, long, waiting] = len(states)
    odds = (first, 1 - first)
    rows, columns, rates = [], [], []

    def move(state, other, at):
        rows.extend((states[state], states[state]))
        columns.extend((states[other], states[state]))
        rates.extend((at, -at))

    for short, long, waiting in states:
        state = (short, long, waiting)
        if short + long < servers:
            move(state, (short + 1, long, 0), rate * odds[0])
            move(state, (short, long + 1, 0), rate * odds[1])
        elif waiting < longest:
            move(state, (short, long, waiting + 1), rate)
        for kind, count in enumerate((short, long)):
            if not count:
                continue
            left = (short - (kind == 0), long - (kind == 1))
            at = count / means[kind]
            if waiting:
                move(state, (left[0] + 1, left[1], waiting - 1), at * odds[0])
                move(state, (left[0], left[1] + 1, waiting - 1), at * odds[1])
            else:
                move(state, (*left, 0), at)
    size = len(states)
    balance = sparse.csc_matrix((rates, (columns, rows)), shape=(size, size)).tolil()
    balance[0, :] = 1.0
    right = np.zeros(size)
    right[0] = 1.0
    stationary = spsolve(balance.tocsc(), right)
    length = sum(stationary[at] * waiting for (*_, waiting), at in states.items())
    return length / rate  # Little's law


def test_the_markov_chain_of_equal_kinds_is_that_of_erlang():
    assert hyper_exponential_wait(3, 0.02, (100.0, 100.0), 0.3) == pytest.approx(
        erlang_c_wait(3, 0.02, 100.0), rel=1e-6
    )


def test_m_g_1_waits_as_pollaczek_and_khinchine_say():
    rng = np.random.default_rng(1)
    rate, means, first, jobs = 0.7 / 1000, (500.0, 3000.0), 0.8, 60_000
    service = hyper_exponential(rng, means, first, jobs)
    second = 2 * (first * means[0] ** 2 + (1 - first) * means[1] ** 2)
    expected = rate * second / (2 * (1 - 0.7))
    run = simulate(queue(rng, rate, service), "nodes:1", "fcfs")
    low, high = interval(run.start - run.trace.submit)
    assert low < expected < high


@pytest.mark.parametrize("policy", ["fcfs", "conservative"])
def test_m_m_k_waits_as_erlang_says(policy):
    rng = np.random.default_rng(2)
    servers, mean, jobs = 5, 1000.0, 60_000
    rate = 0.8 * servers / mean
    run = simulate(queue(rng, rate, rng.exponential(mean, jobs)), f"nodes:{servers}", policy)
    low, high = interval(run.start - run.trace.submit)
    assert low < erlang_c_wait(servers, rate, mean) < high


def test_m_g_k_waits_as_its_markov_chain_says():
    rng = np.random.default_rng(3)
    servers, means, first, jobs = 3, (400.0, 4000.0), 0.85, 100_000
    rate = 0.75 * servers / (first * means[0] + (1 - first) * means[1])
    expected = hyper_exponential_wait(servers, rate, means, first)
    assert expected > 1.5 * erlang_c_wait(servers, rate, 940.0)  # far from exponential
    run = simulate(
        queue(rng, rate, hyper_exponential(rng, means, first, jobs)), f"nodes:{servers}", "fcfs"
    )
    low, high = interval(run.start - run.trace.submit)
    assert low < expected < high


SHARED = {"policy": "gang", "settings": {"mpl": 60}}
"""On one column with more rows than there are ever jobs, gang scheduling is processor sharing."""


def test_m_m_1_processor_sharing_responds_as_theory_says():
    rng = np.random.default_rng(4)
    mean, load, jobs = 1000.0, 0.7, 30_000
    run = simulate(queue(rng, load / mean, rng.exponential(mean, jobs)), "matrix:1", **SHARED)
    low, high = interval(run.end - run.trace.submit)
    assert low < mean / (1 - load) < high
    assert run.start.tolist() == run.trace.submit.tolist()


def test_processor_sharing_slows_short_and_long_jobs_alike_whatever_their_distribution():
    """Response over service time is 1 / (1 - load) on average, for jobs of any length."""
    rng = np.random.default_rng(5)
    means, first, load, jobs = (500.0, 3000.0), 0.8, 0.6, 40_000
    service = hyper_exponential(rng, means, first, jobs)
    run = simulate(queue(rng, load / 1000.0, service), "matrix:1", **SHARED)
    response = run.end - run.trace.submit
    low, high = interval(response)
    assert low < 1000.0 / (1 - load) < high
    for shortest, longest in ((100, 300), (1000, 2000), (4000, math.inf)):
        of_length = (run.trace.runtime > shortest) & (run.trace.runtime <= longest)
        low, high = interval((response / run.trace.runtime)[of_length])
        assert low < 1 / (1 - load) < high


@pytest.mark.parametrize("mpl", [1, 2, 4])
def test_how_many_share_does_not_matter_to_the_mean_of_exponential_jobs(mpl):
    """With exponential service times every rule that keeps the processor busy has one mean."""
    rng = np.random.default_rng(6)
    mean, load, jobs = 1000.0, 0.7, 30_000
    trace = queue(rng, load / mean, rng.exponential(mean, jobs))
    run = simulate(trace, "matrix:1", "gang", settings={"mpl": mpl})
    low, high = interval(run.end - run.trace.submit)
    assert low < mean / (1 - load) < high
