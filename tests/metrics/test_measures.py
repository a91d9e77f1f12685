"""The measures of summaries: each key has one, with its unit; the sessions that they sum over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched import registry, simulate
from optsched.content import bundled
from optsched.metrics import stretch
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
    path, machine, policy, settings = SYSTEMS[system]
    trace = read_trace(path)
    if policy == "rua":
        trace = drawn(trace, "HIGH", seed=1)
    if policy == "as-logged":
        trace = trace.changed(wait=trace.job_id % 7 * 1000)
    settings = {"jobs": None if path == FILES else (1, 120)} | settings
    run = simulate(trace, machine, policy, **settings)
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
        ("seconds", 105_400, "1.22 days"),
        ("seconds", 0.000_02, "20 µs"),
        ("share", 0.4181, "41.81%"),
        ("processor-seconds", 36_000_000, "10,000 processor-hours"),
        ("jobs", 54_034, "54,034 jobs"),
        ("nodes", 2.345_67, "2.346 nodes"),
        ("", 4.117, "4.117"),
        ("seconds", float("nan"), MISSING),
        ("seconds", "none", "none"),
        ("", True, "yes"),
        ("jobs", 10**400, str(10**400)),
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
