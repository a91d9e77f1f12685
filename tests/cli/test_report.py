"""Pages of folders that are there already."""

from __future__ import annotations

import pytest


@pytest.fixture
def run_folder(optsched, sample, tmp_path):
    folder = tmp_path / "run"
    done = optsched("simulate", sample, "--jobs", "1:50", "--no-plots", "-o", folder)
    assert done.returncode == 0, done.stderr
    assert not (folder / "report.html").exists()
    return folder


def test_pages_of_several_folders_are_written_and_named(optsched, example, run_folder, tmp_path):
    comparison = tmp_path / "comparison"
    done = optsched("compare", example, "--solvers", "greedy", "-o", comparison)
    assert done.returncode == 0, done.stderr
    (comparison / "report.html").unlink()
    done = optsched("report", run_folder, comparison)
    assert (done.returncode, done.stderr) == (0, "")
    pages = [run_folder / "report.html", comparison / "report.html"]
    assert done.stdout.splitlines() == list(map(str, pages))
    assert "50 of 50 jobs finished" in pages[0].read_text()
    assert "1 snapshot" in pages[1].read_text()
    before = [page.read_bytes() for page in pages]
    assert optsched("report", run_folder, comparison).returncode == 0
    assert [page.read_bytes() for page in pages] == before


def test_what_is_neither_is_refused_before_anything_is_written(optsched, run_folder, tmp_path):
    for wrong, what in (
        (tmp_path, "not a folder that optsched wrote"),
        (tmp_path / "none", "not a folder"),
    ):
        done = optsched("report", run_folder, wrong)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr == (
            f"optsched: {wrong}: {what}; expected that of a run (run.json)"
            " or a comparison (comparison.json) or a comparison of runs (runs.json)"
            " or a sweep (sweep.json) or effects (effects.json) or a study (study.json)\n"
        )
    assert not (run_folder / "report.html").exists()


def test_a_damaged_folder_gets_one_line(optsched, run_folder):
    (run_folder / "summary.json").write_text("{")
    done = optsched("report", run_folder)
    assert done.returncode == 1
    assert done.stderr.startswith(f"optsched: {run_folder / 'summary.json'}, line 1: not JSON")
    assert len(done.stderr.splitlines()) == 1


def test_a_damaged_table_gets_one_line(optsched, run_folder):
    table = run_folder / "jobs.parquet"
    for damaged in (
        b"",
        b"PAR1",
        table.read_bytes()[:-200],
        table.read_bytes().replace(b"\x15", b"\1"),
    ):
        table.write_bytes(damaged)
        done = optsched("report", run_folder)
        told = f"optsched: {table}: damaged; expected a Parquet file\n"
        assert (done.returncode, done.stderr) == (1, told)


def test_a_report_of_nothing_is_wrong_usage(optsched):
    assert optsched("report").returncode == 2
