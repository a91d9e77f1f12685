"""The folders of runs, comparisons and sweeps: what they hold, how they are repeated and read."""

import hashlib
import json
import shlex
import shutil
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from report.looks import change_json, contents

import optsched
from optsched import InputError, save, simulate
from optsched.cli import run as command
from optsched.folders import read_table
from optsched.models import WindowMKP
from optsched.report import run_page
from optsched.report.page import write_page
from optsched.simulator.execution import ExecutionModel
from optsched.traces import catalogue
from optsched.traces.reading import read_trace, write_trace

pytestmark = pytest.mark.usefixtures("without_png")

PROBLEM = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
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
    return command([*words[1:-1], str(folder.with_name("again")), "--no-plots"])


def test_a_run_folder_holds_what_the_docs_say(small, tmp_path):
    folder = save(simulate(small, "nodes:10", "window"), tmp_path / "run", plots=False)
    assert {file.name for file in folder.iterdir()} == FILES
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["jobs"], summary["finished"], summary["rejected"]) == (21, 20, 1)
    jobs = pd.read_csv(folder / "jobs.csv")
    assert list(jobs.columns[: len(BATSIM)]) == BATSIM
    assert list(pd.read_parquet(folder / "jobs.parquet").columns) == list(jobs.columns)
    assert len(pd.read_parquet(folder / "decisions.parquet")) == summary["problems"]


def test_the_same_config_gives_the_same_bytes_and_the_page_again(small, tmp_path):
    one, two = (
        contents(save(simulate(small, "nodes:10", "window", journal=True), tmp_path / name))
        for name in ("one", "two")
    )
    assert set(one) > FILES - {"timing.json"} | {"report.html"}
    assert one == two
    assert str(tmp_path).encode() not in one["report.html"]
    page = write_page(run_page.page(tmp_path / "two"), tmp_path / "two")
    assert page.read_bytes() == one["report.html"]


def test_a_run_folder_says_how_to_repeat_it_with_the_same_demands(small, tmp_path, capsys):
    write_trace(small.annotated(bandwidth=small.job_id % 3), tmp_path / "small.swf")
    first, beside = tmp_path / "first", tmp_path / "small.swf.demands.csv"
    arguments = ["simulate", str(tmp_path / "small.swf"), "--machine", "nodes:10", "--no-plots"]
    arguments += ["--policy", "window", "--set", "window=3", "--jobs", "2:20"]
    assert command([*arguments, "-o", str(first)]) == 0
    assert repeated(first) == 0
    assert contents(first) == contents(tmp_path / "again")
    beside.write_text(beside.read_text().replace("\n1,1\n", "\n1,2\n"))
    assert repeated(first) == 1
    assert "small.swf.demands.csv: has SHA-256 " in capsys.readouterr().err
    beside.unlink()
    assert repeated(first) == 1
    assert "small.swf.demands.csv: no such file; expected demands of" in capsys.readouterr().err
    assert command([*arguments, "-o", str(first)]) == 0


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


def test_a_run_replaces_a_run_and_neither_it_nor_a_comparison_anything_else(small, tmp_path):
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
    for one in (run, optsched.compare(PROBLEM, ["greedy"])):
        with pytest.raises(InputError, match="other things in it"):
            save(one, other, plots=False)
    assert (other / "thesis.tex").read_text() == "years of work"
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
    assert command(["simulate", "toy", *options, str(first)]) == 0
    assert f"toy: {tmp_path}/toy.swf\n" in capsys.readouterr().err
    assert str(tmp_path) not in (first / "run.json").read_text()
    assert json.loads((first / "run.json").read_text())["repeat"].split()[2] == "toy"
    assert repeated(first) == 0
    assert contents(first) == contents(tmp_path / "again")
    assert command(["trace", "info", "toy"]) == 0
    assert capsys.readouterr().err.endswith(f"toy: {tmp_path}/toy.swf\n")


@pytest.fixture
def folder(small_run, tmp_path):
    """Return the folder of a run without pictures."""
    return save(small_run, tmp_path / "run", plots=False)


def test_a_run_that_was_read_is_saved_as_it_was(interrupted_run, boxes_run, small, tmp_path):
    gang, window = (
        simulate(small, machine, policy, journal=True)
        for machine, policy in (("matrix:8", "gang"), ("nodes:8", "window"))
    )
    for run in (interrupted_run, boxes_run(), gang, window):
        first = save(run, tmp_path / "first")
        again = optsched.read_run(first)
        assert again.summary == run.summary
        assert again.jobs.equals(run.jobs)
        assert again.schedule.migrations == tuple(run.schedule.migrations)
        assert dir(again.plot) == dir(run.plot)
        assert contents(save(again, tmp_path / "second")) == contents(first)


def test_what_a_folder_does_not_have_is_said(folder, small_run):
    run = optsched.read_run(folder)
    assert repr(run) == f"<Run in {folder}: 3 jobs, easy on nodes:10>"
    assert run.journal is None
    for name, words in (
        ("policy_figures", "no policy_figures; see run.summary"),
        ("execution_report", "no execution_report; see its columns in run.jobs"),
        ("notes", "no notes; they were shown when"),
        ("compared", "no compared; see the figures"),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(run, name)
    for file in folder.glob("*.parquet"):
        file.unlink()
    run = optsched.read_run(folder)
    assert run.summary == small_run.summary
    assert "mean wait" in run._repr_html_()
    with pytest.raises(InputError, match=r"jobs\.parquet: no such file; the run was saved with"):
        run.jobs  # noqa: B018
    with pytest.raises(InputError, match=r"decisions\.parquet: no such file"):
        run.decisions  # noqa: B018


def test_a_comparison_that_was_read_is_saved_as_it_was_and_a_damaged_line_is_named(tmp_path):
    comparison = optsched.compare(PROBLEM, ["greedy", "branch-and-bound"])
    first = save(comparison, tmp_path / "first")
    again = optsched.read_comparison(first)
    assert again.results.equals(comparison.results)
    assert again.config == comparison.config
    assert again.answers == comparison.answers
    assert contents(save(again, tmp_path / "second")) == contents(first)
    change_json(first / "comparison.json", lambda record: record.pop("refusals"))
    assert optsched.read_comparison(first).refusals == ()  # of an earlier version
    with (first / "answers.jsonl").open("a") as answers:
        answers.write("{\n")
    with pytest.raises(InputError) as error:
        optsched.read_comparison(first)
    assert (error.value.file, error.value.line) == (str(first / "answers.jsonl"), 3)


@pytest.mark.parametrize("kind", ["run", "comparison", "sweep"])
def test_another_folder_is_refused(kind, tmp_path):
    expected = f"expected the folder of a {kind}"
    for folder, told in (
        (tmp_path, f"{tmp_path}: holds no {kind}.json; {expected}"),
        (tmp_path / "nothing", f"{tmp_path / 'nothing'}: no such folder; {expected}"),
        (5, f"folder: 5; {expected}"),
    ):
        with pytest.raises(InputError) as error:
            getattr(optsched, f"read_{kind}")(folder)
        assert told in str(error.value)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "jobs.parquet"])
def test_a_damaged_file_is_named(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes()[:-9])
    with pytest.raises(InputError) as error:
        optsched.read_run(folder).jobs  # noqa: B018
    assert error.value.file == str(folder / name)


def test_damaged_metadata_of_a_table_are_told(tmp_path):
    path = tmp_path / "results.parquet"
    table = pa.table({"run": ["a"]}).replace_schema_metadata({b"pandas": b"\xcd{}"})
    pq.write_table(table, path)
    with pytest.raises(InputError, match="damaged; expected a Parquet file"):
        read_table(path, ["run"])


def test_a_sweep_is_read_with_its_runs(tmp_path, small_run):
    out, trace = tmp_path / "out", tmp_path / "tiny.swf"
    write_trace(small_run.trace, trace)
    table = {"trace": str(trace), "machine": "nodes:10", "policy": ["fcfs", "easy"]}
    results = optsched.sweep(table, out, workers=1)
    found = optsched.read_sweep(out)
    assert found.results.equals(results)
    assert repr(found) == f"<Sweep in {out}: 2 finished runs>"
    assert list(found.runs) == ["fcfs", "easy"]
    assert found.runs["easy"].summary["mean_wait"] == results["mean_wait"][1]
    assert found.runs[results["run"][0]].config["policy"] == "fcfs"
    shown = found._repr_html_()
    assert "<td>easy</td><td>3 jobs</td>" in shown
    assert "<th>mean wait</th>" in shown
    assert results["run"][1] not in shown
    with pytest.raises(KeyError, match="unknown finished run 'easi'; did you mean easy"):
        found.runs["easi"]
    (out / "results.parquet").unlink()
    shutil.rmtree(out / "runs" / results["run"][0])
    unfinished = optsched.read_sweep(out)
    assert list(unfinished.runs) == ["easy"]
    with pytest.raises(InputError, match="no such file; 1 run of the sweep"):
        unfinished.results  # noqa: B018
    assert "1 finished run, 1 left" in unfinished._repr_html_()
