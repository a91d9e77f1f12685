"""What a run tells: of places, of some of its jobs, from users; what it refuses; what is timed."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import workloads

from optsched import Run, save, simulate
from optsched.extend import ExecutionModel, ExecutionReport, InputError, Policy
from optsched.machines.texts import Texts
from optsched.policies.fcfs import FCFS
from optsched.report.saved import read_run
from optsched.simulator import job_table

ROWS = (0, 10, 10, 3), (0, 99, 99, 2), (20, 5, 5, 5), (30, 5, 5, 9)
"""Two jobs beside each other; the third takes what the first leaves and the rest of the line.

The fourth is larger than the machine.
"""


def measures(run: Run, names: list[str]) -> list[list[float | None]]:
    columns = [run.jobs[name].astype(float) for name in names]
    return [[None if np.isnan(value) else value for value in column] for column in columns]


def test_a_line_of_nodes_tells_how_contiguous_the_jobs_are(make_trace):
    run = simulate(make_trace(*ROWS), "nodes:8", "fcfs")
    assert run.jobs.allocated_resources.tolist() == ["0-2", "3-4", "0-2 5-6", ""]
    assert measures(run, ["runs"]) == [[1, 1, 2, None]]
    assert list(run.jobs.columns[-4:]) == ["bounded_slowdown", "user", "runs", "reason"]
    assert run.jobs.runs.dtype == "Int64"
    assert run.summary["contiguous_share"] == pytest.approx(2 / 3)
    assert run.summary["mean_runs"] == pytest.approx(4 / 3)
    assert "mean_hops" not in run.summary


def test_a_torus_tells_how_far_the_nodes_of_a_job_are_apart(make_trace):
    """On a ring of eight: 0-2 are 1, 1 and 2 hops apart, and 0-2 5-6 have ten pairs."""
    run = simulate(make_trace(*ROWS), "torus:1x1x8:row-major", "fcfs")
    hops = [1, 1, 2, 3, 2, 1, 4, 3, 3, 4]
    assert measures(run, ["runs", "max_hops"]) == [[1, 1, 2, None], [2, 1, 4, None]]
    [mean, dispersal] = measures(run, ["mean_hops", "dispersal"])
    assert mean[:3] == pytest.approx([4 / 3, 1, np.mean(hops)])
    of_machine = (1 + 2 + 3 + 4 + 3 + 2 + 1) / 7
    assert dispersal[:3] == pytest.approx([value / of_machine for value in mean[:3]])
    assert mean[3] is dispersal[3] is None
    assert run.summary["mean_hops"] == pytest.approx(np.mean(mean[:3]))
    assert run.summary["mean_dispersal"] == pytest.approx(np.mean(dispersal[:3]))


@pytest.mark.parametrize("machine", ["nodes:8", "torus:2x2x2"])
def test_where_no_job_ran_nothing_is_measured(machine, make_trace, tmp_path):
    class Never(Policy):
        def decide(self, system):
            return ()

    run = simulate(make_trace(*ROWS), machine, Never())
    assert run.jobs.runs.isna().all()
    save(run, tmp_path / "run", plots=False)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["contiguous_share"], summary["mean_runs"]) == (None, None)
    columns, *lines = (tmp_path / "run" / "jobs.csv").read_text().splitlines()
    measured = slice(columns.split(",").index("runs"), -1)  # the last is the reason
    assert all(not any(line.split(",")[measured]) for line in lines)


def test_times_that_would_be_rounded_are_refused(make_trace):
    """Each of them is exact, their sum is not."""
    trace = make_trace((2**53 - 10, 9, 9, 1), (2**53 - 10, 9, 9, 1))
    with pytest.raises(InputError, match=r"add up to more than 2\^53 s"):
        simulate(trace, "nodes:1", "fcfs")


def test_kernels_are_compiled_before_the_clock_starts():
    """In a process of its own: no other test has compiled them there."""
    code = """
import numpy as np
from optsched.simulator._core import loop
from optsched.simulator.engine import Engine
from optsched.simulator.simulate import simulate
from optsched.traces.trace import Trace
process = Engine.run

def watched(engine):
    before = list(loop.compiled.signatures)
    process(engine)
    assert before == list(loop.compiled.signatures) != []

Engine.run = watched
trace = Trace(*[np.arange(1, 50)] * 5)
run = simulate(trace, "nodes:50", "easy", compiled_from=0)
assert run.timing["prepare_seconds"] > 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_part_of_a_trace_claims_none_of_its_dropped_jobs(make_trace):
    """A job without run time is dropped; whether it lies within the part nobody can tell."""
    trace = make_trace((0, 5, 5, 1), (1, 0, 5, 1), (2, 5, 5, 1))
    assert simulate(trace, "nodes:1").summary["dropped"] == 1
    part = simulate(trace, "nodes:1", jobs=(1, 1)).summary
    assert (part["jobs"], part["dropped"], part["cleaning"]["dropped"]) == (1, None, 1)


def reporting(make_trace, **functions):
    """Simulate two jobs under a policy and an execution model that report what functions return."""

    class Reporting(ExecutionModel):
        def report(self, trace, schedule):
            return functions.get("report", ExecutionReport)()

    class Own(FCFS):
        def figures(self, system):
            return functions.get("figures", dict)()

        def notes(self):
            return functions.get("notes", tuple)()

    trace = make_trace((0, 5, 10, 1), (1, 5, 10, 1))
    return simulate(trace, machine=4, policy=Own(), execution=Reporting())


def test_what_policies_and_execution_models_report_is_in_the_run(make_trace):
    columns = {"twice": np.array([2, 4])}
    run = reporting(
        make_trace,
        report=lambda: ExecutionReport(columns, {"slow": np.int64(1)}, ("one is slow",)),
        figures=lambda: {"by size": {"1": 2}},
        notes=lambda: ["two jobs"],
    )
    assert run.jobs["twice"].tolist() == [2, 4]
    assert (run.summary["slow"], run.summary["by size"]) == (1, {"1": 2})
    assert run.notes == ("two jobs", "one is slow")


@pytest.mark.parametrize(
    ("name", "report", "told"),
    [
        ("report", lambda: None, "report of execution model 'Reporting': None; expected an Exec"),
        (
            "report",
            lambda: ExecutionReport(columns={"x": np.zeros(3)}),
            "column 'x' of execution model 'Reporting': 3 values; expected a value for each of",
        ),
        ("report", lambda: ExecutionReport(columns={"x": 1.0}), "no list of values; expected a"),
        ("report", lambda: ExecutionReport(figures={"x": {1}}), "model 'Reporting': {1}"),
        ("report", lambda: ExecutionReport(notes="odd"), "'odd'; expected a list or tuple"),
        ("report", lambda: 1 / 0, "Reporting failed at the end of the run: ZeroDivisionError"),
        ("figures", lambda: [1], "figures of policy 'Own': [1]; expected a dict with names"),
        ("figures", lambda: {1: 2}, "expected a dict with names as keys"),
        ("figures", lambda: {"x": np.zeros(2)}, "figure 'x' of policy 'Own': a"),
        ("notes", lambda: 7, "notes of policy 'Own': 7; expected a list or tuple of texts"),
        ("notes", lambda: 1 / 0, "policy Own failed at the end of the run: ZeroDivisionError"),
    ],
)
def test_a_report_that_cannot_be_used_is_one_line(make_trace, name, report, told):
    with pytest.raises(InputError) as caught:
        reporting(make_trace, **{name: report})
    assert told in str(caught.value)


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


LENGTH = 5
FLOATS = st.lists(
    st.one_of(st.floats(-10, 10), st.integers(-9, 9).map(float), st.just(np.nan)),
    min_size=LENGTH,
    max_size=LENGTH,
).map(np.array)
STRINGS = st.lists(st.text("ab- ", max_size=4), min_size=LENGTH, max_size=LENGTH)
MASKS = st.lists(st.booleans(), min_size=LENGTH, max_size=LENGTH).map(np.array)


@given(FLOATS, STRINGS, MASKS)
def test_columns_are_stored_as_pandas_stores_them(floats, strings, mask):
    columns = {
        "whole": job_table.whole(floats),
        "float": floats,
        "integer": np.arange(LENGTH),
        "constant": job_table.constant("é", LENGTH),
        "repeated": job_table.repeated(np.array(strings)),
        "texts": Texts.of(strings),
        "strings": strings,
        "spread floats": job_table.spread(floats[mask], mask),
        "spread integers": job_table.spread(np.arange(LENGTH)[mask], mask),
        "spread texts": job_table.spread(np.array(strings, dtype=object)[mask], mask),
    }
    known, texts = ~np.isnan(floats), np.array(strings, dtype=object)
    are_whole = np.array_equal(floats[known], np.rint(floats[known]))
    frame = pd.DataFrame(
        {
            "whole": pd.array(floats, dtype="Int64") if are_whole else floats,
            "float": floats,
            "integer": np.arange(LENGTH),
            "constant": pd.Categorical(["é"] * LENGTH),
            "repeated": pd.Categorical(strings),
            "texts": pd.array(strings, dtype="str"),
            "strings": strings,
            "spread floats": np.where(mask, floats, np.nan),
            "spread integers": pd.Series(np.arange(LENGTH), dtype="Int64").where(mask),
            "spread texts": np.where(mask, texts, ""),
        }
    )
    found = job_table.to_pandas(columns)
    for name in found:
        found.loc[0, name] = found.loc[0, name]  # can be written
    pd.testing.assert_frame_equal(found, frame)
    table = job_table.to_arrow(columns)
    assert table.equals(pa.Table.from_pandas(frame, preserve_index=False), check_metadata=True)


def test_times_are_integers_only_if_all_are_whole():
    assert isinstance(job_table.whole(np.array([1.0, np.nan])), job_table.Optional)
    assert job_table.whole(np.array([1.5, np.nan])).dtype == float


def test_an_empty_table_has_its_columns():
    frame = pd.DataFrame(columns=["a", "b"], dtype=object)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    assert job_table.empty(["a", "b"]).equals(table, check_metadata=True)


def test_a_run_without_pictures_and_problems_does_without_pandas(tmp_path):
    command = ["simulate", "sample-256", "--no-plots", "-o", str(tmp_path / "run")]
    code = (
        f"import sys; from optsched.cli import run; code = run({command})\n"
        "assert (code, {'pandas', 'matplotlib', 'scipy.linalg'} & set(sys.modules)) == (0, set())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
