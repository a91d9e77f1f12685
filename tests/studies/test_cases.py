"""Studies whose problems are solved without a sweep: their cases, kept and solved once."""

from __future__ import annotations

import json
import os

import pytest

from optsched import study
from optsched.cli import INTERRUPTED
from optsched.cli import run as optsched

CODE = """
from functools import partial
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def files(plan, folders):
    return [HERE / "data"]


def cases(plan, folders):
    sizes = {"three": 3, "five": 5}
    return {name: partial(solve, name, size) for name, size in sizes.items()}


def solve(name, placed):
    with (HERE / "solved").open("a") as file:
        file.write(f"{name} ")
    yield {"jobs": placed, "share": np.float64(1 / placed), "bound": np.nan}
    if (HERE / f"interrupt-{name}").exists():
        raise KeyboardInterrupt


def values(runs, claims):
    return {"placed": int(runs["jobs"].sum())}


def tables(runs, claims):
    return {"answers": runs}
"""


@pytest.fixture
def solves(tmp_path):
    """Return the folder of a study of two cases, which notes in `solved` those that it solves."""
    folder = tmp_path / "solves"
    folder.mkdir()
    files = {"plan.toml": 'title = "a"\npackages = ["numpy"]\n', "data": "1"}
    page = "# Solved\n\n8<!--placed--> jobs.\n"
    for name, text in (files | {"study.py": CODE, "page.md": page}).items():
        (folder / name).write_text(text)
    return folder


def solved(folder):
    names = (folder / "solved").read_text().split()
    (folder / "solved").unlink()
    return sorted(names, reverse=True)


def results(folder):
    files = (folder / "results").iterdir()
    return {file.name: file.read_bytes() for file in files if file.is_file()}


def test_a_study_may_solve_problems_in_place_of_a_sweep(solves, tmp_path):
    answers = study(solves, tmp_path / "first").tables["answers"]
    assert answers.columns.tolist() == ["jobs", "share", "bound"]
    assert answers["share"].tolist() == [1 / 3, 1 / 5]
    made = results(tmp_path / "first")
    assert {"optsched", "numpy"} <= json.loads(made["about.json"])["versions"].keys()
    study(solves, tmp_path / "second")
    assert results(tmp_path / "second") == made


def test_a_study_of_problems_that_was_stopped_solves_the_others_alone(solves, tmp_path, capsys):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    study(solves, whole)
    assert solved(solves) == ["three", "five"]
    (solves / "interrupt-five").touch()
    command = ["study", str(solves), "-o", str(stopped), "--workers", "1"]
    assert optsched(command) == INTERRUPTED
    said = "interrupted with 1 case left; the same command resumes the study"
    assert said in capsys.readouterr().err
    assert [file.name for file in (stopped / "cases").iterdir()] == ["three.json"]
    (solves / "interrupt-five").unlink()
    assert optsched(command) == 0
    assert solved(solves) == ["three", "five", "five"]
    assert results(stopped) == results(whole)
    assert optsched(command) == 0
    assert "2 cases, 0 to do" in capsys.readouterr().err
    assert not (solves / "solved").exists()


def test_a_case_is_solved_again_if_its_file_is_damaged_or_what_it_rests_on_has_changed(
    solves, tmp_path, caplog
):
    study(solves, tmp_path / "out")
    solved(solves)
    file = tmp_path / "out" / "cases" / "five.json"
    os.truncate(file, 20)
    study(solves, tmp_path / "out")
    assert solved(solves) == ["five"]
    assert f"{file} is damaged; the case is solved again" in caplog.text
    file.write_text(file.read_text().replace('"numpy": "', '"numpy": "0.'))  # another version
    study(solves, tmp_path / "out")
    assert solved(solves) == ["five"]
    for changed, text in (("plan.toml", 'title = "b"\n'), ("data", "2")):
        (solves / changed).write_text(text)
        study(solves, tmp_path / "out")
        assert solved(solves) == ["three", "five"]
