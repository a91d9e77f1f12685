"""Pages of folders that are there already."""

from __future__ import annotations

import pytest


@pytest.fixture
def run_folder(optsched, tmp_path):
    folder = tmp_path / "run"
    optsched("simulate sample-256 --jobs 1:50 --no-plots -o", folder)
    assert not (folder / "report.html").exists()
    return folder


def test_pages_of_several_folders_are_written_and_named(optsched, example, run_folder, tmp_path):
    comparison = tmp_path / "comparison"
    optsched("compare", example, "--solvers greedy -o", comparison)
    (comparison / "report.html").unlink()
    done = optsched("report", run_folder, comparison)
    pages = [run_folder / "report.html", comparison / "report.html"]
    assert (done.out.splitlines(), done.err) == (list(map(str, pages)), "")
    assert "50 of 50 jobs finished" in pages[0].read_text()
    assert "1 snapshot" in pages[1].read_text()
    before = [page.read_bytes() for page in pages]
    optsched("report", run_folder, comparison)
    assert [page.read_bytes() for page in pages] == before


@pytest.mark.parametrize(
    "damage", [lambda table: b"PAR1", lambda table: table.replace(b"\x15", b"\1")]
)
def test_a_damaged_folder_gets_one_line(damage, optsched, run_folder):
    table, summary = run_folder / "jobs.parquet", run_folder / "summary.json"
    table.write_bytes(damage(table.read_bytes()))
    told = f"optsched: {table}: damaged; expected a Parquet file\n"
    assert optsched("report", run_folder, code=1).err == told
    summary.write_text("{")
    [told] = optsched("report", run_folder, code=1).err.splitlines()
    assert told.startswith(f"optsched: {summary}, line 1: not JSON")
