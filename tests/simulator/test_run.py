"""What a run tells: places of jobs and reports of users, what it refuses, what is not timed."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from optsched import Run, save, simulate
from optsched.extend import ExecutionModel, ExecutionReport, InputError, Policy
from optsched.policies.fcfs import FCFS

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
    assert run.summary["contiguous_share"] == pytest.approx(2 / 3)
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


def test_a_run_on_a_torus_repeats_to_the_byte(make_trace, tmp_path):
    for name in ("one", "two"):
        save(simulate(make_trace(*ROWS), "torus:2x2x2", "fcfs"), tmp_path / name, plots=False)
    for file in ("jobs.csv", "jobs.parquet", "summary.json", "run.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_times_that_would_be_rounded_are_refused(make_trace):
    """Each of them is exact, their sum is not."""
    trace = make_trace((2**53 - 10, 9, 9, 1), (2**53 - 10, 9, 9, 1))
    with pytest.raises(InputError, match=r"add up to more than 2\^53 s"):
        simulate(trace, "nodes:1", "fcfs")


def test_kernels_are_compiled_before_the_clock_starts():
    """In a process of its own: no other test has compiled them there."""
    code = """
import numpy as np
from optsched.policies import _line
from optsched.simulator.engine import Engine
from optsched.simulator.simulate import simulate
from optsched.traces.trace import Trace
process = Engine.run

def watched(engine):
    before = list(_line.loop.compiled.signatures)
    process(engine)
    assert before == list(_line.loop.compiled.signatures) != []

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
