"""The fuzzer: a small fixed part of it, and that it notices what it is there for."""

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from fuzz import options
from fuzz.campaign import main
from fuzz.forks import Bounds, Ended, Running
from fuzz.oracle import contents, judge, strict_json
from fuzz.target import TARGETS, Case, make
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
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(TESTS), str(TESTS.parent)]))
    words = ["--seed", "1", "--cases", "1", "--targets", ",".join(targets)]
    command = [sys.executable, "-m", "fuzz", *words, "--keep", tmp_path / "k"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"\n{name} " in done.stdout for name in targets)


def test_what_is_there_is_not_removed_for_failures(tmp_path, monkeypatch, capsys):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for keep in (tmp_path, mine):
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
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "run.json").write_text('{"seed": Infinity}')
    written = Case(("simulate", "t.swf", "-o", "run.json"), ("run.json",))
    assert kinds(WELL, {}, contents(folder), written, folder) == {"json"}
    assert strict_json("[1, 2.5]") == [1, 2.5]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return the function that runs a case whose command is another function."""

    def ended(main, bounds=BOUNDS):
        monkeypatch.setattr("optsched.cli.main", main)
        (tmp_path / "a" / "case").mkdir(parents=True)
        running = Running(CASE, tmp_path / "a", bounds)
        while (ended := running.ended()) is None:
            time.sleep(0.02)
        return ended

    return ended


def test_a_case_has_streams_a_folder_and_an_exit_code_of_its_own(run, tmp_path):
    def main(arguments):
        print(*arguments)
        print("said", file=sys.stderr)
        Path("here").touch()
        sys.exit(3)

    ended = run(main)
    assert (ended.code, ended.out, ended.err) == (3, "trace clean t.swf -o out.swf\n", "said\n")
    assert (tmp_path / "a" / "case" / "here").exists()


def for_ever(_arguments):
    while True:
        pass


def leave_behind(_arguments):
    if os.fork() == 0:
        time.sleep(100)


@pytest.mark.parametrize(
    ("main", "bounds", "kind"),
    [
        (for_ever, BOUNDS, "killed"),
        (lambda _arguments: time.sleep(100), Bounds(patience=0.3), "hang"),
        (leave_behind, BOUNDS, "left behind"),
        (lambda _arguments: bytearray(2 * BOUNDS.memory), BOUNDS, "traceback"),
    ],
    ids=["endless computation", "endless wait", "leaves a process behind", "takes much memory"],
)
def test_a_case_that_goes_too_far_is_ended_and_noticed(main, bounds, kind, run):
    assert kinds(run(main, bounds)) == {kind}


def test_a_case_changes_nothing_outside_its_folder(run, tmp_path):
    other = tmp_path / "other"
    other.write_text("of somebody")

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

    assert run(main).out == "OutsideError\n" * 6
    assert other.read_text() == "of somebody"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "other"]


def test_a_case_is_the_same_for_the_same_seed(tmp_path):
    made = []
    for number in (5, 5, 6):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append((make("mkp-text", 1, number, folder, None), contents(folder)))
    assert made[0] == made[1] != made[2]


def test_a_word_that_leads_out_of_the_folder_is_refused(tmp_path, monkeypatch):
    for word in ("/dev/full", "-o/dev/full", "--output=/etc/x", "../x"):
        monkeypatch.setitem(TARGETS, "evil", lambda *_given, word=word: Case((word,)))
        with pytest.raises(ValueError, match="leads out of the folder"):
            make("evil", 1, 1, tmp_path, None)


def test_every_option_of_every_command_is_fuzzed():
    for command in options.commands():
        typed = [options.typed_at_random(Random(n), command).arguments for n in range(100)]
        words = {word.partition("=")[0] for case in typed for word in case}
        for argument in command.arguments:
            assert words.issuperset(argument.options), command.words


def test_every_setting_of_every_policy_is_fuzzed():
    for policy in map(registry.policies.__getitem__, registry.policies):
        fields = {field.name for field in settings_of(policy)}
        drawn = range(100) if fields else ()
        given = {options.setting(Random(n), policy) for n in drawn}
        assert fields <= {word.partition("=")[0] for word in given}
