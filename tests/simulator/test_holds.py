"""Begin times, dependencies, and reservations that leave a job no time to start."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import simulate
from optsched.extend import InputError, Trace
from optsched.machines.site import SiteMachine
from optsched.sites.parts import Reservation
from optsched.sites.site import Site
from optsched.traces.trace import Header

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
        ("after:1+1", 60),
        ("afterok:1:2", 30),
        ("afterok:2?afterany:1", 20),
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


FOUR_NODES = np.tile([8, 1000], (4, 1))
SITE = Site("plain", ("n1", "n2", "n3", "n4"), ("cores", "memory"), FOUR_NODES)
OWN = "it cannot end within its reservation"
OTHER = "its nodes are reserved without a known end before it could end"
POLICIES = [(name, {}) for name in ("fcfs", "priority", "easy", "conservative", "as-logged")]
POLICIES += [("priority", {"backfill": "easy"}), ("placement", {"interval": 0.0})]


def wide_jobs(*rows, reservation=""):
    """Return a trace of jobs, each with a submission, a run time and processors."""
    submit, runtime, processors = np.array(rows, dtype=np.int64).T
    numbers = np.arange(1, len(rows) + 1)
    return Trace(
        *(numbers, submit, runtime, runtime, processors),
        wait=np.zeros_like(numbers),
        annotations={"priority": numbers[::-1]},
        texts={"reservation": np.full(len(rows), reservation, dtype=object)},
    )


def run_on(reservations, trace, policy="fcfs", settings=None, **more):
    site = replace(SITE, reservations=tuple(reservations))
    return simulate(trace, SiteMachine(site), policy, settings=settings or {}, check=True, **more)


@pytest.mark.parametrize(("policy", "settings"), POLICIES)
def test_a_job_whose_nodes_are_reserved_without_end_stops_no_others(policy, settings):
    trace = wide_jobs((0, 600, 8), (1, 500, 32), (2, 500, 8), (2000, 10, 24), (3000, 10, 32))
    run = run_on([Reservation("x", ("n1",), start=1000)], trace, policy, settings)
    # until 500 the second could start, if the first job ended early; the last one never could
    assert np.isnan(run.start).tolist() == [False, True, False, False, True]
    assert run.start[[0, 3]].tolist() == [0, 2000]
    blocks = policy in ("fcfs", "priority") and not settings
    assert run.start[2] == (500 if blocks else 2)
    assert run.summary["rejected_because"] == {OTHER: 2}
    assert run.jobs["reason"].tolist() == ["", OTHER, "", "", OTHER]


@pytest.mark.parametrize(("policy", "settings"), POLICIES)
def test_a_job_that_misses_its_reservation_stops_no_others_of_it(policy, settings):
    trace = wide_jobs((0, 600, 8), (1, 500, 8), (2, 10, 1), reservation="x")
    run = run_on([Reservation("x", ("n1",), 0, 1000)], trace, policy, settings)
    assert run.state.tolist() == ["COMPLETED_SUCCESSFULLY", "REJECTED", "COMPLETED_SUCCESSFULLY"]
    assert run.start[2] == 600
    assert run.summary["rejected_because"] == {OWN: 1}


@pytest.mark.parametrize("order", ["batched", "one-by-one"])
def test_a_job_can_start_at_the_last_moment(order):
    trace = wide_jobs((0, 500, 8), (1, 500, 8), reservation="x")
    run = run_on([Reservation("x", ("n1",), 0, 1000)], trace, event_order=order)
    assert run.start.tolist() == [0, 500]


def test_reservations_add_up_until_a_job_does_not_fit():
    first, second = Reservation("x", ("n1", "n2"), start=100), Reservation("y", ("n3",), start=200)
    run = run_on([first, second], wide_jobs((0, 300, 16), (0, 300, 8)))
    assert run.start[1] == 0
    assert run.jobs["reason"].tolist() == [OTHER, ""]


def test_a_held_job_is_rejected_if_its_time_is_over_when_it_is_let_go():
    trace = wide_jobs((0, 600, 8), (0, 500, 8), (0, 5, 8), reservation="x")
    texts = {"dependency": np.array(["", "afterany:1", "afterok:2"], dtype=object)}
    trace = trace.changed(texts=dict(trace.texts) | texts)
    run = run_on([Reservation("x", ("n1",), 0, 1000)], trace)
    assert run.jobs["reason"].tolist() == ["", OWN, "a job that it depends on has ended otherwise"]


@pytest.mark.parametrize(
    ("began", "span", "note"),
    [
        (None, (0, 100), ""),
        (None, (1_798_099_200, math.inf), "1 reservation with dates after the trace, which does"),
        (1_798_099_000, (1_798_099_600, math.inf), "none of 1 holds during the trace"),
        (1_798_099_000, (-math.inf, math.inf), ""),
    ],
)
def test_dates_without_effect_are_told(began, span, note):
    trace = wide_jobs((0, 500, 8))
    if began is not None:
        trace = trace.changed(header=Header((("UnixStartTime", str(began)),)))
    notes = run_on([Reservation("x", ("n1",), *span)], trace, "easy").notes
    assert [text.startswith(f"reservations: {note}") for text in notes] == [True] * bool(note)
