"""The folder of a run: what it holds, how it is repeated, and what it replaces."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import replace

import pandas as pd
import pytest

from optsched import save, simulate
from optsched.cli import run as optsched
from optsched.errors import InputError
from optsched.simulator.execution import ExecutionModel
from optsched.traces import catalogue
from optsched.traces.reading import read_trace, write_trace
from report.looks import contents

FILES = {"run.json", "summary.json", "timing.json", "jobs.csv", "jobs.parquet", "decisions.parquet"}
BATSIM = [
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
    "requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
    "waiting_time", "turnaround_time", "stretch", "allocated_resources", "consumed_energy",
    "metadata",
]  # fmt: skip


@pytest.fixture
def small(make_trace):
    rows = [(30 * k, 100 + 7 * k, 200 + 7 * k, 1 + (5 * k) % 7) for k in range(20)]
    return make_trace(*rows, (700, 5, 5, 99))


def repeated(folder):
    """Run the command that repeats a run into the folder `again` beside it, and return its code."""
    words = shlex.split(json.loads((folder / "run.json").read_text())["repeat"])
    return optsched([*words[1:-1], str(folder.with_name("again")), "--no-plots"])


def test_a_run_folder_holds_what_the_docs_say(small, tmp_path):
    folder = save(simulate(small, "nodes:10", "window"), tmp_path / "run", plots=False)
    assert {file.name for file in folder.iterdir()} == FILES
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["jobs"], summary["finished"], summary["rejected"]) == (21, 20, 1)
    jobs = pd.read_csv(folder / "jobs.csv")
    assert list(jobs.columns[: len(BATSIM)]) == BATSIM
    assert list(pd.read_parquet(folder / "jobs.parquet").columns) == list(jobs.columns)
    assert len(pd.read_parquet(folder / "decisions.parquet")) == summary["problems"]


def test_the_same_config_gives_the_same_bytes(small, tmp_path):
    one, two = (
        contents(save(simulate(small, "nodes:10", "window", journal=True), tmp_path / name))
        for name in ("one", "two")
    )
    assert set(one) > FILES - {"timing.json"} | {"report.html"}
    assert one == two


def test_a_run_folder_says_how_to_repeat_it(small, tmp_path):
    write_trace(small, tmp_path / "small.swf")
    first = tmp_path / "first"
    arguments = ["simulate", str(tmp_path / "small.swf"), "--machine", "nodes:10", "-o", str(first)]
    arguments += ["--policy", "window", "--set", "window=3", "--jobs", "2:20", "--no-plots"]
    assert optsched(arguments) == 0
    assert repeated(first) == 0
    assert contents(first) == contents(tmp_path / "again")


def test_a_run_is_repeated_with_the_same_demands_only(small, tmp_path, capsys):
    write_trace(small.annotated(bandwidth=small.job_id % 3), tmp_path / "small.swf")
    first, beside = tmp_path / "first", tmp_path / "small.swf.demands.csv"
    arguments = ["simulate", str(tmp_path / "small.swf"), "--machine", "nodes:10", "--no-plots"]
    assert optsched([*arguments, "-o", str(first)]) == 0
    assert repeated(first) == 0
    assert contents(first) == contents(tmp_path / "again")
    beside.write_text(beside.read_text().replace("\n1,1\n", "\n1,2\n"))
    assert repeated(first) == 1
    assert "small.swf.demands.csv: has SHA-256 " in capsys.readouterr().err
    beside.unlink()
    assert repeated(first) == 1
    assert "small.swf.demands.csv: no such file; expected demands of" in capsys.readouterr().err
    assert optsched([*arguments, "-o", str(first)]) == 0


def test_what_no_command_repeats_says_so(small, tmp_path):
    write_trace(small, tmp_path / "small.swf")
    whole = read_trace(tmp_path / "small.swf")
    assert simulate(whole, "nodes:10", "easy").config["repeat"] is not None
    part = simulate(whole, "nodes:10", "easy", jobs=(1, 5)).config
    sliced = simulate(whole.jobs(1, 5), "nodes:10", "easy").config
    assert sliced["workload_sha256"] == part["workload_sha256"]
    assert (sliced["repeat"], sliced["trace_sha256"]) == (None, None)
    assert simulate(small, "nodes:10", "easy").config["repeat"] is None
    modelled = simulate(whole, "nodes:10", "easy", execution=ExecutionModel()).config
    assert (modelled["execution"], modelled["repeat"]) == ("rigid", None)


def test_a_run_replaces_a_run_and_nothing_else(small, tmp_path):
    run = simulate(small, "nodes:10", "fcfs")
    folder = save(run, tmp_path / "run", plots=False)
    save(simulate(small, "nodes:10", "easy"), folder, plots=False)
    assert json.loads((folder / "run.json").read_text())["policy"] == "easy"
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'notes.txt', which is not of a run"):
        save(run, folder, plots=False)
    assert (folder / "notes.txt").read_text() == "mine"
    link = tmp_path / "link"
    link.symlink_to(save(run, tmp_path / "real", plots=False))
    save(run, link, plots=False)
    assert link.is_symlink()
    with pytest.raises(InputError, match="other things in it"):
        save(run, other, plots=False)
    with pytest.raises(InputError, match="is a file"):
        save(run, other / "thesis.tex", plots=False)
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # evalys uses it
def test_evalys_opens_the_jobs(small, tmp_path):
    jobset = pytest.importorskip("evalys.jobset", reason="evalys is not installed")
    folder = save(simulate(small, "nodes:10", "easy"), tmp_path / "run", plots=False)
    opened = jobset.JobSet.from_csv(str(folder / "jobs.csv"))
    assert len(opened.df) == 21
    assert len(opened.df.allocated_resources.iloc[0]) == 1


def test_a_trace_of_the_catalogue_goes_by_its_name(small, tmp_path, monkeypatch, capsys):
    """The file is said aloud; the record holds no path of this machine."""
    write_trace(small, tmp_path / "toy.swf")
    sha256 = hashlib.sha256((tmp_path / "toy.swf").read_bytes()).hexdigest()
    toy = replace(catalogue.entries()[0], name="toy", file="toy.swf", sha256=sha256)
    monkeypatch.setattr(catalogue, "entries", lambda: (toy,))
    monkeypatch.setenv(catalogue.VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    first = tmp_path / "first"
    options = ["--machine", "nodes:10", "--jobs", "1:9", "--no-plots", "-o"]
    assert optsched(["simulate", "toy", *options, str(first)]) == 0
    assert f"toy: {tmp_path}/toy.swf\n" in capsys.readouterr().err
    assert str(tmp_path) not in (first / "run.json").read_text()
    assert json.loads((first / "run.json").read_text())["repeat"].split()[2] == "toy"
    assert repeated(first) == 0
    assert contents(first) == contents(tmp_path / "again")
    assert optsched(["trace", "info", "toy"]) == 0
    assert capsys.readouterr().err.endswith(f"toy: {tmp_path}/toy.swf\n")
