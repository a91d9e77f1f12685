"""Jobs of a site that can no longer start because of its reservations."""

import math
from dataclasses import replace

import numpy as np
import pytest

from optsched import simulate
from optsched.machines.site import SiteMachine
from optsched.sites.parts import Reservation
from optsched.sites.site import Site
from optsched.traces.trace import Header, Trace

NAMES = ("n1", "n2", "n3", "n4")
SITE = Site("plain", NAMES, ("cores", "memory"), np.tile([8, 1000], (4, 1)))
OWN = "it cannot end within its reservation"
OTHER = "its nodes are reserved without end before it could end"
POLICIES = [(name, {}) for name in ("fcfs", "priority", "easy", "conservative", "as-logged")]
POLICIES += [("priority", {"backfill": "easy"}), ("placement", {"interval": 0.0})]


def trace_of(rows, reservation=""):
    """Return a trace of jobs, each with a submission, a run time and processors."""
    submit, runtime, processors = np.array(rows, dtype=np.int64).T
    count = len(rows)
    return Trace(
        *(np.arange(1, count + 1), submit, runtime, runtime, processors),
        wait=np.zeros(count, dtype=np.int64),
        annotations={"priority": np.arange(count, 0, -1)},
        texts={"reservation": np.full(count, reservation, dtype=object)},
    )


def run_on(reservations, trace, policy="fcfs", settings=None, **more):
    site = replace(SITE, reservations=tuple(reservations))
    return simulate(trace, SiteMachine(site), policy, settings=settings or {}, check=True, **more)


@pytest.mark.parametrize(("policy", "settings"), POLICIES)
def test_a_job_whose_nodes_are_reserved_without_end_stops_no_others(policy, settings):
    trace = trace_of([(0, 600, 8), (1, 500, 32), (2, 500, 8), (2000, 10, 24), (3000, 10, 32)])
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
    trace = trace_of([(0, 600, 8), (1, 500, 8), (2, 10, 1)], "x")
    run = run_on([Reservation("x", ("n1",), 0, 1000)], trace, policy, settings)
    assert run.state.tolist() == ["COMPLETED_SUCCESSFULLY", "REJECTED", "COMPLETED_SUCCESSFULLY"]
    assert run.start[2] == 600
    assert run.summary["rejected_because"] == {OWN: 1}


@pytest.mark.parametrize("order", ["batched", "one-by-one"])
def test_a_job_can_start_at_the_last_moment(order):
    trace = trace_of([(0, 500, 8), (1, 500, 8)], "x")
    run = run_on([Reservation("x", ("n1",), 0, 1000)], trace, event_order=order)
    assert run.start.tolist() == [0, 500]


def test_reservations_add_up_until_a_job_does_not_fit():
    first, second = Reservation("x", ("n1", "n2"), start=100), Reservation("y", ("n3",), start=200)
    run = run_on([first, second], trace_of([(0, 300, 16), (0, 300, 8)]))
    assert run.start[1] == 0
    assert run.jobs["reason"].tolist() == [OTHER, ""]


def test_a_held_job_is_rejected_if_its_time_is_over_when_it_is_let_go():
    trace = trace_of([(0, 600, 8), (0, 500, 8), (0, 5, 8)], "x")
    texts = {"dependency": np.array(["", "afterany:1", "afterok:2"], dtype=object)}
    trace = trace.changed(texts=dict(trace.texts) | texts)
    run = run_on([Reservation("x", ("n1",), 0, 1000)], trace)
    assert run.jobs["reason"].tolist() == ["", OWN, "a job that it depends on has ended otherwise"]


@pytest.mark.parametrize(
    ("began", "span", "note"),
    [
        (None, (0, 100), ""),
        (None, (1_798_099_200, math.inf), "1 reservation with dates after the trace, which does"),
        (1_798_099_000, (1_798_099_200, math.inf), ""),
        (1_798_099_000, (1_798_099_600, math.inf), "none of 1 holds during the trace"),
        (1_798_099_000, (-math.inf, math.inf), ""),
    ],
)
def test_dates_without_effect_are_told(began, span, note):
    trace = trace_of([(0, 500, 8)])
    if began is not None:
        trace = trace.changed(header=Header((("UnixStartTime", str(began)),)))
    notes = run_on([Reservation("x", ("n1",), *span)], trace, "easy").notes
    assert [text.startswith(f"reservations: {note}") for text in notes] == [True] * bool(note)
