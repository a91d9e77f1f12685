"""The policy as-logged: a replay of the waits of a log."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import simulate
from optsched.cli import run as command
from optsched.errors import InputError
from optsched.traces.cleaning import clean
from optsched.traces.reading import write_trace
from optsched.traces.trace import Trace

logs = st.lists(
    st.tuples(
        st.integers(0, 6),  # seconds since the job before
        st.integers(-1, 9),  # wait in the log
        st.integers(1, 12),  # run time
        st.integers(0, 8),  # by how much the request exceeds it
        st.integers(1, 8),  # processors
    ),
    min_size=1,
    max_size=25,
)


def trace_of(log):
    gaps, wait, runtime, slack, processors = (np.array(column) for column in zip(*log))
    return clean(
        Trace(
            job_id=np.arange(1, len(gaps) + 1),
            submit=np.cumsum(gaps),
            runtime=runtime,
            requested_time=runtime + slack,
            processors=processors,
            wait=wait,
        )
    )


def replayed(trace, processors):
    """Second by second: whoever is due and fits starts, in order of due time."""
    due = [submit + max(wait, 0) for submit, wait in zip(trace.submit, trace.wait)]
    starts = [None] * len(trace)
    second = 0
    while None in starts:
        held = sum(
            int(size)
            for start, runtime, size in zip(starts, trace.runtime, trace.processors)
            if start is not None and start <= second < start + runtime
        )
        for job in sorted(range(len(trace)), key=lambda job: (due[job], job)):
            fits = held + trace.processors[job] <= processors
            if starts[job] is None and due[job] <= second and fits:
                starts[job] = second
                held += int(trace.processors[job])
        second += 1
    return starts, due


@given(logs.filter(lambda log: any(wait >= 0 for _, wait, *_ in log)))
@settings(max_examples=150, deadline=None)
def test_the_schedule_is_that_of_a_replay_by_the_second(log):
    trace = trace_of(log)
    starts, due = replayed(trace, 8)
    run = simulate(trace, "nodes:8", "as-logged", check=True)
    assert run.start.tolist() == starts
    delays = [s - d for s, d, wait in zip(starts, due, trace.wait) if wait >= 0]
    assert run.summary["started_late"] == sum(delay > 0 for delay in delays)
    assert run.summary["mean_delay"] == pytest.approx(np.mean(delays))
    assert run.summary["without_logged_wait"] == (trace.wait < 0).sum()


@given(logs.filter(lambda log: any(wait >= 0 for _, wait, *_ in log)))
@settings(max_examples=60, deadline=None)
def test_with_enough_processors_every_start_is_that_of_the_log(log):
    trace = trace_of(log)
    machine = f"nodes:{trace.processors.sum()}"
    for order in ("batched", "one-by-one"):
        run = simulate(trace, machine, "as-logged", event_order=order, check=True)
        assert run.start.tolist() == (trace.submit + np.maximum(trace.wait, 0)).tolist()
        assert run.summary["started_late"] == run.summary["mean_delay"] == 0


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_the_waits_of_another_run_give_its_schedule(policy, make_trace):
    rng = np.random.default_rng(5)
    rows = np.column_stack(
        [
            np.sort(rng.uniform(0, 900, 200)),
            runtime := rng.uniform(1, 40, 200),
            runtime * rng.uniform(1, 3, 200),
            rng.integers(1, 16, 200),
        ]
    )
    trace = make_trace(*((*row[:3], int(row[3])) for row in rows.tolist()))
    run = simulate(trace, "nodes:16", policy)
    again = simulate(replace(trace, wait=run.start - trace.submit), "nodes:16", "as-logged")
    # a start is its wait after the submission again, but for rounding
    assert again.start == pytest.approx(run.start, abs=1e-6)


def test_a_later_job_passes_a_late_one(make_trace):
    trace = make_trace((0, 10, 10, 3), (0, 5, 5, 2), (0, 5, 5, 1))
    trace = replace(trace, wait=np.array([0, 2, 4]))
    run = simulate(trace, "nodes:4", "as-logged")
    assert run.start.tolist() == [0, 10, 4]
    figures = ("started_late", "mean_delay", "without_logged_wait")
    assert [run.summary[name] for name in figures] == [1, 8 / 3, 0]


def test_jobs_that_never_start_have_no_delay(make_trace):
    trace = replace(make_trace((0, 10, 10, 9)), wait=np.array([3]))
    summary = simulate(trace, "nodes:4", "as-logged").summary
    assert (summary["rejected"], summary["started_late"], summary["mean_delay"]) == (1, 0, None)


def test_a_log_without_waits_is_refused(make_trace, tmp_path, capsys):
    trace = make_trace((0, 10, 10, 1))
    message = "wait: no job of the trace has a logged wait, which policy as-logged repeats"
    with pytest.raises(InputError, match=message):
        simulate(trace, "nodes:4", "as-logged")
    write_trace(trace, tmp_path / "a.swf")
    words = ["simulate", str(tmp_path / "a.swf"), "--machine", "nodes:4", "--policy", "as-logged"]
    assert command([*words, "-o", str(tmp_path / "r")]) == 1
    [line] = capsys.readouterr().err.splitlines()[-1:]
    assert line.startswith(f"optsched: {message}")
    assert not (tmp_path / "r").exists()


def test_a_log_of_slurm_is_replayed_on_the_machine_that_it_ran_on(shared):
    from optsched import read_trace

    trace = read_trace(shared("slurm/fixtures/24.11.5/sacct.json.gz"))
    run = simulate(trace, "nodes:4096", "as-logged")
    assert (run.start == trace.submit + trace.wait).all()
