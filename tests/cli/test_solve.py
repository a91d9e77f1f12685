"""``optsched solve``, ``snapshot``, ``compare`` and ``doctor``, and the streams of all commands."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from optsched import registry
from optsched.cli import doctor_command
from optsched.solvers.result import Result, Status
from optsched.solvers.solver import Solver
from optsched.testing.contract import is_small

EXACT = [
    name
    for name in registry.solvers
    if registry.solvers[name].exact and registry.solvers[name].models in (None, {"window-mkp"})
]
KEYS = {
    "kind", "solver", "status", "objective", "bound", "gap", "seconds", "verified", "violations",
    "solution",
}  # fmt: skip


@pytest.mark.parametrize("solver", EXACT)
def test_every_exact_solver_gives_15_for_the_papers_example(solver, optsched):
    if registry.solvers[solver].installed_version() is None:
        pytest.skip(f"{registry.solvers[solver].requires} is not installed")
    done = optsched("solve yang-2014-example --solver", solver, "--json")
    answer = json.loads(done.out)
    assert set(answer) >= KEYS
    assert (answer["status"], answer["objective"], answer["bound"]) == ("optimal", 15, 15)
    assert (answer["gap"], answer["verified"], answer["violations"]) == (0, True, [])
    assert done.err == ""


def test_the_answer_is_told_in_words(optsched):
    done = optsched("solve yang-2014-example")
    lines = dict(re.split("  +", line, maxsplit=1) for line in done.out.splitlines())
    assert lines["status"] == "optimal"
    assert lines["slot 1-3 (3)"] == "C (3)"
    assert lines["slot 6-11 (6)"] == "A (6)"
    assert lines["slot 15-20 (6)"] == "B (4) E (2)"
    assert lines["not placed"] == "D (1)"


def test_the_answer_is_written_and_drawn(optsched, tmp_path):
    optsched("solve yang-2014-example --hint greedy -o", tmp_path / "answer.json")
    assert json.loads((tmp_path / "answer.json").read_text())["objective"] == 15
    for name, start in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG")):
        optsched("solve yang-2014-example --picture", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg", "answer.json"]


def test_a_budget_too_small_for_a_solution_exits_3(optsched, tmp_path):
    weights = [number * number % 99 + 1 for number in range(400)]
    stated = {"kind": "window-mkp", "weights": weights, "capacities": [500] * 25}
    (tmp_path / "large.json").write_text(json.dumps(stated))
    words = "--solver cp-sat --work-limit 1e-9 --json"
    answer = json.loads(optsched("solve", tmp_path / "large.json", words, code=3).out)
    assert (answer["status"], answer["limit"]) == ("no-solution", "work")


def test_snapshots_are_shown_checked_and_exported(optsched, example, tmp_path):
    shown = optsched("snapshot show", example).out
    assert "15 variables, 8 rows" in shown
    assert re.search(r"known solution\s+slot 1-3 \(3\)\s+C \(3\)", shown)
    wrong = json.loads(example.read_text())
    wrong["known"]["objective"] = 14
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    (tmp_path / "good.json").write_bytes(example.read_bytes())
    checked = optsched("snapshot check", tmp_path, code=1)
    reports = "the snapshot's known value reports 14 for a solution of 15"
    assert checked.err == f"optsched: {tmp_path / 'wrong.json'}: {reports}\n"
    assert checked.out == f"{tmp_path / 'good.json'}: good\n"
    for suffix in ("lp", "mps", "pb.txt"):
        optsched("snapshot export", example, "-o", tmp_path / f"a.{suffix}")
        assert (tmp_path / f"a.{suffix}").stat().st_size > 100


@pytest.fixture
def knowing(example, tmp_path):
    """Return a function that writes the example with other known values."""

    def write(known):
        path = tmp_path / "known.json"
        path.write_text(json.dumps(json.loads(example.read_text()) | {"known": known}))
        return path

    return write


@pytest.mark.parametrize(
    ("command", "known", "code", "said"),
    [
        ("solve", {"objective": 14, "bound": 16}, 0, " 14, bound 16\n"),
        ("solve", {"objective": 15}, 0, "best known      15\n"),
        ("snapshot show", {"solution": {"slot_of_job": [0]}}, 1, "expected slot numbers from 1"),
        ("snapshot show", {"solution": {"slot_of_job": [1] * 5}}, 0, "is wrong: capacity: slot 1"),
        ("snapshot show", {"solution": [1]}, 1, "known solution: expected an object"),
    ],
)
def test_known_values_are_shown_and_wrong_ones_told(command, known, code, said, optsched, knowing):
    path = knowing(known)
    done = optsched(command, path, code=code)
    assert said in (done.err if code else done.out)
    assert done.err.startswith(f"optsched: {path}, " if code else "")


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({"objective": 14, "bound": 14}, "the snapshot states the bound 14; branch-and-bound"),
        ({"objective": 16}, "states the objective 16; branch-and-bound claims the bound 15"),
        ({"solution": {"slot_of_job": [1, 1, 1, 1, 1]}}, "infeasible solution: capacity: slot 1"),
    ],
)
def test_a_file_whose_claims_are_wrong_is_told(known, told, optsched, knowing):
    path = knowing(known)
    done = optsched("solve", path, "--json", code=1)
    answer = json.loads(done.out)
    assert (answer["objective"], answer["verified"]) == (15, True)
    [contradiction] = answer["contradictions"]
    assert told in contradiction
    assert done.err == f"optsched: {path}: {contradiction}\n"


def test_the_doctor_finds_every_solver_in_health(optsched):
    shown = optsched("doctor").out
    assert all(solver in shown for solver in registry.solvers)
    report = json.loads(optsched("doctor --json").out)
    assert list(dict.fromkeys(row["solver"] for row in report["solvers"])) == list(registry.solvers)
    there = [row for row in report["solvers"] if row["version"] is not None]
    tried = [row for row in there if row["problem"] is not None]
    # which solves models of one function, of which optsched has none
    assert [row["solver"] for row in there if row not in tried] == ["in-order"]
    assert {row["works"] for row in tried} == {True}
    models = {row["problem"].partition("/")[0] for row in tried}
    assert models | {"integer-program"} == set(registry.models)  # no solver is for it alone
    # the first problem is one for solvers that try everything
    first = next(iter(doctor_command.list_problems().values()))
    assert is_small(first.problem.formulate().program)


def test_the_doctor_says_what_it_cannot_try_and_what_is_wrong():
    class Elsewhere(Solver):
        name = "elsewhere"
        models = frozenset({"another-model"})
        exact = True

        def solve(self, problem, **others):
            return Result(self.name, Status.OPTIMAL, (-1,) * len(problem.weights), 0, 0)

    problems = doctor_command.list_problems()
    row = doctor_command.check(Elsewhere, problems)
    assert (row["works"], row["state"]) == (None, "not tried: it solves no reference snapshot")
    Elsewhere.models = frozenset({"window-mkp"})
    row = doctor_command.check(Elsewhere, problems)
    assert (row["problem"], row["works"]) == ("window-mkp/yang-2014-example", False)
    assert "elsewhere claims that 0 is optimal" in row["state"]


def process(*words, **options):
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "optsched", *words]
    return subprocess.run(command, stderr=subprocess.PIPE, check=False, text=True, **options)


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
@pytest.mark.parametrize("words", [["solve", "yang-2014-example"], ["--help"]], ids=lambda w: w[0])
def test_output_that_cannot_be_written_is_told(words):
    with FULL.open("w") as full:
        done = process(*words, stdout=full)
    assert (done.returncode, done.stderr) == (1, "optsched: output: No space left on device\n")


def test_no_output_at_all_is_no_error():
    done = process("solve", "yang-2014-example", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


COMPILED = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    raise ImportError("initialization failed")
"""
"""A compiled module turns the interrupt into an error of its own."""


@pytest.mark.parametrize("program", ["raise KeyboardInterrupt", COMPILED], ids=["own", "compiled"])
def test_an_interrupt_while_packages_load_is_no_traceback(program, tmp_path):
    (tmp_path / "cyclopts.py").write_text(program)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = process("solve", "yang-2014-example", env=os.environ | {"PYTHONPATH": path})
    assert (done.returncode, done.stderr) == (130, "optsched: interrupted; nothing was written\n")


STOPPED = """
import os, signal, time
from optsched.extend import Result, Solver, Status

class Stopped(Solver):
    models = frozenset({"window-mkp"})
    called = 0

    def solve(self, problem, **others):
        Stopped.called += 1
        if Stopped.called > 2:
            os.kill(os.getppid(), signal.SIGTERM)
            os.kill(os.getppid(), signal.SIGINT)  # of one interrupt, to a process and to its group
            time.sleep(60)
        return Result(self.name, Status.NO_SOLUTION)
"""


def test_an_interrupted_comparison_is_written_with_what_it_has(tmp_path):
    (tmp_path / "stopped.py").write_text(STOPPED)
    words = "compare window-mkp --solvers greedy,stopped.py -o kept"
    done = process(*words.split(), cwd=tmp_path, stdout=subprocess.PIPE)
    assert done.returncode == 130
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:3]] == [
        ["greedy", "1"], ["stopped.py:Stopped", "1"]
    ]  # fmt: skip
    assert done.stderr.splitlines() == [
        "optsched: stopped.py:Stopped: no solution of sample-busy",
        "optsched: interrupted; not compared: subset-sum-50x10, weighted-20x8, weighted-60x12 "
        "and 1 more",
    ]
    assert "The comparison was interrupted" in (tmp_path / "kept" / "report.html").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"stopped.py", "kept"}


LATE = "import atexit, os, signal; atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))"
THREAD = "import threading; threading.Thread(target=threading.Event().wait).start()"


@pytest.mark.parametrize(
    ("code", "told"),
    [(LATE, ""), (THREAD, "optsched: threads of a solver are still running\n")],
    ids=["an interrupt while Python shuts down", "threads that a solver left"],
)
def test_nothing_spoils_the_end_of_a_command(code, told):
    program = f"from optsched.cli import main; {code}; main(['--version'])"
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, check=False, text=True, timeout=60)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, told)


@pytest.mark.parametrize(("reader", "code"), [("reads", 1), ("is gone", 0)])
def test_a_broken_pipe_is_no_error_only_if_the_reader_of_stdout_is_gone(
    reader, code, monkeypatch, capfd
):
    from optsched import cli

    def breaks(_arguments):
        raise BrokenPipeError(32, "Broken pipe", "another/pipe")

    reading, writing = os.pipe()
    if reader == "is gone":
        os.close(reading)
    monkeypatch.setattr(cli, "_run", breaks)
    monkeypatch.setattr("sys.stdout", os.fdopen(writing, "w"))
    assert cli.run(["list"]) == code
    told = "optsched: another/pipe: Broken pipe\n" if code else ""
    assert capfd.readouterr().err == told
