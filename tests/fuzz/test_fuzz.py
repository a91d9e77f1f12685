"""The fuzzer: a small fixed part of it, and that it notices what it is there for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from fuzz import options
from fuzz.commands import commands
from fuzz.forks import Bounds, Ended, Running
from fuzz.oracle import contents, judge, strict_json
from fuzz.runner import TARGETS, main
from fuzz.target import Case, make
from optsched import registry
from optsched.settings import settings_of

TESTS = Path(__file__).parents[1]
BOUNDS = Bounds(seconds=1, patience=60.0)
CASE = Case(("trace", "clean", "t.swf", "-o", "out.swf"), ("out.swf",))
WELL = Ended(0, "", "", 0.1)
REFUSED = Ended(1, "", "optsched: t.swf, line 3: 'x'; expected a number\n", 0.1)


KINDS = [
    *("swf", "snapshot-window-mkp", "program-file", "slurm-capture", "sweep-file", "options"),
    *("settings", "outputs", "run-folder"),
]
"""A target of each kind; `make fuzz`, which `make test-all` calls, tries them all for a minute."""


@pytest.mark.parametrize(
    "targets",
    [KINDS, pytest.param([name for name in TARGETS if name not in KINDS], marks=pytest.mark.long)],
    ids=["one of each kind", "others"],
)
def test_a_fixed_part_of_all_targets_passes(targets, tmp_path):
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    words = (
        "--seed",
        "1",
        "--cases",
        "1",
        "--targets",
        ",".join(targets),
        "--keep",
        tmp_path / "k",
    )
    environment = dict(os.environ, PYTHONPATH=path)
    command = [sys.executable, "-m", "fuzz", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"\n{name} " in done.stdout for name in targets)


@pytest.mark.parametrize("what", ["a folder", "a file"])
def test_what_is_there_is_not_removed_for_failures(what, tmp_path, monkeypatch, capsys):
    keep = tmp_path / "k"
    if what == "a folder":
        keep.mkdir()
    mine = keep / "mine" if what == "a folder" else keep
    mine.write_text("mine")
    monkeypatch.setattr(sys, "argv", ["fuzz", "--cases", "0", "--keep", str(keep)])
    with pytest.raises(SystemExit):
        main()
    assert "is not an empty folder" in capsys.readouterr().err
    assert mine.read_text() == "mine"


def kinds(ended, before=None, after=None, case=CASE, folder=Path("nowhere/case")):
    found = judge(case, ended, before or {}, after or {}, folder, BOUNDS)
    return {failure.kind for failure in found}


def test_what_is_as_it_should_be_passes():
    file = ("-", "sum")
    assert kinds(WELL, {"t.swf": file}, {"t.swf": file, "out.swf": file}) == set()
    assert kinds(REFUSED, {"t.swf": file}, {"t.swf": file}) == set()
    mistakes = "optsched: w.toml: 2 mistakes\n  - a: missing\n  - b: missing\n"
    assert kinds(REFUSED._replace(err=mistakes)) == set()
    through_a_link = {"out.swf": ("l", "real.swf"), "real.swf": ("-", "old")}
    assert kinds(WELL, through_a_link, through_a_link | {"real.swf": ("-", "new")}) == set()


@pytest.mark.parametrize(
    ("kind", "ended"),
    [
        ("hang", WELL._replace(code=-9, hung=True)),
        ("left behind", WELL._replace(orphans=True)),
        ("killed", WELL._replace(code=-11)),
        ("exit code", WELL._replace(code=7)),
        ("traceback", REFUSED._replace(err="Traceback (most recent call last):\nKeyError: 1\n")),
        ("message", REFUSED._replace(err="")),
        ("message", REFUSED._replace(err="t.swf: bad\n")),
        ("message", REFUSED._replace(err="optsched: t\nx.swf: bad\n")),
        ("message", REFUSED._replace(err="optsched: no end")),
        ("message", REFUSED._replace(err="optsched: \x1b]0;title\x07\n")),
        ("message", WELL._replace(err="/lib/numpy/core.py:12: RuntimeWarning: overflow\n")),
        ("message", WELL._replace(err="optsched: run 1a failed: TypeError: None\n")),
    ],
)
def test_an_end_that_is_not_as_it_should_be_is_noticed(kind, ended):
    assert kinds(ended) == {kind}


@pytest.mark.parametrize(
    ("kind", "ended", "before", "after"),
    [
        ("left behind", REFUSED, {}, {"out.swf": ("-", "sum")}),
        ("left behind", WELL, {}, {".out.swf.host-1.partial": ("-", "sum")}),
        ("replaced", WELL, {"out.swf": ("p", "")}, {"out.swf": ("-", "sum")}),
        ("replaced", WELL, {"out.swf": ("l", "real")}, {"out.swf": ("-", "sum")}),
        ("lost", WELL, {"t.swf": ("-", "sum")}, {}),
        ("outside", WELL, {"t.swf": ("-", "sum")}, {"t.swf": ("-", "other")}),
    ],
)
def test_files_that_are_not_as_they_should_be_are_noticed(kind, ended, before, after):
    assert kinds(ended, before, after) == {kind}


def test_json_that_is_none_is_noticed(tmp_path):
    asked = Case(("solve", "s.json", "--json"))
    for printed in ('{"bound": NaN}', '{"gap": -Infinity}', '{"a": 1, "a": 2}', "", "{} {}"):
        assert kinds(WELL._replace(out=printed), case=asked) == {"json"}
    assert kinds(WELL._replace(out='{"bound": 1e308}'), case=asked) == set()
    unverified = '{"solution": [1], "verified": false}'
    assert kinds(WELL._replace(out=unverified), case=asked) == {"answer"}
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "run.json").write_text('{"seed": Infinity}')
    written = Case(("simulate", "t.swf", "-o", "run.json"), ("run.json",))
    after = contents(tmp_path / "case")
    assert kinds(WELL, {}, after, written, tmp_path / "case") == {"json"}
    assert strict_json("[1, 2.5]") == [1, 2.5]


def run(folder, monkeypatch, main):
    monkeypatch.setattr("optsched.cli.main", main)
    (folder / "case").mkdir()
    running = Running(CASE, folder, BOUNDS)
    while (ended := running.ended()) is None:
        time.sleep(0.02)
    return ended


def test_a_case_has_streams_a_folder_and_an_exit_code_of_its_own(tmp_path, monkeypatch):
    def main(arguments):
        print(*arguments)
        print("said", file=sys.stderr)
        Path("here").touch()
        sys.exit(3)

    ended = run(tmp_path, monkeypatch, main)
    assert (ended.code, ended.out, ended.err) == (3, "trace clean t.swf -o out.swf\n", "said\n")
    assert (tmp_path / "case" / "here").exists()


def test_a_case_that_computes_for_ever_is_ended(tmp_path, monkeypatch):
    def main(_arguments):
        while True:
            pass

    assert kinds(run(tmp_path, monkeypatch, main)) == {"killed"}


def test_a_case_that_waits_for_ever_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "BOUNDS", Bounds(patience=0.3))
    assert kinds(run(tmp_path, monkeypatch, lambda _arguments: time.sleep(100))) == {"hang"}


def test_a_process_that_a_case_leaves_behind_is_noticed(tmp_path, monkeypatch):
    def main(_arguments):
        if os.fork() == 0:
            time.sleep(100)

    assert kinds(run(tmp_path, monkeypatch, main)) == {"left behind"}


def test_a_case_has_little_memory(tmp_path, monkeypatch):
    ended = run(tmp_path, monkeypatch, lambda _arguments: bytearray(2 * BOUNDS.memory))
    assert kinds(ended) == {"traceback"}
    assert "MemoryError" in ended.err


def test_a_case_changes_nothing_outside_its_folder(tmp_path, monkeypatch):
    other, folder = tmp_path / "other", tmp_path / "a"
    other.write_text("of somebody")
    folder.mkdir()

    def main(_arguments):
        Path("inside").touch()
        for change in (
            other.unlink,
            lambda: other.write_text("mine"),
            lambda: Path("inside").rename(other),
            lambda: Path("inside").replace(other),
            lambda: (tmp_path / "new").mkdir(),
            lambda: os.symlink("x", tmp_path / "link"),
        ):
            try:
                change()
            except Exception as error:
                print(type(error).__name__)

    assert run(folder, monkeypatch, main).out == "OutsideError\n" * 6
    assert other.read_text() == "of somebody"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "other"]


def test_a_case_is_the_same_for_the_same_seed(tmp_path):
    made = []
    for number in (5, 5, 6):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        case = make("mkp-text", 1, number, folder, None)
        made.append((case, contents(folder)))
    assert made[0] == made[1] != made[2]


def test_a_word_that_leads_out_of_the_folder_is_refused(tmp_path, monkeypatch):
    for word in ("/dev/full", "-o/dev/full", "--output=/etc/x", "../x"):
        monkeypatch.setitem(TARGETS, "evil", lambda *_given, word=word: Case((word,)))
        with pytest.raises(ValueError, match="leads out of the folder"):
            make("evil", 1, 1, tmp_path, None)


@pytest.mark.parametrize("command", commands(), ids=lambda command: " ".join(command.words))
def test_every_option_of_every_command_is_fuzzed(command):
    typed = [options.typed_at_random(Random(seed), command).arguments for seed in range(100)]
    words = {word.partition("=")[0] for case in typed for word in case}
    for argument in command.arguments:
        assert words.issuperset(argument.options)


def test_every_setting_of_every_policy_is_fuzzed():
    for name in registry.policies:
        fields = {field.name for field in settings_of(registry.policies[name])}
        drawn = range(100) if fields else ()
        given = {options.setting(Random(n), registry.policies[name]) for n in drawn}
        assert fields <= {word.partition("=")[0] for word in given}
