"""Messages stay one clean line whatever is in names and files; what says it is JSON is JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from optsched import cli
from optsched.cli import terminal
from optsched.files import write_json

ODD = "odd\nname\x1b[1m\u202e日本"
JOB = "1 0 -1 5 4 -1 -1 4 20 -1 1 1 -1 -1 -1 -1 -1 -1"
SHOWN = r"odd\nname\x1b[1m\u202e日本"


@pytest.mark.parametrize(
    "words",
    [
        ["trace", "info", ODD],
        ["solve", ODD],
        ["solve", "none.json", f"--{ODD}"],
        ["sweep", ODD, "-o", "out"],
    ],
)
def test_a_message_is_one_clean_line(capsys, words):
    assert cli.run(words) in (cli.BAD_INPUT, cli.USAGE)
    [line] = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert "日本" in line


def test_names_are_printed_in_one_line_as_well(optsched, tmp_path, example):
    snapshot = Path(f"{ODD}.json")
    shutil.copy(example, tmp_path / snapshot)
    assert optsched("snapshot check", snapshot, cwd=tmp_path).out == f"{SHOWN}.json: good\n"
    (tmp_path / snapshot).write_text("{")
    [line] = optsched("snapshot check", snapshot, cwd=tmp_path, code=1).err.splitlines()
    assert line.startswith(f"optsched: {SHOWN}.json, line 1: not JSON")


def test_the_texts_of_a_header_do_not_reach_the_terminal_as_they_are(optsched, tmp_path):
    trace = tmp_path / "a.swf"
    trace.write_text(f"; Computer: \x1b]0;PWN\x07 日本\t2\n; MaxProcs: 4\n{JOB}\n")
    page = optsched("trace info", trace).out
    assert r"\x1b]0;PWN\x07 日本 2" in page
    assert all(line.isprintable() for line in page.splitlines())


@pytest.mark.parametrize("number", [float("nan"), -float("inf"), np.float64("nan")])
def test_what_json_cannot_hold_is_null(capsys, tmp_path, number):
    terminal.print_json({"a": [number]})
    assert json.loads(capsys.readouterr().out) == {"a": [None]}
    write_json(tmp_path / "a.json", {"a": [number, 1.5]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": [None, 1.5]}


def test_that_nothing_was_done_is_no_success(optsched, tmp_path):
    (tmp_path / "wide.csv").write_text("submit,runtime,processors\n0,5,4\n1,5,4\n")
    words = "simulate wide.csv --machine nodes:1 --no-plots --policy"
    optsched(words, "easy -o one", cwd=tmp_path, code=cli.BAD_INPUT)
    done = optsched(words, "easy,fcfs -o two", cwd=tmp_path, code=cli.BAD_INPUT)
    assert "2 jobs rejected" in done.err
    words = "compare yang-2014-example --solvers highs --time-limit 1e-9 -o none"
    optsched(words, cwd=tmp_path, code=cli.NO_SOLUTION)
