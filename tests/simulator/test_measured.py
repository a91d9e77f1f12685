"""Figures of some of the jobs that run: a warm-up and a cool-down left out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import workloads

from optsched import save, simulate
from optsched.extend import InputError
from optsched.report.saved import read_run


def trace_of(rows, **annotations):
    notes = {name: np.array(column) for name, column in annotations.items()}
    jobs = [(gap, runtime, runtime, processors) for gap, runtime, processors in rows]
    return workloads.trace_of(jobs, annotations=notes)


jobs = st.tuples(st.integers(0, 20), st.integers(1, 60), st.integers(1, 9))


@given(st.lists(jobs, min_size=2, max_size=30), st.data())
def test_figures_are_those_of_the_measured_jobs(rows, data):
    trace = trace_of(rows)
    first = data.draw(st.integers(1, len(rows)))
    last = data.draw(st.integers(first, len(rows)))
    whole = simulate(trace, "nodes:8", "easy", large_from=3)
    run = simulate(trace, "nodes:8", "easy", measure=f"{first}:{last}", large_from=3)
    assert run.end.tolist() == pytest.approx(whole.end.tolist(), nan_ok=True)
    jobs = run.jobs[run.jobs["measured"] == 1]
    assert jobs["job_id"].tolist() == list(range(first, last + 1))
    ran = jobs[jobs["success"] == 1]
    found = run.summary
    assert (found["jobs"], found["finished"]) == (len(jobs), len(ran))
    assert found["rejected"] == (jobs["final_state"] == "REJECTED").sum()
    if len(ran):
        assert found["mean_wait"] == pytest.approx(ran["waiting_time"].mean())
        slowdown = ran["bounded_slowdown"].quantile(0.95)
        assert found["p95_bounded_slowdown"] == pytest.approx(slowdown)
        span = ran["finish_time"].max() - jobs["submission_time"].min()
        assert found["makespan"] == span
        assert found["contiguous_share"] == (ran["runs"] == 1).mean()
        assert found["large_jobs"] == (ran["requested_number_of_resources"] >= 3).sum()
    begin, end = jobs["submission_time"].min(), jobs["submission_time"].max()
    if begin == end:
        assert found["utilization"] is None
        return
    started = run.jobs[run.jobs["success"] == 1]
    within = started[["starting_time", "finish_time"]].clip(begin, end)
    held = within["finish_time"] - within["starting_time"]
    used = (held * started["requested_number_of_resources"]).sum()
    assert found["utilization"] == pytest.approx(used / (8 * (end - begin)))


def test_figures_of_execution_models_are_of_the_measured_jobs():
    rows = [(0, 100, 2), (0, 100, 2), (500, 100, 2), (0, 100, 2)]
    trace = trace_of(rows, bandwidth=[2000, 2000, 3000, 3000])
    options = {"policy": "fcfs", "execution": "resource-sharing"}
    run = simulate(trace, "smp:1x4", measure=(3, 4), **options)
    assert run.summary["mean_penalised_percent"] == pytest.approx(100)
    assert run.summary["penalised_jobs"] == 2
    assert run.jobs["penalised_percent"].tolist() == pytest.approx([100 / 3] * 2 + [100] * 2)
    run = simulate(trace, "smp:1x4", measure="1:2", **options)
    assert run.summary["mean_penalised_percent"] == pytest.approx(100 / 3)


def test_measured_jobs_stay_so_when_they_are_shaken(tmp_path):
    trace = trace_of([(1, 30, 1 + k % 4) for k in range(60)])
    run = simulate(trace, "nodes:8", measure="21:40", shake=60, shake_seed=2)
    jobs = run.jobs
    assert sorted(jobs.loc[jobs["measured"] == 1, "job_id"]) == list(range(21, 41))
    assert (run.config["measure"], run.summary["jobs"]) == ([21, 40], 20)
    save(run, tmp_path / "run")
    assert read_run(tmp_path / "run").summary == run.summary


def test_a_range_beyond_the_jobs_that_run_is_refused():
    trace = trace_of([(1, 30, 1)] * 9)
    with pytest.raises(InputError, match="measure 3:6; expected FROM:TO with 1 <= FROM <= TO <= 5"):
        simulate(trace, "nodes:8", jobs="2:6", measure="3:6")
