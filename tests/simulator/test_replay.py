"""The compiled replay against the engine."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import registry, simulate
from optsched.content import bundled
from optsched.errors import InputError
from optsched.executions.resource_sharing import ResourceSharing
from optsched.policies.easy import Easy
from optsched.policies.parts import _priority_queue, _sharing_replay, sharing
from optsched.policies.priority import FixedOrder
from optsched.policies.sjbf import SJBF
from optsched.simulator import _replay
from optsched.simulator._replay import new_state
from optsched.simulator.simulate import run_scenario
from optsched.solvers.result import Budget
from optsched.solvers.threshold_allocation.moving_rules import LessConsume
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


SHARING = [
    ("sjbf", "first-fit", {}),
    ("sjbf", "less-consume", {}),
    ("sjbf", "less-consume", {"limits": "requested"}),
    ("sjbf", "less-consume-threshold", {"threshold": 1.0}),
    ("sjbf", "less-consume-threshold", {"threshold": 1.15}),
    ("sjbf", "bottleneck-search", {}),
    ("sjbf", "bottleneck-search", {"goal": "everybody"}),
    ("sjbf", "bottleneck-search", {"threshold": 1.15, "goal": "penalty"}),
    ("sjbf", "bottleneck-search", {"threshold": 1.3, "goal": "everybody"}),
    ("rua", "less-consume-threshold", {}),
    ("rua", "less-consume-threshold", {"limits": "requested", "thresholds": "1,1.1,2"}),
    ("rua", "bottleneck-search", {}),
    ("rua", "bottleneck-search", {"choice": "response"}),
    ("sjbf", "first-fit", {"limits": "requested", "worst_node": "in-all"}),
    ("rua", "less-consume-threshold", {"worst_node": "in-all"}),
]

sharing_jobs = st.lists(
    st.tuples(
        st.integers(0, 8),
        st.integers(1, 30),
        st.sampled_from([0, 0, 1, 7, 30]),
        st.integers(1, 9),
        st.sampled_from([0, 500, 1000, 2000, 4000]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=40,
)


def assert_same_sharing(trace, machine, policy, solver, chosen, **other):
    runs = [
        simulate(
            trace,
            machine,
            policy,
            solver=solver,
            settings=chosen,
            compiled_from=from_jobs,
            **other,
        )
        for from_jobs in (0, len(trace) + 1)
    ]
    assert runs[0].jobs.to_csv() == runs[1].jobs.to_csv()
    pd.testing.assert_frame_equal(runs[0].decisions, runs[1].decisions)
    assert runs[0].summary == runs[1].summary
    assert runs[0].schedule.decisions == runs[1].schedule.decisions
    assert runs[0].timing["solver_seconds"] == 0


@given(
    sharing_jobs,
    st.sampled_from(SHARING),
    st.sampled_from(["smp:2x4", "smp:4x2", "smp:2x4:bandwidth=3000:disk=4", "smp:1x3"]),
    st.sampled_from([1, 0.7]),
)
@settings(max_examples=75, deadline=None)
def test_a_replay_of_shared_nodes_is_what_the_engine_does(workload, run, machine, unit):
    gaps, runtime, slack, processors, bandwidth, disk = map(np.array, zip(*workload))
    trace = clean(
        Trace(
            job_id=np.arange(len(gaps)),
            submit=np.cumsum(gaps) * unit,
            runtime=1 + runtime * unit,
            requested_time=1 + (runtime + slack) * unit,
            processors=processors,  # the widest are rejected
            annotations={"bandwidth": bandwidth, "disk": disk},
        )
    )
    assert_same_sharing(trace, machine, *run)


@pytest.mark.parametrize(("policy", "solver", "chosen"), SHARING)
def test_a_replay_of_a_log_on_shared_nodes_is_what_the_engine_does(policy, solver, chosen):
    trace = read_trace(bundled("traces") / "samples" / "sample-256.swf").jobs(1, 150)
    demands = {"bandwidth": np.random.default_rng(1).choice([500, 1000, 2000], len(trace))}
    trace = replace(trace, annotations=demands)
    assert_same_sharing(trace, "smp:64x4", policy, solver, chosen)


class LikeSharing(ResourceSharing):
    """Slows jobs down as resource sharing does; what it does beside that no replay knows."""


class LikeLessConsume(LessConsume):
    """Decides as less-consume does; what it does beside that no replay knows."""


@pytest.mark.parametrize(
    "other",
    [
        {"event_order": "one-by-one"},
        {"charge_decisions": True},
        {"solver": "highs"},
        {"solver": LikeLessConsume()},
        {"execution": LikeSharing()},
        {"budget": Budget(seconds=10), "solver": "bottleneck-search"},
        {"check": True},
        {"journal": True},
    ],
)
def test_shared_nodes_are_replayed_with_own_solvers_and_speeds_alone(other, monkeypatch):
    monkeypatch.setattr(_sharing_replay, "replay", None)  # the replay would call it
    run = simulate(few_sharing_jobs(), "smp:2x4", "sjbf", compiled_from=0, **other)
    assert run.timing["solver_seconds"] > 0


@pytest.mark.parametrize("space", ["MOST_POSED", "MOST_REPLAYED", "FEW_RESOURCES"])
def test_the_engine_runs_what_takes_more_space_than_a_replay_has(space, monkeypatch):
    monkeypatch.setattr(sharing, space, 0)
    assert simulate(few_sharing_jobs(), "smp:2x4", "sjbf", compiled_from=0).fallbacks == 0


def test_the_engine_reports_what_a_replay_cannot_place():
    one = np.ones(1, dtype=np.int64)
    known = {"bandwidth": 2000 * one}
    trace = clean(Trace(one, one, 90 * one, 100 * one, 4 * one, annotations=known))
    given = {"solver": "first-fit", "settings": {"threshold": 1.15}, "compiled_from": 0}
    with pytest.raises(InputError, match=r"no place for job 1 within a factor of 1\.15;"):
        simulate(trace, "smp:2x4", "sjbf", **given)


def test_a_subclass_for_shared_nodes_is_not_replayed_as_its_parent():
    class Lazy(SJBF):
        def decide(self, system):
            return ()

    run = simulate(few_sharing_jobs(), "smp:2x4", Lazy(), compiled_from=0)
    assert run.summary["waiting"] == 20


def few_sharing_jobs():
    numbers = np.arange(20)
    known = {"bandwidth": np.full(20, 4000)}
    return clean(
        Trace(numbers, numbers, 5 + numbers % 3, 9 + numbers, 1 + numbers % 4, annotations=known)
    )
