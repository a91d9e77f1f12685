"""Runs and comparisons that are read from their folders."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import optsched
from optsched import InputError
from optsched.folders import read_table
from optsched.models import WindowMKP
from optsched.traces.reading import write_trace
from report.looks import change_json, contents

pytestmark = pytest.mark.usefixtures("without_png")

PROBLEM = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])


@pytest.fixture(params=["interrupted", "migration", "matrix", "window"])
def run(request, interrupted_run, boxes_run, make_trace):
    many = make_trace(*((9 * n, 60, 60, 1 + n % 5) for n in range(20)))
    return {
        "interrupted": lambda: interrupted_run,
        "migration": boxes_run,
        "matrix": lambda: optsched.simulate(many, "matrix:8", "gang", journal=True),
        "window": lambda: optsched.simulate(many, "nodes:8", "window", journal=True),
    }[request.param]()


@pytest.fixture
def folder(small_run, tmp_path):
    """Return the folder of a run without pictures."""
    return optsched.save(small_run, tmp_path / "run", plots=False)


@pytest.fixture
def compared(tmp_path):
    """Return the folder of a comparison without pictures."""
    found = optsched.compare(PROBLEM, ["greedy"])
    return optsched.save(found, tmp_path / "compared", plots=False)


def test_a_run_that_was_read_is_saved_as_it_was(run, tmp_path):
    first = optsched.save(run, tmp_path / "first")
    again = optsched.read_run(first)
    assert again.summary == run.summary
    assert again.jobs.equals(run.jobs)
    assert again.schedule.migrations == tuple(run.schedule.migrations)
    assert dir(again.plot) == dir(run.plot)
    assert contents(optsched.save(again, tmp_path / "second")) == contents(first)


def test_what_a_folder_does_not_have_is_said(folder):
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


def test_a_run_without_tables_has_its_summary(small_run, folder):
    for file in folder.glob("*.parquet"):
        file.unlink()
    run = optsched.read_run(folder)
    assert run.summary == small_run.summary
    assert "mean wait" in run._repr_html_()
    with pytest.raises(InputError, match=r"jobs\.parquet: no such file; the run was saved with"):
        run.jobs  # noqa: B018
    with pytest.raises(InputError, match=r"decisions\.parquet: no such file"):
        run.decisions  # noqa: B018


def test_a_comparison_that_was_read_is_saved_as_it_was(tmp_path):
    comparison = optsched.compare(PROBLEM, ["greedy", "branch-and-bound"])
    first = optsched.save(comparison, tmp_path / "first")
    again = optsched.read_comparison(first)
    assert again.results.equals(comparison.results)
    assert again.config == comparison.config
    assert again.answers == comparison.answers
    assert contents(optsched.save(again, tmp_path / "second")) == contents(first)


def test_a_comparison_of_an_earlier_version_has_no_refusals(compared):
    change_json(compared / "comparison.json", lambda record: record.pop("refusals"))
    assert optsched.read_comparison(compared).refusals == ()


@pytest.mark.parametrize(
    ("read", "kind", "marker"),
    [
        (optsched.read_run, "a run", "run.json"),
        (optsched.read_comparison, "a comparison", "comparison.json"),
        (optsched.read_sweep, "a sweep", "sweep.json"),
    ],
)
def test_another_folder_is_refused(read, kind, marker, tmp_path):
    expected = f"expected the folder of {kind}"
    for folder, told in (
        (tmp_path, f"{tmp_path}: holds no {marker}; {expected}"),
        (tmp_path / "nothing", f"{tmp_path / 'nothing'}: no such folder; {expected}"),
        (5, f"folder: 5; {expected}"),
    ):
        with pytest.raises(InputError) as error:
            read(folder)
        assert told in str(error.value)


@pytest.mark.parametrize("name", ["run.json", "summary.json", "jobs.parquet"])
def test_a_damaged_file_is_named(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes()[:-9])
    with pytest.raises(InputError) as error:
        optsched.read_run(folder).jobs  # noqa: B018
    assert error.value.file == str(folder / name)


def test_a_damaged_line_of_the_answers_is_named(compared):
    with (compared / "answers.jsonl").open("a") as answers:
        answers.write("{\n")
    with pytest.raises(InputError) as error:
        optsched.read_comparison(compared)
    assert (error.value.file, error.value.line) == (str(compared / "answers.jsonl"), 2)


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


def test_damaged_metadata_of_a_table_are_told(tmp_path):
    path = tmp_path / "results.parquet"
    table = pa.table({"run": ["a"]}).replace_schema_metadata({b"pandas": b"\xcd{}"})
    pq.write_table(table, path)
    with pytest.raises(InputError, match="damaged; expected a Parquet file"):
        read_table(path, ["run"])
