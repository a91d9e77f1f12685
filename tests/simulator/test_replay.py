"""The compiled replay against the engine."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import registry, simulate
from optsched.content import bundled
from optsched.policies.easy import Easy
from optsched.policies.parts import _priority_queue
from optsched.policies.priority import FixedOrder
from optsched.simulator import _replay
from optsched.simulator._replay import new_state
from optsched.simulator.simulate import run_scenario
from optsched.traces.cleaning import clean
from optsched.traces.reading import read_trace
from optsched.traces.trace import Trace

PRIORITIES = ["sjf", "saf", "wfp3", "unicef", "f1", "f2", "f3", "f4"]
REPLAYED = [name for name in registry.policies if registry.policies[name].replay]
REPLAYED += [f"{name}, easy" for name in PRIORITIES]
ORDERS = ["batched", "one-by-one"]

ONE_OF_EACH = {"fcfs", "easy", "easy-sjbf", "conservative", "sjf", "wfp3"}
ONE_OF_EACH |= {"sjf, easy", "wfp3, easy", "f1, easy"}
"""Policies that are replayed in their own way; the others differ in their scores alone."""

RANDOMLY = [
    pytest.param(policy, marks=() if policy in ONE_OF_EACH else pytest.mark.long)
    for policy in REPLAYED
]

crowds = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 30), st.integers(0, 30), st.integers(1, 8)),
    min_size=10,
    max_size=60,
)
jobs = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 12), st.integers(0, 8), st.integers(1, 9)),
    min_size=1,
    max_size=40,
)


def assert_same(trace, machine, policy, order):
    name, _, backfill = policy.partition(", ")
    given = {"settings": {"backfill": backfill} if backfill else None, "event_order": order}
    fast = simulate(trace, machine, name, **given, compiled_from=0)
    slow = simulate(trace, machine, name, **given, compiled_from=len(trace) + 1)
    assert np.array_equal(fast.start, slow.start, equal_nan=True)
    assert np.array_equal(fast.end, slow.end, equal_nan=True)
    assert fast.state.tolist() == slow.state.tolist()
    assert fast.resources == slow.resources
    assert fast.summary == slow.summary
    return fast


def assert_same_on_any(workloads, policy, order):
    @given(workloads)
    @settings(max_examples=80, deadline=None)
    def compare(workload):
        gaps, runtime, slack, processors = (np.array(column) for column in zip(*workload))
        trace = clean(
            Trace(
                job_id=np.arange(len(gaps)),
                submit=np.cumsum(gaps),
                runtime=runtime,
                requested_time=runtime + slack,
                processors=processors,
            )
        )
        assert_same(trace, "nodes:8", policy, order)

    compare()


@pytest.mark.parametrize("policy", RANDOMLY)
@pytest.mark.parametrize("order", ORDERS)
def test_a_replay_is_what_the_engine_does(policy, order):
    assert_same_on_any(jobs, policy, order)


@pytest.mark.parametrize(
    ("policy", "many"),
    [
        *(("easy", 0), ("easy", 4), ("easy-sjbf", 4), ("sjf", 4), ("f1, easy", 0)),
        pytest.param("easy-sjbf", 0, marks=pytest.mark.long),
        pytest.param("sjf", 0, marks=pytest.mark.long),
        pytest.param("sjf, easy", 0, marks=pytest.mark.long),
        pytest.param("sjf, easy", 4, marks=pytest.mark.long),
        pytest.param("f1, easy", 4, marks=pytest.mark.long),
    ],
)
def test_a_replay_by_tournaments_is_what_the_engine_does(policy, many, monkeypatch):
    """From four kinds on these come and go; from none on they stay."""
    monkeypatch.setattr(_priority_queue, "MANY", many)
    assert_same_on_any(crowds, policy, "batched")


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "sjf", "f4, easy"])
def test_a_replay_of_a_queue_of_many_kinds_is_what_the_engine_does(policy):
    random = np.random.default_rng(1)
    requested = random.integers(10, 5000, size=1500)
    trace = clean(
        Trace(
            job_id=np.arange(1500),
            submit=np.sort(random.integers(0, 20_000, size=1500)),
            runtime=np.maximum(1, requested * random.random(1500)).astype(np.int64),
            requested_time=requested,
            processors=random.integers(1, 40, size=1500),
        )
    )
    assert_same(trace, "nodes:64", policy, "batched")
    waiting = (trace.submit <= 20_000) & (simulate(trace, "nodes:64", "easy").start > 20_000)
    assert waiting.sum() > 2 * _priority_queue.MANY


@pytest.mark.parametrize("policy", REPLAYED)
@pytest.mark.parametrize("order", ORDERS)
def test_a_replay_of_the_sample_is_what_the_engine_does(policy, order):
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf")
    assert_same(trace, "nodes:200", policy, order)


@pytest.mark.parametrize(
    ("log", "policy"),
    [
        ("SDSC-BLUE-2000-4.2-cln", "easy"),
        ("ANL-Intrepid-2009-1200", "easy"),
        ("RICC-2010-2", "conservative"),
        ("RICC-2010-2", "wfp3, easy"),
    ],
)
def test_a_replay_of_a_real_log_is_what_the_engine_does(log, policy, shared):
    trace = read_trace(shared(f"traces/{log}.swf.gz"))
    assert_same(trace.jobs(1, min(len(trace), 20_000)), None, policy, "batched")


@pytest.mark.parametrize("policy", RANDOMLY)
@pytest.mark.parametrize("order", ORDERS)
def test_jobs_beyond_their_limit_are_killed_alike(policy, order):
    @given(jobs)
    @settings(max_examples=40, deadline=None)
    def compare(workload):
        gaps, runtime, requested, processors = (np.array(column) for column in zip(*workload))
        requested += 1
        trace = clean(
            Trace(
                job_id=np.arange(len(gaps)),
                submit=np.cumsum(gaps),
                runtime=runtime,
                requested_time=requested,
                processors=processors,
                limits_hold=True,
            )
        )
        run = assert_same(trace, "nodes:8", policy, order)
        beyond = (runtime > requested) & (processors <= 8)
        assert run.summary["killed"] == beyond.sum()
        assert np.array_equal((run.end - run.start)[beyond], requested[beyond])

    compare()


def test_every_policy_that_only_counts_processors_is_replayed():
    expected = ["conservative", "easy", "easy-sjbf", "fcfs", *PRIORITIES]
    assert sorted(name for name in REPLAYED if "," not in name) == sorted(expected)


def test_scores_without_order_within_a_kind_are_not_replayed():
    """The later of two like jobs goes first: the queue of a kind is no queue."""

    class LastFirst(FixedOrder):
        def scores(self, jobs):
            return -jobs.submit

    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 500)
    with_kernels = simulate(trace, "nodes:128", LastFirst(), compiled_from=0)
    engine = simulate(trace, "nodes:128", LastFirst(), compiled_from=1000)
    assert with_kernels.start.tolist() == engine.start.tolist()


def test_fixed_scores_of_a_subclass_are_replayed(monkeypatch):
    class Widest(FixedOrder):
        def scores(self, jobs):
            return -jobs.processors

    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 500)
    engine = simulate(trace, "nodes:128", Widest(), compiled_from=1000)
    monkeypatch.setattr(Widest, "decide", None)  # the engine would call it
    assert simulate(trace, "nodes:128", Widest(), compiled_from=0).start.tolist() == (
        engine.start.tolist()
    )


def test_a_subclass_is_not_replayed_as_its_parent():
    class Lazy(Easy):
        def decide(self, system):
            return ()

    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 10)
    assert simulate(trace, policy=Lazy(), compiled_from=0).summary["waiting"] == 10


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_a_replay_goes_on_when_the_room_for_runs_of_nodes_is_full(policy, monkeypatch):
    narrow = []

    def with_least_room(*given):
        state = new_state(*given)
        narrow.append(state._replace(runs=state.runs[: len(state.free_start)]))
        return narrow[-1]

    monkeypatch.setattr(_replay, "new_state", with_least_room)
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 500)
    assert_same(trace, "nodes:200", policy, "batched")
    assert narrow[-1].tally[_replay.HELD] > 2 * len(narrow[-1].runs)


@pytest.mark.long
def test_a_short_trace_is_replayed_once_the_kernels_are_on_disk(tmp_path):
    """In processes of their own, with a cache of their own."""
    code = """
import numpy as np
from optsched.simulator import replay
from optsched.simulator.simulate import simulate
from optsched.traces.trace import Trace
replays, real = [], replay.replay
replay.replay = lambda *given: replays.append(given) or real(*given)
trace = Trace(*[np.arange(1, 50)] * 5)
run = simulate(trace, "nodes:50", "fcfs", **{given})
print(len(replays), *run.start.tolist())
"""

    def started(given: str) -> list[str]:
        command = [sys.executable, "-c", code.replace("{given}", given)]
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    by_engine = started("{}")
    assert by_engine[0] == "1"  # the attempt to load the kernels
    assert started("{'compiled_from': 0}") == ["2", *by_engine[1:]]
    assert started("{}") == ["2", *by_engine[1:]]


def test_the_jobs_of_all_runs_decide_whether_a_replay_is_compiled(monkeypatch):
    class Own(Easy):
        replay_from = 250

    asked = []
    module = sys.modules[run_scenario.__module__]
    monkeypatch.setattr(module, "find_replay", lambda *run, may_compile: asked.append(may_compile))
    trace = Trace(*[np.arange(1, 101)] * 5)
    for _ in range(3):
        simulate(trace, "nodes:100", Own())
    assert asked == [False, False, True]
