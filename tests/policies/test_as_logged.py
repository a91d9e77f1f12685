"""The policy as-logged: a replay of the waits of a log."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import workloads

from optsched import read_trace, simulate
from optsched.errors import InputError

logs = (
    st.tuples(workloads.jobs(8, most=25), st.lists(st.integers(-1, 9), min_size=25, max_size=25))
    .map(lambda log: workloads.trace_of(log[0], wait=np.array(log[1][: len(log[0])])))
    .filter(lambda trace: (trace.wait >= 0).any())
)


def replayed(trace, processors):
    """Second by second: whoever is due and fits starts, in order of due time."""
    due = trace.submit + np.maximum(trace.wait, 0)
    starts, second = np.full(len(trace), np.inf), 0
    while np.isinf(starts).any():
        runs = (starts <= second) & (second < starts + trace.runtime)
        free = processors - trace.processors[runs].sum()
        for job in np.argsort(due, kind="stable"):
            if np.isinf(starts[job]) and due[job] <= second and trace.processors[job] <= free:
                starts[job] = second
                free -= trace.processors[job]
        second += 1
    return starts, due


@given(logs)
@settings(max_examples=150, deadline=None)
def test_the_schedule_is_that_of_a_replay_by_the_second(trace):
    starts, due = replayed(trace, 8)
    run = simulate(trace, "nodes:8", "as-logged", check=True)
    assert run.start.tolist() == starts.tolist()
    delays = (starts - due)[trace.wait >= 0]
    assert run.summary["started_late"] == (delays > 0).sum()
    assert run.summary["mean_delay"] == pytest.approx(delays.mean())
    assert run.summary["without_logged_wait"] == (trace.wait < 0).sum()


@given(logs, workloads.orders)
@settings(max_examples=60, deadline=None)
def test_with_enough_processors_every_start_is_that_of_the_log(trace, order):
    machine = f"nodes:{trace.processors.sum()}"
    run = simulate(trace, machine, "as-logged", event_order=order, check=True)
    assert run.start.tolist() == (trace.submit + np.maximum(trace.wait, 0)).tolist()
    assert run.summary["started_late"] == run.summary["mean_delay"] == 0


def test_jobs_that_never_start_have_no_delay(make_trace):
    trace = replace(make_trace((0, 10, 10, 9)), wait=np.array([3]))
    summary = simulate(trace, "nodes:4", "as-logged").summary
    assert (summary["rejected"], summary["started_late"], summary["mean_delay"]) == (1, 0, None)


def test_a_log_without_waits_is_refused(make_trace):
    message = "wait: no job of the trace has a logged wait, which policy as-logged repeats"
    with pytest.raises(InputError, match=message):
        simulate(make_trace((0, 10, 10, 1)), "nodes:4", "as-logged")


def test_a_log_of_slurm_is_replayed_on_the_machine_that_it_ran_on(shared):
    trace = read_trace(shared("slurm/fixtures/24.11.5/sacct.json.gz"))
    run = simulate(trace, "nodes:4096", "as-logged")
    assert (run.start == trace.submit + trace.wait).all()
