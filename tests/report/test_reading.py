"""Runs and comparisons that are read from their folders."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import optsched
from optsched.folders import read_table
from optsched.models import WindowMKP
from optsched.traces.reading import write_trace

pytestmark = pytest.mark.usefixtures("without_png")

PROBLEM = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])


def contents(folder):
    """Return the bytes of all files whose bytes are the same in each run."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "timing.json"}


@pytest.fixture(params=["interrupted", "migration", "matrix", "window"])
def run(request, interrupted_run, boxes_run, make_trace):
    many = make_trace(*((9 * n, 60, 60, 1 + n % 5) for n in range(20)))
    return {
        "interrupted": lambda: interrupted_run,
        "migration": boxes_run,
        "matrix": lambda: optsched.simulate(many, "matrix:8", "gang", journal=True),
        "window": lambda: optsched.simulate(many, "nodes:8", "window", journal=True),
    }[request.param]()


def test_a_run_that_was_read_is_saved_as_it_was(run, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    optsched.save(run, first)
    again = optsched.read_run(first)
    assert again.summary == run.summary
    assert again.jobs.equals(run.jobs)
    assert again.schedule.migrations == tuple(run.schedule.migrations)
    assert dir(again.plot) == dir(run.plot)
    optsched.save(again, second)
    assert contents(second) == contents(first)


def test_what_a_folder_does_not_have_is_said(small_run, tmp_path):
    run = optsched.read_run(optsched.save(small_run, tmp_path / "run", plots=False))
    assert repr(run) == f"<Run in {tmp_path / 'run'}: 3 jobs, easy on nodes:10>"
    assert run.journal is None
    for name, words in (
        ("policy_figures", "no policy_figures; see run.summary"),
        ("execution_report", "no execution_report; see its columns in run.jobs"),
        ("notes", "no notes; they were shown when"),
        ("compared", "no compared; see the figures"),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(run, name)


def test_a_run_without_tables_has_its_summary(small_run, tmp_path):
    folder = optsched.save(small_run, tmp_path / "run", plots=False)
    for file in folder.glob("*.parquet"):
        file.unlink()
    run = optsched.read_run(folder)
    assert run.summary == small_run.summary
    assert "mean wait" in run._repr_html_()
    with pytest.raises(
        optsched.InputError, match=r"jobs\.parquet: no such file; the run was saved with"
    ):
        run.jobs  # noqa: B018
    with pytest.raises(optsched.InputError, match=r"decisions\.parquet: no such file"):
        run.decisions  # noqa: B018


def test_a_comparison_that_was_read_is_saved_as_it_was(tmp_path):
    comparison = optsched.compare(PROBLEM, ["greedy", "branch-and-bound"])
    first = optsched.save(comparison, tmp_path / "first")
    again = optsched.read_comparison(first)
    assert again.results.equals(comparison.results)
    assert again.config == comparison.config
    assert again.answers == comparison.answers
    assert contents(optsched.save(again, tmp_path / "second")) == contents(first)


def test_a_comparison_of_an_earlier_version_has_no_refusals(tmp_path):
    folder = optsched.save(optsched.compare(PROBLEM, ["greedy"]), tmp_path / "out", plots=False)
    record = json.loads((folder / "comparison.json").read_text())
    del record["refusals"]
    (folder / "comparison.json").write_text(json.dumps(record))
    assert optsched.read_comparison(folder).refusals == ()


@pytest.mark.parametrize(
    ("read", "kind", "marker"),
    [
        (optsched.read_run, "a run", "run.json"),
        (optsched.read_comparison, "a comparison", "comparison.json"),
        (optsched.read_sweep, "a sweep", "sweep.json"),
    ],
)
def test_another_folder_is_refused(read, kind, marker, tmp_path):
    with pytest.raises(optsched.InputError) as error:
        read(tmp_path)
    assert str(error.value) == f"{tmp_path}: holds no {marker}; expected the folder of {kind}"
    with pytest.raises(optsched.InputError, match=f"no such folder; expected the folder of {kind}"):
        read(tmp_path / "nothing")
    with pytest.raises(optsched.InputError, match=f"folder: 5; expected the folder of {kind}"):
        read(5)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "jobs.parquet"])
def test_a_damaged_file_is_named(small_run, tmp_path, name):
    folder = optsched.save(small_run, tmp_path / "run", plots=False)
    (folder / name).write_bytes((folder / name).read_bytes()[:-9])
    with pytest.raises(optsched.InputError) as error:
        optsched.read_run(folder).jobs  # noqa: B018
    assert error.value.file == str(folder / name)


def test_a_damaged_line_of_the_answers_is_named(tmp_path):
    folder = optsched.save(optsched.compare(PROBLEM, ["greedy"]), tmp_path / "out", plots=False)
    with (folder / "answers.jsonl").open("a") as answers:
        answers.write("{\n")
    with pytest.raises(optsched.InputError) as error:
        optsched.read_comparison(folder)
    assert (error.value.file, error.value.line) == (str(folder / "answers.jsonl"), 2)


def test_a_sweep_is_read_with_its_runs(tmp_path, small_run):
    table = {"trace": str(tmp_path / "tiny.swf"), "machine": "nodes:10", "policy": ["fcfs", "easy"]}
    write_trace(small_run.trace, tmp_path / "tiny.swf")
    results = optsched.sweep(table, tmp_path / "out", workers=1)
    found = optsched.read_sweep(tmp_path / "out")
    assert found.results.equals(results)
    assert repr(found) == f"<Sweep in {tmp_path / 'out'}: 2 finished runs>"
    assert list(found.runs) == ["fcfs", "easy"]
    assert found.runs["easy"].summary["mean_wait"] == results["mean_wait"][1]
    assert found.runs[results["run"][0]].config["policy"] == "fcfs"
    shown = found._repr_html_()
    assert "<td>easy</td><td>3 jobs</td>" in shown
    assert "<th>mean wait</th>" in shown
    assert results["run"][1] not in shown
    with pytest.raises(KeyError, match="unknown finished run 'easi'; did you mean easy"):
        found.runs["easi"]
    (tmp_path / "out" / "results.parquet").unlink()
    shutil.rmtree(tmp_path / "out" / "runs" / results["run"][0])
    unfinished = optsched.read_sweep(tmp_path / "out")
    assert list(unfinished.runs) == ["easy"]
    with pytest.raises(optsched.InputError, match="no such file; 1 run of the sweep"):
        unfinished.results  # noqa: B018
    assert "1 finished run, 1 left" in unfinished._repr_html_()


def test_damaged_metadata_of_a_table_are_told(tmp_path):
    path = tmp_path / "results.parquet"
    table = pa.table({"run": ["a"]}).replace_schema_metadata({b"pandas": b"\xcd{}"})
    pq.write_table(table, path)
    with pytest.raises(optsched.InputError, match="damaged; expected a Parquet file"):
        read_table(path, ["run"])
