"""Policies, solvers and execution models in files that belong to no package."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import pickle
import shlex
import sys

import pytest

import optsched
from optsched import registry
from optsched.cli import run as command
from optsched.registry import find_class
from optsched.sweeps.sweep_file import read_sweep
from optsched.traces.reading import write_trace

POLICY = """
from __future__ import annotations
from dataclasses import dataclass
from optsched.extend import Policy, Start

@dataclass
class LargestFirst(Policy):
    at_most: int = 100

    def decide(self, system):
        for job in sorted(system.queue, key=lambda job: -system.processors[job]):
            if system.processors[job] <= min(system.machine.free, self.at_most):
                yield Start(job)
"""

SOLVER = """
from dataclasses import dataclass
from optsched.extend import Result, Solver, Status

@dataclass(frozen=True)
class Nothing(Solver):
    models = frozenset({"window-mkp"})
    exact = False

    def solve(self, problem, **others):
        return Result(self.name, Status.FEASIBLE, (-1,) * len(problem.weights), 0)
"""

MODEL = """
from optsched.extend import ExecutionModel

class Half(ExecutionModel):
    def started(self, job, allocation, system):
        return [(job, 0.5)]
"""


@pytest.fixture
def folder(make_trace, tmp_path, monkeypatch):
    """Return a folder with a trace and one class of each kind, as the current one."""
    rows = [(20 * k, 60 + 11 * k % 90, 200, 1 + (7 * k) % 9) for k in range(30)]
    write_trace(make_trace(*rows), tmp_path / "tiny.swf")
    (tmp_path / "mine.py").write_text(POLICY)
    (tmp_path / "theirs.py").write_text(SOLVER)
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_run_states_its_files_and_the_command_that_repeats_it_works(folder):
    words = "simulate tiny.swf --machine nodes:10 --policy mine.py:LargestFirst --set at_most=8"
    words += " --execution model.py:Half --no-plots -o one"
    assert command(words.split()) == 0
    config = json.loads((folder / "one" / "run.json").read_text())
    assert config["policy"] == "mine.py:LargestFirst"
    assert config["settings"] == {"at_most": 8}
    assert config["execution"] == "model.py:Half"
    assert config["files"] == {name: sha256(folder / name) for name in ("mine.py", "model.py")}
    assert command([*shlex.split(config["repeat"])[1:-1], "two", "--no-plots"]) == 0
    for name in ("run.json", "summary.json", "jobs.csv"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()
    summary = json.loads((folder / "one" / "summary.json").read_text())
    assert summary["killed"] == 12  # those that need more than 100 of 200 s at half speed
    assert summary["waiting"] == 3  # those of 9 processors
    (folder / "mine.py").unlink()
    assert command(["report", "one"]) == 0  # a page executes no file


def test_a_run_is_not_repeated_with_a_changed_file(folder, capsys):
    words = "simulate tiny.swf --machine nodes:10 --policy mine.py:LargestFirst --no-plots -o one"
    assert command(words.split()) == 0
    repeat = shlex.split(json.loads((folder / "one" / "run.json").read_text())["repeat"])[1:-1]
    (folder / "mine.py").write_text(POLICY + "# changed\n")
    capsys.readouterr()
    assert command([*repeat, "two"]) == 1
    now, then = sha256(folder / "mine.py"), hashlib.sha256(POLICY.encode()).hexdigest()
    told = f"optsched: mine.py: has SHA-256 {now}; expected {then}\n"
    assert (capsys.readouterr().err, (folder / "two").exists()) == (told, False)
    assert command([*words.split()[:-1], "two", "--file-sha256", "mine.py"]) == 1
    assert "'mine.py'; expected FILE=SHA256" in capsys.readouterr().err


def test_a_file_stands_for_its_only_class_of_a_kind(folder):
    (folder / "mine.py").write_text(POLICY + SOLVER)
    run = optsched.simulate("tiny.swf", "nodes:10", "mine.py")
    assert run.config["policy"] == "mine.py:LargestFirst"
    solved = optsched.simulate("tiny.swf", "nodes:10", "window", solver="window-mkp=mine.py")
    assert solved.config["solver"] == "mine.py:Nothing"
    names = {
        read_sweep({"trace": "tiny.swf", "machine": "nodes:10", "policy": text}, folder)
        .runs[0]
        .name
        for text in ("mine.py", "mine.py:LargestFirst")
    }
    assert len(names) == 1


@pytest.fixture
def package(folder, monkeypatch):
    """Return an installed package with the classes, which is forgotten after the test."""
    place = folder / "site" / "my_package"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("print('hello')\n")
    (place / "parts.py").write_text(POLICY + SOLVER)
    (place / "broken.py").write_text("\n1 / 0")
    monkeypatch.syspath_prepend(folder / "site")
    monkeypatch.setenv("PYTHONPATH", str(folder / "site"), prepend=os.pathsep)
    yield place
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_package"]:
        del sys.modules[name]


def test_a_class_of_a_module_is_named_without_an_entry_point(package, folder, capsys):
    words = "simulate tiny.swf --machine nodes:10 --policy my_package.parts:LargestFirst"
    assert command([*words.split(), "--no-plots", "--json", "-o", "one"]) == 0
    assert json.loads(capsys.readouterr().out)["finished"] == 30
    config = json.loads((folder / "one" / "run.json").read_text())
    assert config["policy"] == "my_package.parts:LargestFirst"
    assert config["files"] == {"my_package.parts": sha256(package / "parts.py")}
    assert command([*shlex.split(config["repeat"])[1:-1], "two", "--no-plots"]) == 0
    problem = optsched.models.WindowMKP([6, 4], [10])
    assert optsched.solve(problem, "my_package.parts:Nothing").objective == 0
    for text, told in (
        ("my_package.parts:Larges", "my_package.parts: unknown policy 'Larges'; did you mean Larg"),
        ("my_package.broken:Mine", "my_package.broken, line 2: ZeroDivisionError"),
        ("my_package.prts:Mine", "no module 'my_package.prts' is installed; expected FILE.py:CLA"),
        ("no_package.parts:Mine", "no module 'no_package.parts' is installed"),
    ):
        capsys.readouterr()
        assert command(["simulate", "tiny.swf", "--policy", text, "-o", "out"]) == 1
        assert told in capsys.readouterr().err


def test_the_workers_of_a_sweep_import_the_module(package, folder):
    table = {"trace": "tiny.swf", "machine": "nodes:10"}
    table["policy"] = ["my_package.parts:LargestFirst", "mine.py"]
    results = optsched.sweep(table, folder / "out", workers=1)
    assert results.error.isna().all()
    assert len(results) == 2


def test_from_python_a_solver_in_a_file_answers(folder):
    run = optsched.simulate(
        "tiny.swf", "nodes:10", "window", solver="window-mkp=theirs.py:Nothing", check=True
    )
    assert run.config["solver"] == "theirs.py:Nothing"
    assert run.config["files"] == {"theirs.py": sha256(folder / "theirs.py")}
    assert "--solver theirs.py:Nothing" in run.config["repeat"]
    assert run.decisions["fallback"].all()
    problem = optsched.models.WindowMKP([6, 4], [10])
    for text in ("theirs.py:Nothing", "theirs.py"):
        assert optsched.solve(problem, text).solver == "theirs.py:Nothing"
    compared = optsched.compare(problem, ["theirs.py:Nothing", "greedy"])
    assert repr(compared) == "<Comparison of theirs.py:Nothing, greedy: 1 snapshots>"


def test_solve_and_compare_take_files(folder, capsys):
    optsched.save_snapshot(optsched.models.WindowMKP([6, 4], [10]), folder / "window.json")
    assert command(["solve", "window.json", "--solver", "theirs.py:Nothing", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["solver"] == "theirs.py:Nothing"
    words = "compare window.json --solvers theirs.py:Nothing,greedy -o both"
    assert command(words.split()) == 0
    assert "theirs.py:Nothing" in (folder / "both" / "report.html").read_text()


def test_a_sweep_takes_files_from_its_own_folder_to_its_workers(folder, tmp_path_factory, request):
    request.getfixturevalue("monkeypatch").chdir(tmp_path_factory.mktemp("elsewhere"))
    (folder / "sweep.toml").write_text(
        """
        trace = "tiny.swf"
        machine = "nodes:10"
        [[runs]]
        policy = "mine.py:LargestFirst"
        settings.at_most = [8, 100]
        execution = "model.py:Half"
        [[runs]]
        policy = "window"
        solver = ["theirs.py:Nothing", "window-mkp=theirs.py:Nothing"]
        """
    )
    results = optsched.sweep(folder / "sweep.toml", folder / "out", workers=1)
    assert results.error.isna().all()
    assert len(results) == 3  # the two solvers are one
    configs = [json.loads(file.read_text()) for file in (folder / "out").glob("runs/*/run.json")]
    assert all(str(folder) not in json.dumps(config) for config in configs)
    assert [len(config["files"]) for config in configs].count(2) == 2
    assert all(config["repeat"] is not None for config in configs)


def test_the_name_of_a_run_depends_on_the_content_of_the_file_alone(folder):
    def name(policy, **others):
        table = {"trace": "tiny.swf", "machine": "nodes:10", "policy": policy} | others
        return read_sweep(table, folder).runs[0].name

    before = name("mine.py:LargestFirst")
    (folder / "moved").mkdir()
    (folder / "moved" / "copy.py").write_text(POLICY)
    assert name("moved/copy.py:LargestFirst") == before
    solved = name("window", solver="theirs.py:Nothing")
    (folder / "mine.py").write_text(POLICY + "# changed\n")
    (folder / "theirs.py").write_text(SOLVER + "# changed\n")
    assert name("mine.py:LargestFirst") != before
    assert name("window", solver="theirs.py:Nothing") != solved


def test_a_class_that_its_file_registers_too_has_the_name_with_the_file(folder):
    head = "from optsched.registry import policies\n"
    own = POLICY.replace("@dataclass", '@policies.register("mine")\n@dataclass')
    (folder / "mine.py").write_text(own.replace("from dataclasses", head + "from dataclasses"))
    for text in ("mine.py:LargestFirst", "mine"):
        run = optsched.simulate("tiny.swf", "nodes:10", text)
        assert run.config["policy"] == "mine.py:LargestFirst"
        assert "--policy mine.py:LargestFirst" in run.config["repeat"]
    del registry.policies._classes["mine"]


@pytest.mark.parametrize(
    ("kind", "name"), [(registry.policies, "easy"), (registry.solvers, "greedy")]
)
def test_an_edited_copy_of_a_registered_class_does_not_take_its_place(kind, name, folder):
    kept = kind[name]
    source = inspect.getsource(inspect.getmodule(kept))
    (folder / "copied.py").write_text(source)
    copied = kind[f"copied.py:{kept.__name__}"]
    assert copied.name == f"copied.py:{kept.__name__}"
    assert (kind[name] is kept, kept.name) == (True, name)


def test_a_class_that_is_pickled_is_the_one_that_was_read(folder):
    found = pickle.loads(pickle.dumps(find_class("mine.py:LargestFirst")))
    (folder / "mine.py").write_text("raise SystemExit")
    assert registry.policies[found]().at_most == 100


@pytest.mark.parametrize(
    ("text", "content", "words"),
    [
        ("min.py:Mine", None, "min.py: no such file; did you mean mine.py?"),
        ("a.py", SOLVER, "a.py: holds no policy; expected a subclass of optsched.extend.Policy"),
        (
            "a.py",
            POLICY + "class Two(LargestFirst): pass",
            "a.py: holds more than one policy; expected a.py:LargestFirst or a.py:Two",
        ),
        ("mine:Largest", None, "no module 'mine' is installed; did you mean mine.py:Largest?"),
        ("json:loads", None, "json: unknown policy 'loads'; there is none"),
        ("a.py:", POLICY, "'a.py:'; expected FILE.py:CLASS, a.py:Mine for instance"),
        ("a.py:Larges", POLICY, "a.py: unknown policy 'Larges'; did you mean LargestFirst?"),
        ("a.py:Policy", POLICY, "a.py: unknown policy 'Policy'; known: LargestFirst"),
        ("a.py:Nothing", SOLVER, "a.py: Nothing is not a policy; expected a subclass of"),
        ("a.py:Mine", "import no_such", "a.py, line 1: ModuleNotFoundError: No module named"),
        ("a.py:Mine", "\n1 / 0", "a.py, line 2: ZeroDivisionError: division by zero"),
        ("a.py:Mine", "\n\nclass Mine", "a.py, line 3: SyntaxError: expected ':'\n"),
        ("mine", None, "unknown policy 'mine'; did you mean mine.py?"),
        ("a.py:Mine", "raise SystemExit", "a.py, line 1: SystemExit"),
        (
            "a.py:Mine",
            "from optsched.extend import Policy\nclass Mine(Policy): pass",
            "a.py: Mine does not define decide",
        ),
        (
            "a.py:Mine",
            POLICY.replace("LargestFirst", "Mine").replace(" = 100", ""),
            "setting 'at_most' of policy 'a.py:Mine' is missing; it has no default",
        ),
    ],
)
def test_mistakes_are_reported_in_one_line(text, content, words, folder, capsys):
    if content is not None:
        (folder / "a.py").write_text(content)
    assert command(["simulate", "tiny.swf", "--policy", text, "-o", "out"]) == 1
    said = capsys.readouterr()
    assert words in said.err
    assert len(said.err.splitlines()) == 1
    (folder / "sweep.toml").write_text(f"trace = 'tiny.swf'\npolicy = '{text}'\n")
    assert command(["sweep", "sweep.toml", "-o", "out"]) == 1
    assert words in capsys.readouterr().err


def test_a_profile_names_a_registered_solver(folder):
    (folder / "profile.toml").write_text('solver = "theirs.py:Nothing"\n')
    with pytest.raises(optsched.InputError, match="expected the name of a registered solver"):
        optsched.solve(optsched.models.WindowMKP([6, 4], [10]), "profile.toml")


BROKEN = """
from optsched.extend import Policy, Start
print("hello")

class Broken(Policy):
    def decide(self, system):
        return self.divided(1)

    def divided(self, number):
        return number / 0

class Greedy(Policy):
    def decide(self, system):
        for job in list(system.queue):
            yield Start(job)

class Nothing(Policy):
    def decide(self, system):
        pass

class Twice(Policy):
    def decide(self, system):
        for job in system.queue[:1] * 2:
            yield Start(job)

class Unknown(Policy):
    def decide(self, system):
        yield Start("1")

class Early(Policy):
    def begin(self, system):
        return 1 / 0

    def decide(self, system):
        return ()

class Other(Policy):
    def decide(self, system):
        yield 7

class Late(Policy):
    def decide(self, system):
        return ()

    def figures(self, system):
        return {}["none"]
"""


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (
            "Broken",
            "ZeroDivisionError: division by zero (bad.py, line 7 in decide, line 10 in divided)",
        ),
        (
            "Greedy",
            "at 40 s: cannot start job 3: it wants 6 processors, 0 of 9 are free (bad.py, line 15)",
        ),
        ("Twice", "cannot start job 1: it runs (bad.py, line 24)"),
        ("Unknown", "Start('1') names no job; expected a row of the trace, 0 to 29 (bad.py"),
        ("Early", "at 0 s: ZeroDivisionError: division by zero (bad.py, line 32 in begin)"),
        ("Late", "KeyError: 'none' (bad.py, line 46 in figures)"),
        ("Other", "TypeError: 7 is no action (bad.py, line 39)"),
        ("Nothing", "TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_an_error_in_a_policy_is_one_line(folder, capsys, policy, reason):
    (folder / "bad.py").write_text(BROKEN)
    words = ["simulate", "tiny.swf", "--machine", "nodes:9", "--policy", f"bad.py:{policy}"]
    assert command([*words, "--no-plots", "--json", "-o", "run"]) == 1
    streams = capsys.readouterr()
    assert streams.out == ""
    error = streams.err.splitlines()[-1]
    assert error.startswith(f"optsched: policy bad.py:{policy} failed at ")
    assert reason in error


def test_an_error_in_an_execution_model_is_one_line(folder, capsys):
    (folder / "model.py").write_text(MODEL.replace("return", "return 1 / 0 or"))
    words = "simulate tiny.swf --machine nodes:9 --policy mine.py --execution model.py -o run"
    assert command(words.split()) == 1
    reason = "ZeroDivisionError: division by zero (model.py, line 6 in started)"
    assert capsys.readouterr().err == (
        f"optsched: execution model model.py:Half failed at 0 s: {reason}\n"
    )


def test_what_a_file_prints_is_not_part_of_the_answer(folder, capsys):
    (folder / "loud.py").write_text(SOLVER + "print('hello')\n")
    snapshot = optsched.models.WindowMKP(weights=[3, 2], capacities=[4])
    optsched.save_snapshot(snapshot, "small.json")
    assert command(["solve", "small.json", "--solver", "loud.py:Nothing", "--json"]) == 0
    streams = capsys.readouterr()
    assert json.loads(streams.out)["objective"] == 0
    assert "hello" in streams.err


def test_a_solver_that_is_not_registered_has_the_name_of_its_class():
    problem = optsched.models.WindowMKP(weights=[3, 2], capacities=[4])
    found = {}
    exec(SOLVER, found)
    assert optsched.solve(problem, found["Nothing"]()).solver == "Nothing"
