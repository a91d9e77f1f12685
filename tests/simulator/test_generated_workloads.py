"""Runs of workload models in place of traces."""

from __future__ import annotations

import shlex

import pytest

from optsched import generate_workload, simulate, sweep
from optsched.content import bundled
from optsched.errors import InputError
from optsched.sweeps.sweep_file import read_sweep
from optsched.sweeps.sweeping import Sweep

MODEL = "lublin-feitelson"


def test_a_workload_is_the_trace_that_is_generated_from_it():
    run = simulate(workload=MODEL, workload_seed=3, jobs="11:60", policy="fcfs")
    trace = generate_workload(MODEL, jobs=60, seed=3)
    same = simulate(trace, jobs="11:60", policy="fcfs")
    assert run.jobs.equals(same.jobs)
    stated = {"workload": MODEL, "workload_seed": 3, "trace": MODEL}
    assert {name: run.config[name] for name in stated} == stated
    assert same.config["repeat"] is None
    words = shlex.split(run.config["repeat"])
    assert words[:3] == ["optsched", "simulate", "--machine"]
    assert words[words.index("--workload") + 1] == MODEL
    assert simulate(workload=MODEL, jobs=9).config["workload_seed"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "trace: missing; expected a trace or a workload"),
        ({"workload": MODEL}, "jobs: missing; expected the number of jobs to generate"),
        ({"workload": MODEL, "jobs": "5:"}, "jobs: 5:; expected the number of jobs to generate"),
        ({"workload": MODEL, "jobs": 0}, "jobs: 0; expected a whole number from 1"),
        ({"workload": MODEL, "jobs": 9, "workload_seed": -1}, "workload seed: -1; expected a"),
        ({"workload": 3, "jobs": 9}, "workload: 3; expected a file or a name"),
        ({"workload": "lublin", "jobs": 9}, "unknown workload 'lublin'; did you mean lublin-feit"),
        ({"trace": "sample-256", "workload": MODEL}, "workload: beside a trace; expected one of"),
        ({"trace": "sample-256", "workload_seed": 1}, "workload seed: no workload to seed"),
    ],
)
def test_bad_values_get_one_line(options, said):
    with pytest.raises(InputError) as raised:
        simulate(**options)
    assert str(raised.value).startswith(said)


def test_a_sweep_of_workloads(tmp_path):
    spec = bundled("workloads") / f"{MODEL}.toml"
    (tmp_path / "own.toml").write_bytes(spec.read_bytes())
    table = {"workload": "own.toml", "workload_seed": [1, 2], "jobs": "40", "load": [1.0, 1.5]}
    plan = read_sweep(table, tmp_path)
    assert [run.columns["workload_seed"] for run in plan.runs] == [1, 1, 2, 2]
    bundled_one = read_sweep(table | {"workload": MODEL})
    assert [run.name for run in plan.runs] == [run.name for run in bundled_one.runs]
    (tmp_path / "sweep.toml").write_text(
        'workload = "own.toml"\nworkload_seed = [1, 2]\njobs = "40"\nload = [1.0, 1.5]\n'
    )
    frame = sweep(tmp_path / "sweep.toml", tmp_path / "done", workers=1)
    assert frame["error"].isna().all()
    own = simulate(workload=MODEL, workload_seed=2, jobs=40, load=1.5)
    assert frame["mean_wait"].iloc[3] == own.summary["mean_wait"]
    assert not Sweep(read_sweep(tmp_path / "sweep.toml"), tmp_path / "done").pending


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"workload": MODEL}, "jobs: missing; expected the number of jobs"),
        ({"workload": MODEL, "trace": "sample-256"}, "workload: beside a trace; expected one"),
        ({"workload": MODEL, "jobs": "9", "workload_seed": -1}, "workload_seed: -1; expected a"),
        ({}, "trace: missing; expected a trace file or the name of a trace, or a workload"),
    ],
)
def test_bad_values_of_a_sweep_get_one_line(table, said):
    with pytest.raises(InputError) as raised:
        read_sweep(table)
    assert raised.value.lines()[0].startswith(said)
