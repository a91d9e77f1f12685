"""Begin times and dependencies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import simulate
from optsched.extend import InputError, Trace
from optsched.machines.site import SiteMachine
from optsched.sites.site import Site

LARGE = Site("large", ("a",), ("cores", "memory"), np.array([[10_000, 10_000]]))
"""Room for all jobs of these tests at once."""


def trace_of(*rows, **columns):
    """Return a trace of (submit, runtime, dependency) rows, with job numbers from 1."""
    submit, runtime = np.array([row[:2] for row in rows]).T
    numbers = {name: np.array(of) for name, of in columns.items()}
    fields = {name: numbers.pop(name) for name in {"status", "user", "executable"} & {*numbers}}
    fields |= {"texts": {"dependency": np.array([row[2] for row in rows], dtype=object)}}
    jobs, ones = np.arange(1, len(rows) + 1), np.ones(len(rows), dtype=np.int64)
    return Trace(jobs, submit, runtime, runtime, ones, annotations=numbers, **fields)


def starts(*rows, machine=LARGE, policy="fcfs", **columns):
    run = simulate(trace_of(*rows, **columns), SiteMachine(machine), policy, check=True)
    return [None if math.isnan(at) else at for at in run.start.tolist()], run


@pytest.mark.parametrize(
    ("dependency", "start"),
    [
        ("after:1", 5),
        ("after:1+1", 60),
        ("afterok:1:2", 30),
        ("afterok:1,afterany:2", 30),
        ("afterok:2?afterany:1", 20),
        ("afternotok:1?afterok:2", 30),
        ("afterok:1(unfulfilled)", 20),
        ("aftercorr:2", 30),
    ],
)
def test_a_job_waits_for_what_it_depends_on(dependency, start):
    assert starts((0, 20, ""), (0, 30, ""), (5, 1, dependency))[0] == [0, 0, start]


def test_jobs_that_fail_in_the_log_fail_in_the_simulation():
    rows = ((0, 20, ""), (1, 1, "afterok:1"), (1, 1, "afternotok:1"), (1, 1, "afterany:2"))
    found, run = starts(*rows, status=[0, 1, 1, 1])
    assert found == [0, None, 20, 20]
    reason = "a job that it depends on has ended otherwise"
    assert run.summary["rejected_because"] == {reason: 1}
    assert run.jobs["reason"].tolist() == ["", reason, "", ""]


def test_a_job_waits_for_its_begin_time_or_the_time_at_which_it_could_start():
    found, _ = starts(
        *((0, 5, ""), (0, 5, ""), (0, 5, ""), (0, 50, ""), (0, 5, "afterok:4")),
        begin=[-1, 30, -1, -1, -1],
        eligible=[-1, 7, 9, -1, 99],
    )
    assert found == [0, 30, 9, 0, 50]


def test_a_singleton_waits_for_earlier_jobs_of_its_name_and_user():
    found, _ = starts(
        *((0, 20, ""), (0, 30, ""), (1, 40, "singleton"), (2, 1, "singleton"), (3, 1, "singleton")),
        user=[1, 2, 1, 1, 1],
        executable=[7, 7, 7, 7, 8],
    )
    assert found == [0, 0, 20, 60, 3]


def test_jobs_that_wait_for_each_other_never_start():
    found, run = starts((0, 5, "afterok:2"), (0, 5, "afterok:1"))
    assert found == [None, None]
    assert run.summary["waiting"] == 2
    assert run.jobs["reason"].tolist() == ["a job that it depends on never ends"] * 2


def test_jobs_that_are_not_in_the_trace_count_as_ended():
    found, run = starts((3, 5, "afterok:99"), (4, 5, "afterok:99?afterok:1"))
    assert found == [3, 4]
    assert "2 conditions on jobs that are not in the trace" in run.notes[0]


def test_a_job_that_was_held_is_in_the_queue_by_its_submission():
    one = Site("one", ("a",), ("cores", "memory"), np.array([[1, 1]]))
    rows = ((0, 20, ""), (1, 5, "afterok:1"), (2, 5, ""), (3, 5, ""))
    for policy in ("fcfs", "easy", "sjf"):
        assert starts(*rows, machine=one, policy=policy)[0] == [0, 20, 25, 30]
    # the others have had reservations since they were submitted
    assert starts(*rows, machine=one, policy="conservative")[0] == [0, 30, 20, 25]


def test_a_job_that_was_held_may_start_before_a_head_with_a_reservation():
    two = Site("two", ("a", "b"), ("cores", "memory"), np.array([[2, 1], [2, 1]]))
    trace = trace_of((0, 30, ""), (0, 40, ""), (1, 5, ""), (2, 50, ""), begin=[-1, 10, -1, -1])
    trace = trace.changed(processors=np.array([2, 2, 4, 2]), cleaning=None)
    run = simulate(trace, SiteMachine(two), "easy", check=True)
    assert run.start.tolist() == [0, 10, 50, 55]


@pytest.mark.parametrize(
    "text", ["afterok", "afterok:x", "before:1", "afterok:1;2", "1", "after:1+x"]
)
def test_a_dependency_that_cannot_be_read_is_told(text):
    with pytest.raises(InputError, match=r"dependency of job 2: .*; expected jobs to wait for"):
        starts((0, 1, ""), (0, 1, text))


def test_other_machines_do_not_hold_jobs():
    trace = trace_of((0, 20, ""), (5, 1, "afterok:1"), begin=[-1, 40])
    assert simulate(trace, "nodes:4", "fcfs").start.tolist() == [0, 5]


def wanted(rows, status, begin):
    """Return the start of each job, None if it is rejected, where there is room for all."""
    starts, ends, ok = [], [], []  # a rejected job ends when it is rejected
    for job, (submit, runtime, (kind, others, separator)) in enumerate(rows):
        times = {True: [], False: []}  # of conditions that are met and unmet
        for other in others:
            if kind == "after" and starts[other] is not None:
                times[True].append(starts[other])
            else:
                met = kind in ("after", "afterany") or ok[other] == (kind == "afterok")
                times[met].append(ends[other])
        met, unmet = times[True], times[False]
        rejected = bool(unmet) and (separator == "," or not met)
        until = [min(met)] if separator == "?" and met else met
        starts.append(None if rejected else max(submit, begin[job], *until, 0))
        known = min(unmet, default=0) if separator == "," else max(unmet, default=0)
        ends.append(max(submit, known) if rejected else starts[-1] + runtime)
        ok.append(not rejected and status[job] == 1)
    return starts


@st.composite
def held_jobs(draw):
    """Draw jobs that wait for some of those before them, with their conditions."""
    rows, at = [], 0
    for job in range(draw(st.integers(1, 10))):
        kind = draw(st.sampled_from(["after", "afterany", "afterok", "afternotok"]))
        others = draw(st.lists(st.integers(0, job - 1), max_size=3)) if job else []
        separator = draw(st.sampled_from(",?")) if others else ","
        at += draw(st.integers(0, 4))
        rows.append((at, draw(st.integers(1, 9)), (kind, others, separator)))
    return rows


@given(held_jobs(), st.sampled_from(["fcfs", "easy", "conservative"]), st.data())
@settings(max_examples=200, deadline=None)
def test_jobs_start_when_they_are_let_go_if_there_is_room(rows, policy, data):
    status, begin = (
        data.draw(st.lists(st.sampled_from(values), min_size=len(rows), max_size=len(rows)))
        for values in ([0, 1], [-1, -1, 10, 30])
    )
    texts = [
        separator.join(f"{kind}:{other + 1}" for other in others)
        for *_, (kind, others, separator) in rows
    ]
    stated = [(at, runtime, text) for (at, runtime, _), text in zip(rows, texts)]
    found, _ = starts(*stated, policy=policy, status=status, begin=begin)
    assert found == wanted(rows, status, begin)
