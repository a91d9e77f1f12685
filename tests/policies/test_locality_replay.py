"""The compiled replay of planning on a cluster against the engine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from optsched import read_trace, simulate
from optsched.content import bundled
from optsched.policies.locality import Locality
from optsched.policies.parts import _locality_replay
from optsched.solvers.data_placement.rules import LocalityAndEvictionAware
from optsched.traces.cleaning import clean
from optsched.traces.trace import Trace

SAMPLE = bundled("traces") / "samples" / "sample-8x20.rackham"
RULES = ("fcfs", "eft", "lea", "leo", "lem")
ALWAYS, NEVER = 0, 10**9
"""Values of `compiled_from`."""


def assert_same(trace, machine, **given):
    replayed, engine = (
        simulate(trace, machine, "locality", **given, compiled_from=jobs)
        for jobs in (ALWAYS, NEVER)
    )
    assert replayed.jobs.to_csv() == engine.jobs.to_csv()
    pd.testing.assert_frame_equal(replayed.decisions, engine.decisions)
    assert replayed.summary == engine.summary
    assert replayed.schedule.decisions == engine.schedule.decisions
    assert replayed.timing["solver_seconds"] == 0  # no solver was called


workloads = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 5, 20]),  # seconds since the job before
        st.integers(1, 30),  # run time
        st.integers(-3, 40),  # that the job requests beyond it
        st.integers(1, 3),  # cores
        st.integers(-1, 3),  # file
    ),
    min_size=1,
    max_size=40,
)
chosen = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["none", "holes"]),
        "weight": st.sampled_from([0, 2, 500]),
        "threshold": st.sampled_from([50, 100]),
        "replan": st.sampled_from(["authors", "events"]),
        "stop": st.sampled_from(["full", "short"]),
        "loads": st.sampled_from(["now", "start"]),
        "evicted": st.sampled_from(["unused", "memory"]),
        "opportune": st.sampled_from(["scan", "node"]),
        "throttle": st.sampled_from([0.0, 0.0, 10.0]),
    }
)


def trace_of(workload, unit=1, **annotations):
    gaps, runtime, more, cores, files = (np.array(column) for column in zip(*workload))
    return clean(
        Trace(
            np.arange(len(gaps)),
            np.cumsum(gaps) * unit,
            1 + runtime * unit,
            1 + np.maximum(runtime + more, 0) * unit,
            cores,
            annotations={"file": files, "file_size": np.maximum(400 * (1 + files), 0)}
            | annotations,
            limits_hold=True,
        )
    )


@limits(max_examples=75, deadline=None)
@given(
    workloads,
    st.sampled_from(RULES),
    chosen,
    st.sampled_from(["1x4", "2x3", "3x3:kept=next", "2x4:kept=next"]),
    st.sampled_from([1, 0.7]),
)
def test_a_replay_is_what_the_engine_does(workload, rule, settings, machine, unit):
    trace = trace_of(workload, unit)
    assert_same(trace, f"cluster:{machine}", solver=rule, settings=settings)


@limits(max_examples=30, deadline=None)
@given(workloads.filter(lambda jobs: len(jobs) > 5), st.sampled_from(RULES), st.data())
def test_a_replay_begins_with_the_history_of_the_cluster(workload, rule, data):
    count = len(workload)
    ran = data.draw(st.integers(0, 4))
    gaps = [0] * ran + [7] + [gap for gap, *_ in workload[ran + 1 :]]
    workload = [(gap, *job[1:]) for gap, job in zip(gaps, workload)]
    category = np.array([-2] * ran + [-1] + [0] * (count - ran - 1))
    numbers = st.lists(st.integers(0, 5), min_size=count, max_size=count)
    history = {
        "category": category,
        "history_start": np.where(category == -2, data.draw(numbers), -1),
        "history_node": np.where(category == -2, data.draw(numbers), -1),
    }
    trace = trace_of(workload, **history)
    assert_same(trace, "cluster:2x3", solver=rule)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("backfill", ["none", "holes"])
def test_a_replay_of_the_sample_is_what_the_engine_does(rule, backfill):
    for more in ({}, {"throttle": 30.0}):
        assert_same(SAMPLE, "cluster:8x20", solver=rule, settings={"backfill": backfill} | more)


@pytest.mark.long
def test_a_replay_of_a_part_of_the_real_day_is_what_the_engine_does(shared):
    day = read_trace(shared("traces/rackham/2022-09-10_V10000_anonymous.txt.gz"))
    assert_same(day.jobs(1, 4500), "cluster:486x20", solver="lem", settings={"stop": "short"})


class LikeLea(LocalityAndEvictionAware):
    """Decides as LEA does; what it does beside that no replay knows."""


@pytest.mark.parametrize(
    "other",
    [
        {"event_order": "one-by-one"},
        {"charge_decisions": True},
        {"solver": LikeLea()},
        {"solver": LocalityAndEvictionAware(weight=3)},
        {"settings": {"backfill": "conservative"}},
        {"check": True},
        {"journal": True},
    ],
)
def test_only_the_rules_of_the_policy_are_replayed(other, monkeypatch):
    monkeypatch.setattr(_locality_replay, "replay", None)  # the replay would call it
    run = simulate(read_trace(SAMPLE).jobs(1, 50), "cluster:8x20", "locality", **other)
    assert run.timing["solver_seconds"] > 0


def test_a_subclass_is_not_replayed_as_its_parent():
    class Lazy(Locality):
        def decide(self, system):
            return ()

    run = simulate(read_trace(SAMPLE).jobs(1, 10), "cluster:8x20", Lazy(), compiled_from=ALWAYS)
    assert run.summary["waiting"] == 10


def test_a_replay_stops_at_an_infeasible_plan(monkeypatch):
    monkeypatch.setattr(_locality_replay, "replay", lambda state, rule: False)
    with pytest.raises(RuntimeError, match="infeasible plan"):
        simulate(SAMPLE, "cluster:8x20", "locality", compiled_from=ALWAYS)
