from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from optsched import registry
from optsched.cli import doctor_command
from optsched.content import bundled
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
def test_every_exact_solver_gives_15_for_the_papers_example(solver, optsched, example):
    if registry.solvers[solver].installed_version() is None:
        pytest.skip(f"{registry.solvers[solver].requires} is not installed")
    done = optsched("solve", example, "--solver", solver, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(answer) >= KEYS
    assert (answer["status"], answer["objective"], answer["bound"]) == ("optimal", 15, 15)
    assert (answer["gap"], answer["verified"], answer["violations"]) == (0, True, [])
    assert done.stderr == ""


def test_the_answer_is_told_in_words(optsched, example):
    done = optsched("solve", example)
    assert done.returncode == 0
    lines = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    assert lines["status"].strip() == "optimal"
    assert lines["slot 1-3 (3)"].strip() == "C (3)"
    assert lines["slot 6-11 (6)"].strip() == "A (6)"
    assert lines["slot 15-20 (6)"].strip() == "B (4) E (2)"
    assert lines["not placed"].strip() == "D (1)"


def test_the_answer_is_written_to_a_file(optsched, example, tmp_path):
    answer = tmp_path / "answer.json"
    assert optsched("solve", example, "-o", answer, "--hint", "greedy").returncode == 0
    assert json.loads(answer.read_text())["objective"] == 15
    assert optsched("solve", example, "-o", tmp_path / "no" / "answer.json").returncode == 1


def test_the_solution_is_drawn(optsched, example, tmp_path):
    pictures = [tmp_path / "solution.svg", tmp_path / "solution.png"]
    for picture in pictures:
        assert optsched("solve", example, "--picture", picture).returncode == 0
    assert pictures[0].read_text().startswith("<?xml")
    assert pictures[1].read_bytes().startswith(b"\x89PNG")
    assert sorted(tmp_path.iterdir()) == sorted(pictures)


def test_a_picture_that_cannot_be_is_told(optsched, example, tmp_path):
    done = optsched("solve", example, "--picture", tmp_path / "solution.pdf")
    assert (done.returncode, done.stdout) == (1, "")
    assert "expected the suffix .svg or .png" in done.stderr
    done = optsched("solve", example, "--picture", tmp_path / "no" / "solution.svg")
    assert done.returncode == 1
    assert "cannot be written" in done.stderr


def test_a_snapshot_with_three_mistakes_has_all_three_named(optsched, tmp_path):
    wrong = {"kind": "window-mkp", "weights": [3, -1], "capacities": "six", "profits": [1, 2, 3]}
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(wrong))
    done = optsched("solve", path)
    assert done.returncode == 1
    for part in (str(path), "3 mistakes", "weights[1]: -1", "capacities", "profits: 3 values"):
        assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["solve", "absent.json"], 1, "absent.json: no such file"),
        (["solve", "."], 1, "is a folder"),
        (["solve", "{example}", "--solver", "cpsat"], 1, "did you mean cp-sat"),
        (
            ["solve", "{example}", "--solver", "xpress"],
            1,
            "of window-mkp problems; known: best-first",
        ),
        (["solve", "{example}", "--time-limit", "0"], 1, "expected a number above 0"),
        (["solve", "{example}", "--time-limit", "soon"], 2, "time-limit"),
        (["solve", "{example}", "--sovler", "cbc"], 2, "--sovler"),
        (["solve"], 2, "SNAPSHOT"),
        (["snapshot", "check"], 2, "SNAPSHOTS"),
        (["compare", "-o", "folder"], 2, "SNAPSHOTS"),
        (["trace", "look"], 2, "Unknown command"),
        (["solev", "{example}"], 2, "solve"),
        (["snapshot", "check", "absent.json"], 1, "no such file"),
        (["list", "solver"], 2, "solvers"),
    ],
)
def test_wrong_input_gets_one_clear_line(arguments, code, words, optsched, example):
    done = optsched(*(argument.format(example=example) for argument in arguments))
    assert done.returncode == code
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_budget_too_small_for_a_solution_exits_3(optsched, tmp_path):
    import random

    weights = [random.Random(7).randint(1, 99) for _ in range(400)]
    path = tmp_path / "large.json"
    path.write_text(
        json.dumps({"kind": "window-mkp", "weights": weights, "capacities": [500] * 25})
    )
    done = optsched("solve", path, "--solver", "cp-sat", "--work-limit", "1e-9", "--json")
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["limit"]) == ("no-solution", "work")
    assert done.returncode == 3


def test_snapshots_are_shown_checked_and_exported(optsched, example, tmp_path):
    shown = optsched("snapshot", "show", example)
    assert "15 variables, 8 rows" in shown.stdout
    assert re.search(r"known solution\s+slot 1-3 \(3\)\s+C \(3\)", shown.stdout)
    checked = optsched("snapshot", "check", example)
    assert (checked.returncode, checked.stdout) == (0, f"{example}: good\n")
    wrong = json.loads(example.read_text())
    wrong["known"]["objective"] = 14
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(wrong))
    (tmp_path / "good.json").write_bytes(example.read_bytes())
    checked = optsched("snapshot", "check", tmp_path)
    assert checked.returncode == 1
    reports = "the snapshot's known value reports 14 for a solution of 15"
    assert checked.stderr == f"optsched: {path}: {reports}\n"
    assert checked.stdout == f"{tmp_path / 'good.json'}: good\n"
    for suffix in ("lp", "mps", "pb.txt"):
        written = tmp_path / f"example.{suffix}"
        assert optsched("snapshot", "export", example, "-o", written).returncode == 0
        assert written.stat().st_size > 100


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        ({"objective": 14, "bound": 16}, "14, bound 16"),
        ({"objective": 15, "bound": 15}, "15"),
        ({"objective": 15}, "15"),
    ],
)
def test_known_values_are_shown(known, shown, optsched, example, tmp_path):
    written = json.loads(example.read_text()) | {"known": known}
    file = tmp_path / "known.json"
    file.write_text(json.dumps(written))
    done = optsched("solve", file)
    assert done.returncode == 0
    assert re.search(r"^best known +(.*)$", done.stdout, re.MULTILINE)[1] == shown


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ({"objective": 14, "bound": 14}, "the snapshot states the bound 14; branch-and-bound"),
        ({"objective": 16}, "states the objective 16; branch-and-bound claims the bound 15"),
        ({"solution": {"slot_of_job": [1, 1, 1, 1, 1]}}, "infeasible solution: capacity: slot 1"),
    ],
)
def test_a_file_whose_claims_are_wrong_is_told(known, told, optsched, example, tmp_path):
    written = json.loads(example.read_text()) | {"known": known}
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(written))
    done = optsched("solve", path, "--json")
    answer = json.loads(done.stdout)
    assert (answer["objective"], answer["verified"]) == (15, True)
    [contradiction] = answer["contradictions"]
    assert told in contradiction
    assert done.stderr == f"optsched: {path}: {contradiction}\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("solution", "code", "told"),
    [
        ({"start": 0, "processes": [1]}, 0, "is wrong: processes: expected a number of processes"),
        ([1], 1, "known solution: expected an object"),
    ],
)
def test_a_known_solution_that_is_wrong_is_told(solution, code, told, optsched, tmp_path):
    example = bundled("models") / "threshold-allocation" / "worked-example.json"
    written = json.loads(example.read_text()) | {"known": {"solution": solution}}
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(written))
    shown = optsched("snapshot", "show", path)
    assert shown.returncode == code
    assert told in shown.stdout + shown.stderr
    assert "Traceback" not in shown.stderr


def test_known_values_of_the_wrong_form_are_refused(optsched, example, tmp_path):
    for known, told in (
        ({"objective": "15"}, "known objective: '15'; expected an integer"),
        ({"solution": {"slot_of_job": [0]}}, "slot_of_job: expected slot numbers from 1"),
    ):
        path = tmp_path / "wrong.json"
        path.write_text(json.dumps(json.loads(example.read_text()) | {"known": known}))
        for command in ("solve", "snapshot show", "snapshot check"):
            done = optsched(*command.split(), path)
            assert done.returncode == 1
            assert done.stderr.startswith(f"optsched: {path}, {told}")


def test_the_doctor_finds_every_solver_in_health(optsched):
    done = optsched("doctor")
    assert done.returncode == 0, done.stdout
    for solver in registry.solvers:
        assert solver in done.stdout
    report = json.loads(optsched("doctor", "--json").stdout)
    assert list(dict.fromkeys(row["solver"] for row in report["solvers"])) == list(registry.solvers)
    there = [row for row in report["solvers"] if row["version"] is not None]
    tried = [row for row in there if row["problem"] is not None]
    # which solves models of one function, of which optsched has none
    assert [row["solver"] for row in there if row not in tried] == ["in-order"]
    assert {row["works"] for row in tried} == {True}
    models = {row["problem"].partition("/")[0] for row in tried}
    assert models | {"integer-program"} == set(registry.models)  # no solver is for it alone


def test_the_doctors_problem_is_one_for_solvers_that_try_everything():
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


def test_several_snapshots_are_for_compare(optsched):
    files = sorted(map(str, bundled("models").glob("migration/*-*.json")))
    assert len(files) > 2
    done = optsched("solve", *files, "--solver", "single-victim")
    assert done.returncode == 2
    assert done.stderr == "optsched: solve expects one snapshot; compare takes several\n"


@pytest.mark.parametrize("arguments", [[], ["trace"], ["snapshot"]])
def test_half_a_command_gets_the_help_as_wrong_usage(arguments, optsched):
    done = optsched(*arguments)
    assert done.returncode == 2
    assert "Usage: optsched " + " ".join([*arguments, "COMMAND"]) in done.stdout


@pytest.mark.parametrize(
    "what", ["policies", "solvers", "profiles", "models", "machines", "formats"]
)
def test_everything_that_has_a_name_is_listed(what, optsched):
    listed = json.loads(optsched("list", what, "--json").stdout)[what]
    assert listed
    plain = optsched("list", what).stdout
    assert all(next(iter(row.values())) in plain for row in listed)


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [["list", "solvers"], ["solve", "{example}"], ["--help"], []])
def test_output_that_cannot_be_written_is_told(arguments, example):
    command = [sys.executable, "-m", "optsched", *(a.format(example=example) for a in arguments)]
    with FULL.open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "optsched: output: No space left on device\n"


def test_no_output_at_all_is_no_error(example):
    command = shlex.join([sys.executable, "-m", "optsched", "solve", str(example)])
    done = subprocess.run(
        f"{command} >&-", shell=True, stderr=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "os.kill(os.getpid(), signal.SIGINT)"])
def test_an_interrupt_while_packages_load_is_no_traceback(raised, example, tmp_path):
    """A compiled module turns the interrupt into an error of its own."""
    program = "raise KeyboardInterrupt"
    if raised != "KeyboardInterrupt":
        program = f"""
import os, signal
try:
    {raised}
except KeyboardInterrupt:
    raise ImportError("initialization failed")
"""
    (tmp_path / "cyclopts.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "optsched", "solve", example],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "optsched: interrupted; nothing was written\n")


def test_a_snapshot_may_come_through_a_pipe(example):
    command = [sys.executable, "-m", "optsched", "solve", "/dev/stdin", "--json"]
    done = subprocess.run(command, input=gzip.compress(example.read_bytes()), capture_output=True)
    assert json.loads(done.stdout)["objective"] == 15


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


def test_an_interrupted_comparison_is_written_with_what_it_has(optsched, tmp_path):
    (tmp_path / "stopped.py").write_text(STOPPED)
    words = "compare window-mkp --solvers greedy,stopped.py -o kept"
    done = optsched(*words.split(), cwd=tmp_path)
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
