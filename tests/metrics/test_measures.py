"""Measures of summaries: each key has one, with its unit; sessions, and the free slots."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from optsched import registry, simulate
from optsched.content import bundled
from optsched.metrics import stretch
from optsched.metrics.fragmentation import fragmentation
from optsched.metrics.jobs import MEASURES, measures_of, unstated
from optsched.metrics.measure import Group, Measure
from optsched.metrics.stretch import WINDOW, consecutive_sessions, window_sessions
from optsched.numbers import MISSING
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.traces.reading import read_trace
from optsched.traces.transformations import drawn

SAMPLES = bundled("traces") / "samples"
LOG, FILES = (str(SAMPLES / name) for name in ("sample-256.swf", "sample-8x20.rackham"))
SITE = "site:sample-site"
BOXES = {"settings": {"large": 32, "prepare": "ahead", "moves": 2}}

SYSTEMS = {
    "easy": (LOG, None, "easy", {}),
    "switches and rejections": (LOG, SITE, "placement", {}),
    "as-logged": (LOG, None, "as-logged", {}),
    "contiguity": (LOG, "nodes:256", "window", {"execution": "contiguity"}),
    "locality of jobs": (LOG, "torus:8x8x4", "window", {}),
    "boxes": (LOG, "torus:8x8x4", "torus", BOXES),
    "gang": (LOG, "matrix:256", "gang", {"execution": "paging", "settings": {"job_memory": 400}}),
    "file-loading": (FILES, "cluster:8x20", "locality", {}),
    "resource-sharing": (LOG, "smp:64x4", "rua", {}),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_key_of_a_summary_has_a_measure(system):
    path, machine, policy, options = SYSTEMS[system]
    trace = read_trace(path)
    if policy == "rua":
        trace = drawn(trace, "HIGH", seed=1)
    if policy == "as-logged":
        trace = trace.changed(wait=trace.job_id % 7 * 1000)
    options = {"jobs": None if path == FILES else (1, 120)} | options
    run = simulate(trace, machine, policy, **options)
    measures = measures_of(run.config)
    assert run.summary.keys() - measures.keys() == set()
    for key, value in run.summary.items():
        assert bool(measures[key].by) == isinstance(value, dict) or value is None, key


def test_the_systems_above_are_all_that_add_figures():
    used = {policy for _, _, policy, _ in SYSTEMS.values()}
    own = {name for name in registry.policies if adds(registry.policies[name], Policy, "figures")}
    assert own <= used
    executions = {name for name in registry.executions if registry.executions[name].measures}
    assert executions == {
        name
        for name in registry.executions
        if adds(registry.executions[name], ExecutionModel, "report")
    }


def adds(cls, base, method):
    return getattr(cls, method) is not getattr(base, method)


def test_a_key_has_the_same_measure_wherever_it_is_stated():
    owners = [
        registered[name]
        for registered in (registry.metrics, registry.policies, registry.executions)
        for name in registered
    ]
    stated = dict(MEASURES)
    for owner in owners:
        for key, measure in owner.measures.items():
            assert stated.setdefault(key, measure) == measure


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        *(("seconds", 105_400, "1.22 days"), ("seconds", 0.000_02, "20 µs")),
        *(("share", 0.4181, "41.81%"), ("processor-seconds", 36_000_000, "10,000 processor-hours")),
        *(("jobs", 54_034, "54,034 jobs"), ("nodes", 2.345_67, "2.346 nodes")),
        *(("", 4.117, "4.117"), ("seconds", float("nan"), MISSING), ("seconds", "none", "none")),
        *(("", True, "yes"), ("jobs", 10**400, str(10**400))),
    ],
)
def test_a_value_is_written_with_its_unit(unit, value, text):
    assert Measure("name", unit, Group.OTHER, "").text(value) == text


def test_what_nobody_states_is_named_by_its_key():
    assert unstated("idle_before_first_start").name == "idle before first start"
    assert unstated("x").text(np.float64(2.5)) == "2.5"


def test_a_session_ends_where_another_user_submits_or_with_the_window_of_its_first_job():
    assert consecutive_sessions(np.array([1, 1, 2, 1, 1, -1, -1])).tolist() == [0, 0, 1, 2, 2, 3, 4]
    user = np.array([1, 2, 1, 1, 2, 1, -1, -1])
    submit = np.array([0, 10, 290, 301, 310, 601, 700, 700])
    # job 4 is 11 s after job 3, but 301 s after the job that opened the session
    assert window_sessions(user, submit).tolist() == [0, 1, 0, 2, 1, 2, 3, 4]


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 400)), max_size=30))
def test_sessions_are_of_one_user_and_within_the_window(rows):
    user = np.array([who for who, _ in rows], dtype=np.int64)
    submit = np.cumsum([0, *(gap for _, gap in rows)])[: len(rows)]
    for session in (consecutive_sessions(user), window_sessions(user, submit)):
        assert sorted(set(session.tolist())) == list(range(len(set(session.tolist()))))
        for own in range(len(set(session.tolist()))):
            assert len(set(user[session == own].tolist())) == 1
            assert (user[session == own] != -1).all() or (session == own).sum() == 1
    windows = window_sessions(user, submit)
    assert all(np.ptp(submit[windows == own]) <= WINDOW for own in set(windows.tolist()))


def test_the_stretch_of_a_session_is_the_sum_of_those_of_its_jobs():
    summed = stretch.session_stretches(np.array([1.0, 2.0, 1.5]), np.array([0, 1, 0]))
    assert summed.tolist() == [2.5, 2.0]


NODES = 9


def slots_of(free):
    edges = np.flatnonzero(np.diff(np.concatenate(([0], free.astype(int), [0]))))
    return (edges[1::2] - edges[::2]).tolist()


def nodes_of(text):
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


times = st.integers(1, 9)
job = st.tuples(st.integers(0, 20), times, times, st.integers(1, NODES + 1))


@given(st.lists(job, min_size=1, max_size=12), st.sampled_from(["fcfs", "easy", "window"]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(rows=[(0, 1, 1, NODES + 1)], policy="fcfs")
def test_it_says_what_a_look_at_every_node_says(make_trace, rows, policy):
    trace = make_trace(*sorted(rows))
    run = simulate(trace, f"nodes:{NODES}", policy)
    found = fragmentation(run.trace, NODES, run.schedule)
    classes = np.zeros(found.classes.shape[1])
    rejected = run.state == "REJECTED"
    for k, now in enumerate(found.time):
        free = np.ones(NODES, bool)
        for job in np.flatnonzero((run.start <= now) & (run.end > now)):
            free[list(nodes_of(run.resources[job]))] = False
        waiting = run.trace.processors[~rejected & (run.trace.submit <= now) & (run.start > now)]
        wanted = waiting.min() if len(waiting) else 0
        slots = slots_of(free)
        assert found.free[k] == free.sum()
        assert found.slots[k] == len(slots)
        assert found.largest_slot[k] == max(slots, default=0)
        assert found.smallest_waiting[k] == wanted
        useless = sum(slot for slot in slots if slot < wanted <= free.sum())
        assert found.useless[k] == useless
        if k + 1 < len(found.time):
            for slot in slots:
                classes[slot.bit_length() - 1] += slot * (found.time[k + 1] - now)
    assert found.classes.sum(axis=0) == pytest.approx(classes)
    if rejected.all():  # nothing ever happens
        assert not found.classes.any()
        assert found.summary() == {}
        return
    stretch = np.arange(len(found.classes) + 1) * np.ptp(found.time) / len(found.classes)
    so_far = np.append(0, np.cumsum(found.free[:-1] * np.diff(found.time)))
    free = np.interp(stretch, found.time - found.time[0], so_far)
    assert found.classes.sum(axis=1) == pytest.approx(np.diff(free), abs=1e-6)


def test_the_summary_is_a_mean_over_time_and_nodes_apart_are_fragmentation(make_trace):
    # from 0 to 10 nodes 2-3 are busy, 10 to 20 all four; a job of three waits from 4 to 10
    trace = make_trace((0, 10, 10, 2), (0, 10, 10, 1), (4, 10, 10, 3))
    run = simulate(trace, "nodes:4", "fcfs")
    found = fragmentation(run.trace, 4, run.schedule)
    assert found.time.tolist() == [0, 4, 10, 20]
    figures = found.summary()
    assert figures["loss_of_capacity"] == 0  # one node free was never enough
    assert figures["external_fragmentation"] == 0
    assert figures["mean_slots"] == 1
    assert figures["free_by_slot_size"] == {"1": 1, "2": 0, "4": 0}
    assert run.summary["mean_largest_slot"] == figures["mean_largest_slot"] == 1
    # nodes 2-3 are busy from 0 to 20, four nodes are free around them from 10 on
    trace = make_trace((0, 10, 10, 2), (0, 20, 20, 2), (0, 10, 10, 2), (10, 5, 5, 4))
    figures = simulate(trace, "nodes:6", "window", settings={"interval": 0}).summary
    assert figures["external_fragmentation"] == pytest.approx(10 * 4 / (25 * 6))
    assert figures["loss_of_capacity"] == figures["external_fragmentation"]
