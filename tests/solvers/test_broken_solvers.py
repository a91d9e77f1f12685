"""Broken solvers are named, in one line, and nothing that they say or alter is used."""

import ctypes
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from optsched import Budget, registry, save_snapshot, simulate, solve
from optsched.cli import run as optsched
from optsched.cli.doctor_command import check, list_problems
from optsched.content import bundled
from optsched.errors import InputError, UnknownNameError, one_line
from optsched.models import WindowMKP
from optsched.solvers import separate_process
from optsched.solvers.comparison.claims import choose_contenders, read_entries
from optsched.solvers.result import Incumbent, Result, Status
from optsched.solvers.separate_process import EndedError, SeparateProcess
from optsched.solvers.solver import Solver


def nothing(problem):
    """Return a solution that places no job; it is always feasible."""
    return (-1,) * len(problem.weights)


def says(status=Status.FEASIBLE, solution=nothing, **rest):
    """Return what gives an answer, to be completed with the problem where it is callable."""

    def answer(problem):
        given = solution(problem) if callable(solution) else solution
        return Result("another", status, given, **rest)

    return answer


def returns(value):
    return lambda _: value


def raises(error):
    def fail(_):
        raise error

    return fail


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError("not even its text can be read")


class UnspeakableAnswer:
    def __repr__(self):
        raise RuntimeError("it cannot be shown")


def calls_itself(problem):
    return calls_itself(problem)


def arrays_of(problem):
    return [problem.weights, problem.capacities, problem.profits]


def wrecks_the_arrays(problem):
    for array in arrays_of(problem):
        array.setflags(write=True)
        array[:] = 1 if array is problem.weights else 10**6
    return Result("another", Status.OPTIMAL, (0,) * len(problem.weights), bound=10**9)


def wrecks_the_memory(problem):
    for array in arrays_of(problem):
        ctypes.memset(array.ctypes.data, 0, array.nbytes)
    raise ValueError("and fails")


def sets_the_fields(problem):
    for name in ("weights", "capacities", "profits", "jobs"):
        object.__setattr__(problem, name, None)
    vars(problem).clear()
    raise ValueError("and fails")


WRONG = {
    "overfull": says(solution=lambda p: (0,) * len(p.weights)),
    "too-short": says(solution=lambda p: nothing(p)[1:]),
    "no-such-slot": says(solution=lambda p: (10**6, *nothing(p)[1:])),
    "negative-slot": says(solution=lambda p: (-7, *nothing(p)[1:])),
    "nan-slot": says(solution=lambda p: (math.nan, *nothing(p)[1:])),
    "nested": says(solution=lambda p: ((0, 1),) * len(p.weights)),
    "endless": says(solution=lambda _: itertools.count()),
    "unspeakable-answer": says(solution=lambda _: UnspeakableAnswer()),
    "boasts": says(objective=10**6),
    "understates": says(objective=-1),
    "false-optimum": says(Status.OPTIMAL, bound=10**6),
    "optimum-without-bound": says(Status.OPTIMAL),
    "beaten-bound": says(bound=-5),
    "optimum-of-nothing": says(Status.OPTIMAL, None),
    "feasible-nothing": says(Status.FEASIBLE, None),
    "infeasible-something": says(Status.INFEASIBLE),
    "unsolved-something": says(Status.NO_SOLUTION),
    "better-incumbent": says(incumbents=(Incumbent(0.0, 10**6, None),)),
    "beaten-incumbent": says(incumbents=(Incumbent(0.0, 0, -5),)),
    "back-in-time": says(incumbents=(Incumbent(0.2, 0, None), Incumbent(0.1, 0, None))),
    "incumbent-of-nothing": says(Status.NO_SOLUTION, None, incumbents=(Incumbent(0.0, 0, None),)),
    "wrecks-the-arrays": wrecks_the_arrays,
}
"""Answers that verification refuses."""

FAILED = {
    "value-error": raises(ValueError("ran into a wall\nand another\x1b[31m")),
    "recursion": calls_itself,
    "stop-iteration": lambda _: next(iter(())),
    "system-exit": raises(SystemExit(0)),
    "broken-pipe": raises(BrokenPipeError(32, "Broken pipe")),
    "generator-exit": raises(GeneratorExit()),
    "unspeakable-error": raises(UnspeakableError()),
    "long-error": raises(ValueError("word " * 10**5)),
    "none": returns(None),
    "unspeakable": returns(UnspeakableAnswer()),
    "class": returns(Result),
    "text-status": says("optimal", bound=0),
    "text-bound": says(bound="x"),
    "nan-bound": says(bound=math.nan),
    "minus-infinite-bound": says(bound=-math.inf),
    "astronomic-bound": says(bound=10**5000),
    "true-bound": says(bound=True),
    "nan-objective": says(objective=math.nan),
    "nan-work": says(work=math.nan),
    "negative-work": says(work=-1),
    "huge-work": says(work=1e300),
    "text-limit": says(limit="time"),
    "no-incumbents": says(incumbents=None),
    "odd-incumbents": says(incumbents=(1, 2)),
    "nan-incumbent": says(incumbents=(Incumbent(0.0, math.nan, None),)),
    "states-an-error": says(Status.ERROR, None, message="out of licences"),
    "states-nothing": says(Status.ERROR, None),
    "wrecks-the-memory": wrecks_the_memory,
    "sets-the-fields": sets_the_fields,
}
"""Failures: exceptions, and results that are none."""

REFUSED = {
    "too-large": raises(InputError("4,000,000 variables; expected at most 9")),
    "says-too-large": says(Status.NO_SOLUTION, None, message="4,000,000 variables, at most 9"),
}
"""Problems that are refused, with a reason."""


BROKEN = WRONG | FAILED
KINDS = BROKEN | REFUSED
SIMULATION = ["simulate", str(bundled("traces") / "samples" / "sample-256.swf")]
SIMULATION += ["--policy", "window", "--jobs", "1:30", "--json"]
ARRAYS = {"weights": [6, 4, 3, 1, 2], "capacities": [3, 6, 6], "profits": [7, 4, 3, 1, 2]}


def solver_that(answer):
    """Return the class of a solver with this answer to every window knapsack."""

    class Broken(Solver):
        models = frozenset({"window-mkp"})

        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            return answer(problem)

    return Broken


@pytest.fixture
def file_under(monkeypatch):
    """Register solvers by name for one test."""

    def register(name, answer):
        cls = solver_that(answer)
        cls.name = name
        monkeypatch.setitem(registry.solvers._classes, name, cls)
        return name

    return register


@pytest.fixture
def every(file_under):
    return [file_under(name, answer) for name, answer in KINDS.items()]


@pytest.fixture
def problem():
    return WindowMKP(**ARRAYS)


@pytest.fixture
def snapshot(problem, tmp_path):
    save_snapshot(problem, tmp_path / "a.json")
    return tmp_path / "a.json"


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the pictures, which take longer than all the rest."""
    monkeypatch.setattr("optsched.report.comparison_plots.draw", lambda *_: None)
    monkeypatch.setattr("optsched.report.pictures.draw", lambda *_: None)


@pytest.fixture
def busy_trace(make_trace):
    return make_trace(*((20 * k, 300 + 7 * k, 400 + 7 * k, 1 + (5 * k) % 7) for k in range(9)))


def strict(text):
    """Read JSON as the standard has it."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("name", KINDS)
def test_solve_names_a_broken_solver(name, file_under, problem):
    file_under(name, KINDS[name])
    result = solve(problem, name)
    refused = name in REFUSED
    assert result.status is (Status.NO_SOLUTION if refused else Status.ERROR)
    assert (result.verified, result.wrong) == (refused, name in WRONG)
    assert result.message.startswith(name)
    assert len(result.message.splitlines()) == 1
    assert len(result.message) < 500
    for field, values in ARRAYS.items():
        assert getattr(problem, field).tolist() == values
        assert not getattr(problem, field).flags.writeable


@pytest.mark.parametrize("name", ["nested", "unspeakable-answer", "system-exit", *REFUSED])
def test_the_command_solve_says_so_in_a_line(name, file_under, snapshot, capsys):
    file_under(name, KINDS[name])
    words = ["solve", str(snapshot), "--solver", name]
    code = optsched([*words, "--json"])
    out, err = capsys.readouterr()
    assert code == (3 if name in REFUSED else 1)
    assert len(err.splitlines()) == 1
    assert err.startswith(f"optsched: {snapshot}: {name}")
    answer = strict(out)
    assert answer["verified"] == (name in REFUSED)
    assert one_line(answer["message"]) in err
    assert optsched(words) == code
    shown = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert ("refused" in shown) == (name in WRONG)


@pytest.mark.usefixtures("undrawn")
def test_compare_names_them_all_and_first(every, snapshot, tmp_path, capsys):
    words = ["compare", str(snapshot), "--solvers", ",".join([*every, "greedy"]), "--json"]
    assert optsched([*words, "-o", str(tmp_path / "out")]) == 1
    out, err = capsys.readouterr()
    told = [line.partition(": a: ")[2].split(":")[0].split()[0] for line in err.splitlines()]
    assert told == [*WRONG, *FAILED, *REFUSED]
    errors = {row["solver"]: row["errors"] for row in strict(out)["table"]}
    assert errors == {**dict.fromkeys(BROKEN, 1), **dict.fromkeys(REFUSED, 0), "greedy": 0}
    written = strict((tmp_path / "out" / "comparison.json").read_text())
    assert len(written["wrong_answers"]) == len(WRONG)
    assert len(written["failures"]) == len(FAILED)
    for line in (tmp_path / "out" / "answers.jsonl").read_text().splitlines():
        assert strict(line)["verified"] == ("greedy" in line)
    page = (tmp_path / "out" / "report.html").read_text()
    first = page.index(f"{len(WRONG)} wrong answers: a: overfull returned an infeasible solution")
    assert first < page.index("reached the best known objective")
    assert f"{len(FAILED)} failures of solvers" in page


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("name", "code"), [("overfull", 1), ("none", 1), ("too-large", 0)])
def test_one_broken_solver_decides_the_exit_code_of_compare(
    name, code, file_under, snapshot, tmp_path, capsys
):
    file_under(name, KINDS[name])
    words = ["compare", str(snapshot), "--solvers", f"{name},greedy", "-o", str(tmp_path / "out")]
    assert optsched(words) == code
    assert f"a: {name}" in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("answer", [says(bound=0), says(Status.INFEASIBLE, None)])
def test_a_bound_that_another_answer_beats_is_wrong_everywhere(
    answer, file_under, busy_trace, snapshot, tmp_path, capsys
):
    name = file_under("boaster", answer)
    words = ["compare", str(snapshot), "--solvers", f"{name},greedy", "-o", str(tmp_path / "o")]
    assert optsched(words) == 1
    told = f"a: {name} claims"
    assert told in capsys.readouterr().err
    assert f"1 contradiction: {told}" in (tmp_path / "o" / "report.html").read_text()
    run = simulate(busy_trace, "nodes:10", "window", solver=name)
    assert run.summary["wrong_answers"] > 0
    assert "greedy has a verified solution" in run.mishaps[0]


@pytest.mark.parametrize("name", KINDS)
def test_in_a_simulation_the_fallback_decides(name, file_under, busy_trace):
    """The time that decisions take is charged where the solver has failed."""
    file_under(name, KINDS[name])
    options = {"charge_decisions": name in FAILED, "check": True}
    run = simulate(busy_trace, "nodes:10", "window", solver=name, **options)
    own = simulate(busy_trace, "nodes:10", "window", solver="greedy", **options)
    assert run.summary["finished"] == len(busy_trace)
    assert (run.start == own.start).all()
    assert run.resources == own.resources
    # one slot holds all that is asked of it now and then; then overfull is right, but never better
    sometimes_right = name in ("overfull", "wrecks-the-arrays")
    if not sometimes_right:
        assert run.fallbacks == run.summary["problems"] > 0
    assert (run.summary["wrong_answers"] > 0) == (name in WRONG)
    assert any(name in told for told in run.mishaps)
    strict(json.dumps(run.summary))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("name", "code"), [("too-short", 1), ("at-times", 0), ("value-error", 1)])
def test_wrong_answers_of_a_simulation_are_loud_and_failures_are_told(
    name, code, file_under, tmp_path, capsys
):
    """Failures decide the exit code if the solver has no answer at all."""
    answers = itertools.cycle((BROKEN["system-exit"], lambda problem: solve(problem, "greedy")))
    file_under(name, BROKEN.get(name, lambda problem: next(answers)(problem)))
    assert optsched([*SIMULATION, "--solver", name, "-o", str(tmp_path / "run")]) == code
    out, err = capsys.readouterr()
    told = [line for line in err.splitlines() if name in line]
    assert len(told) == 1
    summary = strict(out)
    assert (summary["wrong_answers"] > 0) == (name in WRONG)
    assert strict((tmp_path / "run" / "summary.json").read_text()) == summary
    page = (tmp_path / "run" / "report.html").read_text()
    sentence = told[0].removeprefix("optsched: ")[:60]
    if name in WRONG:
        assert page.index(sentence) < page.index(" finished, after a mean wait")


def endless(*_):
    while True:
        pass


def swallowing(_):
    while True:
        try:
            time.sleep(1e6)
        except BaseException:
            continue


def resetting_the_clock(_):
    signal.alarm(0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    endless(_)


@pytest.mark.usefixtures("undrawn")
def test_solvers_that_hang_or_crash_are_ended_and_the_others_answer(
    file_under, snapshot, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(separate_process, "LEAST_GRACE", 0.2)
    kinds = {
        "endless": (endless, "longer than its time limit"),
        "swallowing": (swallowing, "longer than its time limit"),
        "holding": (lambda _: sum(range(10**15)), "longer than its time limit"),
        "resetting": (resetting_the_clock, "longer than its time limit"),
        "exiting": (lambda _: os._exit(0), "exit code 0"),
        "crashing": (lambda _: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
    }
    for name, (answer, _) in kinds.items():
        file_under(name, answer)
    solvers = ",".join(["greedy", *kinds, "branch-and-bound"])
    limits = ["--time-limit", "0.1"]
    words = ["compare", str(snapshot), "--solvers", solvers, *limits, "-o", str(tmp_path / "out")]
    assert optsched(words) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(kinds)
    for line, (name, (_, told)) in zip(lines, kinds.items()):
        assert line.startswith(f"optsched: a: {name} ")
        assert told in line
    written = strict((tmp_path / "out" / "comparison.json").read_text())
    assert len(written["failures"]) == len(kinds)
    assert optsched(["solve", str(snapshot), "--solver", "exiting", *limits]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "exiting" in line


def test_without_a_time_limit_nobody_is_ended(file_under, snapshot, monkeypatch):
    monkeypatch.setattr(separate_process, "LEAST_GRACE", 0.01)
    file_under("slow", lambda problem: time.sleep(0.2) or says()(problem))
    words = ["solve", str(snapshot), "--solver", "slow"]
    assert optsched([*words, "--work-limit", "1"]) == 0
    assert optsched([*words, "--time-limit", "0.001"]) == 1


class Unreadable:
    def __reduce__(self):
        return sys.exit, (0,)


class Unpicklable:
    def __reduce__(self):
        raise SystemExit(0)


def test_a_separate_process_passes_on_results_refusals_and_failures(capfd):
    def answer(what):
        if isinstance(what, BaseException):
            raise what
        if what == "refuse":
            raise UnknownNameError("solver", "x", ["y"])
        print("on stdout")
        os.write(1, b"on descriptor 1")
        return what() if isinstance(what, type) else what

    failures = (ValueError("x"), SystemExit(0), BrokenPipeError(), GeneratorExit())
    with SeparateProcess(answer) as ask:
        for what in (Unreadable, Unpicklable):
            with pytest.raises(EndedError, match=r"cannot be (read|passed on): SystemExit"):
                ask(what)
        process = ask._process
        for error in failures:
            with pytest.raises(EndedError, match=f"failed: {type(error).__name__}"):
                ask(error)
        with pytest.raises(InputError, match="unknown solver 'x'"):
            ask("refuse")
        assert ask({"a": (1, 2)}) == {"a": (1, 2)}
        assert ask._process is process
    assert not process.is_alive()
    out, err = capfd.readouterr()
    assert out == ""
    assert "on descriptor 1" in err
    assert "Traceback" not in err


def test_a_solver_that_is_never_prepared_is_ended(file_under, snapshot, monkeypatch, capsys):
    file_under("unready", nothing)
    monkeypatch.setattr(registry.solvers["unready"], "prepare", endless)
    monkeypatch.setattr(separate_process, "PREPARATION", 0.2)
    assert optsched(["solve", str(snapshot), "--solver", "unready"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "unready was ended: it took longer than the 0.2 s for preparation" in line


def alive(process):
    """Return whether a process runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition):
    for _ in range(1000):
        if condition():
            return True
        time.sleep(0.01)
    return False


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@LINUX
def test_what_a_solver_started_ends_when_the_solver_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(separate_process, "LEAST_GRACE", 0.5)

    def answer():
        separate_process.allow_solve(0.1)
        child = subprocess.Popen(["sleep", "600"])
        (tmp_path / "child").write_text(str(child.pid))
        swallowing(None)

    with SeparateProcess(answer) as ask, pytest.raises(EndedError, match="time limit"):
        ask()
    child = int((tmp_path / "child").read_text())
    assert wait_for(lambda: not alive(child))


@LINUX
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_an_ended_command_leaves_no_cbc_behind(number, tmp_path):
    rng = np.random.default_rng(1)
    weights = rng.integers(100, 1000, 200)
    profits = weights + rng.integers(0, 20, 200)
    hard = WindowMKP(weights.tolist(), [int(weights.sum() / 40)] * 20, profits.tolist())
    save_snapshot(hard, tmp_path / "hard.json")
    (tmp_path / "tmp").mkdir()
    words = ["solve", str(tmp_path / "hard.json"), "--solver", "cbc", "--time-limit", "100"]
    command = subprocess.Popen(
        [sys.executable, "-m", "optsched", *words],
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def cbc():
        found = (Path(f"/proc/{one}/cwd") for one in os.listdir("/proc") if one.isdigit())
        for cwd in found:
            with suppress(OSError):
                if tmp_path in cwd.readlink().parents:
                    return True
        return False

    assert wait_for(cbc)
    command.send_signal(number)
    # after Ctrl-C, with a solution, without one, or before the search
    codes = {signal.SIGINT: (0, 3, 130), signal.SIGTERM: (130,), signal.SIGKILL: (-number,)}
    assert command.wait() in codes[number]
    assert wait_for(lambda: not cbc())
    assert wait_for(lambda: not list((tmp_path / "tmp").iterdir()))


@pytest.mark.usefixtures("undrawn")
def test_what_a_solver_prints_in_a_simulation_does_not_spoil_json(file_under, tmp_path, capsys):
    file_under("chatty", lambda problem: print("hello") or says()(problem))
    assert optsched([*SIMULATION, "--solver", "chatty", "-o", str(tmp_path / "run")]) == 0
    out, err = capsys.readouterr()
    strict(out)
    assert "hello" in err


def fails(_, *__):
    raise SystemExit(0)


MISTATED = {
    "models": (5, "states 5 as its models; expected a frozenset or None"),
    "supports": (classmethod(fails), "fails in supports: SystemExit: 0"),
    "installed_version": (classmethod(fails), "fails in installed_version: SystemExit: 0"),
}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("field", MISTATED)
def test_a_solver_that_misstates_itself_is_named(field, file_under, snapshot, tmp_path, capsys):
    value, told = MISTATED[field]
    setattr(registry.solvers[file_under("odd", nothing)], field, value)
    for words in (
        ["solve", str(snapshot), "--solver", "odd"],
        ["compare", str(snapshot), "--solvers", "odd,greedy", "-o", str(tmp_path / "out")],
        [*SIMULATION, "--solver", "odd", "-o", str(tmp_path / "run")],
    ):
        assert optsched(words) == 1
        [line] = capsys.readouterr().err.splitlines()
        assert f"solver 'odd' {told}" in line
    assert optsched(["list", "models"]) == 0
    assert optsched(["list", "solvers", "--json"]) == 0
    out, err = capsys.readouterr()
    if field != "supports":
        assert f"solver 'odd' {told}" in err
        assert '"odd"' not in out
        state = check(registry.solvers["odd"], list_problems())
        assert (state["works"], told in state["state"]) == (False, True)
    chosen = choose_contenders(None, read_entries([snapshot]))
    assert "odd" not in [one.name for one in chosen]


@pytest.mark.parametrize("raised", [None, ValueError])
def test_a_solver_cannot_swallow_what_the_callback_raises(problem, raised):
    class Deaf(solver_that(nothing)):
        name = "deaf"

        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            try:
                on_incumbent(Incumbent(0.0, 0, None))
            except BaseException:
                if raised is not None:
                    raise raised("something else") from None
            return says()(problem)

    def stop(_):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        solve(problem, Deaf(), on_incumbent=stop)


def test_the_hint_and_the_callbacks_incumbents_are_safe(problem):
    class Grasping(solver_that(nothing)):
        name = "grasping"

        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            hint[0] = 99
            on_incumbent(None)

    hint = [-1] * 5
    result = solve(problem, Grasping(), hint=hint, on_incumbent=lambda found: None)
    assert result.status is Status.ERROR
    assert hint == [-1] * 5


def test_the_time_that_a_solver_claims_is_not_believed(file_under, problem):
    file_under("clock", says(seconds=math.nan))
    result = solve(problem, "clock")
    assert result.verified
    assert 0 <= result.seconds < 60
    assert [found.seconds for found in result.incumbents] == [result.seconds]


@pytest.mark.parametrize("name", ["none", "overfull", "system-exit"])
def test_a_hint_from_a_broken_solver_is_told(name, file_under, snapshot, capsys):
    file_under(name, BROKEN[name])
    assert optsched(["solve", str(snapshot), "--hint", name]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"optsched: hint: {name}")


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -1.0, "x"])
def test_what_a_solver_costs_must_be_a_number(price, file_under, busy_trace):
    registry.solvers[file_under("priceless", nothing)].seconds_per_work = price
    with pytest.raises(InputError, match="as its seconds_per_work; expected a number from 0"):
        simulate(busy_trace, "nodes:10", "window", solver="priceless")


def test_work_that_would_take_years_is_a_failure(file_under, busy_trace):
    file_under("slow", says(work=1e19))
    run = simulate(busy_trace, "nodes:10", "window", solver="slow", charge_decisions=True)
    assert "claims work of 1e+19, which would take years" in run.mishaps[0]
    assert run.schedule.end.max() < 1e5


def test_a_solver_that_cannot_be_prepared_is_named(file_under, busy_trace, problem):
    registry.solvers[file_under("unprepared", nothing)].prepare = fails
    assert "unprepared raised SystemExit" in solve(problem, "unprepared").message
    with pytest.raises(InputError, match="'unprepared' cannot be prepared: SystemExit"):
        simulate(busy_trace, "nodes:10", "window", solver="unprepared")


def test_memory_that_is_not_there_is_a_line(snapshot, monkeypatch, capsys):
    def allocate(*_args, **_options):
        raise np._core._exceptions._ArrayMemoryError((10**6,), np.dtype(float))

    monkeypatch.setattr("optsched.cli.solve_command.read_snapshot", allocate)
    assert optsched(["solve", str(snapshot)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("optsched: out of memory: Unable to allocate")


@pytest.mark.parametrize("name", ["cp-sat", "highs", "scip", "cbc", "branch-and-bound"])
def test_limits_beyond_what_solvers_take_are_as_good_as_none(name, problem, solver_named):
    for budget in (Budget(seconds=2**53), Budget(work=2**53), Budget(1e-300, 1e-300)):
        result = solve(problem, solver_named(name), budget=budget)
        assert result.status is not Status.ERROR, result.message
        assert budget.seconds == 1e-300 or result.objective == 16


LARGE = WindowMKP(weights=[1, 1], capacities=[1], profits=[10**12, 10**12 - 900_000])


@pytest.mark.parametrize(
    ("slot", "bound", "status"),
    [
        ((-1, 0), 10**12 - 899_999, Status.ERROR),
        ((0, -1), 10**12 - 1, Status.ERROR),
        ((0, -1), 10**12 - 0.75, Status.ERROR),
        ((0, -1), 10**12 - 0.25, Status.OPTIMAL),
        ((0, -1), float(10**12), Status.OPTIMAL),
    ],
)
def test_whole_numbers_are_compared_exactly_and_no_tolerance_hides_a_unit(slot, bound, status):
    assert solve(LARGE, solver_that(says(Status.OPTIMAL, slot, bound=bound))()).status is status


def test_an_incumbent_a_unit_better_than_the_answer_is_wrong():
    before = (Incumbent(0.0, 10**12 + 1, None),)
    claims = says(solution=(0, -1), bound=2 * 10**12, incumbents=before)
    assert "better than its answer" in solve(LARGE, solver_that(claims)()).message


def test_what_a_number_must_be_is_told(problem):
    message = solve(problem, solver_that(says(bound=1e20))()).message
    assert "a result with the bound 1e+20; expected a finite number below 1e20" in message
