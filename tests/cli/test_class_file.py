"""Policies, solvers and execution models in files that belong to no package."""

import hashlib
import inspect
import json
import os
import pickle
import shlex
import sys

import pytest

import optsched as package
from optsched import registry
from optsched.registry import find_class
from optsched.sweeps.sweep_file import read_sweep

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


PROBLEM = package.models.WindowMKP([6, 4], [10])
SIMULATE = "simulate tiny.swf --machine nodes:10 --no-plots"


@pytest.fixture
def folder(tiny):
    """Return a folder with a trace and one class of each kind, as the current one."""
    for name, text in (("mine", POLICY), ("theirs", SOLVER), ("model", MODEL)):
        (tiny / f"{name}.py").write_text(text)
    return tiny


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def config_of(run):
    return json.loads((run / "run.json").read_text())


def repeat_of(run):
    """Return the words that repeat a run, up to the name of its folder."""
    return shlex.join(shlex.split(config_of(run)["repeat"])[1:-1])


def test_a_run_states_its_files_and_the_command_that_repeats_it_works(folder, optsched):
    words = "--policy mine.py:LargestFirst --set at_most=8 --execution model.py:Half -o one"
    optsched(SIMULATE, words)
    config = config_of(folder / "one")
    assert config["policy"] == "mine.py:LargestFirst"
    assert config["settings"] == {"at_most": 8}
    assert config["execution"] == "model.py:Half"
    assert config["files"] == {name: sha256(folder / name) for name in ("mine.py", "model.py")}
    optsched(repeat_of(folder / "one"), "two --no-plots")
    for name in ("run.json", "summary.json", "jobs.csv"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()
    summary = json.loads((folder / "one" / "summary.json").read_text())
    assert summary["killed"] == 12  # those that need more than 100 of 200 s at half speed
    assert summary["waiting"] == 3  # those of 9 processors
    (folder / "mine.py").unlink()
    optsched("report one")  # a page executes no file


def test_a_run_is_not_repeated_with_a_changed_file(folder, optsched):
    optsched(SIMULATE, "--policy mine.py:LargestFirst -o one")
    then = sha256(folder / "mine.py")
    (folder / "mine.py").write_text(POLICY + "# changed\n")
    told = f"optsched: mine.py: has SHA-256 {sha256(folder / 'mine.py')}; expected {then}\n"
    assert optsched(repeat_of(folder / "one"), "two", code=1).err == told
    assert not (folder / "two").exists()
    words = "--policy mine.py:LargestFirst --file-sha256 mine.py -o two"
    assert "'mine.py'; expected FILE=SHA256" in optsched(SIMULATE, words, code=1).err


def test_a_file_stands_for_its_only_class_of_a_kind(folder):
    (folder / "mine.py").write_text(POLICY + SOLVER)
    run = package.simulate("tiny.swf", "nodes:10", "mine.py")
    assert run.config["policy"] == "mine.py:LargestFirst"
    assert run_name(folder, "mine.py") == run_name(folder, "mine.py:LargestFirst")
    solved = package.simulate("tiny.swf", "nodes:10", "window", solver="window-mkp=mine.py")
    assert solved.config["solver"] == "mine.py:Nothing"
    assert solved.config["files"] == {"mine.py": sha256(folder / "mine.py")}
    assert "--solver mine.py:Nothing" in solved.config["repeat"]
    assert solved.decisions["fallback"].all()


@pytest.fixture
def my_package(folder, monkeypatch):
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


def test_a_class_of_a_module_is_named_without_an_entry_point(my_package, folder, optsched):
    done = optsched(SIMULATE, "--policy my_package.parts:LargestFirst --json -o one")
    assert json.loads(done.out)["finished"] == 30
    config = config_of(folder / "one")
    assert config["policy"] == "my_package.parts:LargestFirst"
    assert config["files"] == {"my_package.parts": sha256(my_package / "parts.py")}
    optsched(repeat_of(folder / "one"), "two --no-plots")
    assert package.solve(PROBLEM, "my_package.parts:Nothing").objective == 0
    for text, told in (
        ("my_package.parts:Larges", "my_package.parts: unknown policy 'Larges'; did you mean Larg"),
        ("my_package.broken:Mine", "my_package.broken, line 2: ZeroDivisionError"),
        ("my_package.prts:Mine", "no module 'my_package.prts' is installed; expected FILE.py:CLA"),
        ("no_package.parts:Mine", "no module 'no_package.parts' is installed"),
    ):
        assert told in optsched(SIMULATE, "--policy", text, "-o out", code=1).err


def test_solve_and_compare_take_files_whose_prints_are_not_part_of_the_answer(folder, optsched):
    (folder / "loud.py").write_text(SOLVER + "print('hello')\n")
    package.save_snapshot(PROBLEM, folder / "window.json")
    done = optsched("solve window.json --solver loud.py:Nothing --json")
    assert json.loads(done.out)["solver"] == "loud.py:Nothing"
    assert "hello" in done.err
    optsched("compare window.json --solvers theirs.py:Nothing,greedy -o both")
    assert "theirs.py:Nothing" in (folder / "both" / "report.html").read_text()


def test_a_sweep_takes_files_from_its_own_folder_to_its_workers(
    my_package, folder, tmp_path_factory, monkeypatch
):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    (folder / "sweep.toml").write_text(
        """
        trace = "tiny.swf"
        machine = "nodes:10"
        [[runs]]
        policy = ["mine.py:LargestFirst", "my_package.parts:LargestFirst"]
        settings.at_most = [8, 100]
        execution = "model.py:Half"
        [[runs]]
        policy = "window"
        solver = ["theirs.py:Nothing", "window-mkp=theirs.py:Nothing"]
        """
    )
    results = package.sweep(folder / "sweep.toml", folder / "out", workers=1)
    assert results.error.isna().all()
    assert len(results) == 5  # the two solvers are one
    configs = [config_of(run) for run in (folder / "out" / "runs").iterdir()]
    assert all(str(folder) not in json.dumps(config) for config in configs)
    assert [len(config["files"]) for config in configs].count(2) == 4
    assert all(config["repeat"] is not None for config in configs)


def run_name(folder, policy, **others):
    table = {"trace": "tiny.swf", "machine": "nodes:10", "policy": policy} | others
    return read_sweep(table, folder).runs[0].name


def test_the_name_of_a_run_depends_on_the_content_of_the_file_alone(folder):
    before = run_name(folder, "mine.py:LargestFirst")
    (folder / "moved").mkdir()
    (folder / "moved" / "copy.py").write_text(POLICY)
    assert run_name(folder, "moved/copy.py:LargestFirst") == before
    solved = run_name(folder, "window", solver="theirs.py:Nothing")
    (folder / "mine.py").write_text(POLICY + "# changed\n")
    (folder / "theirs.py").write_text(SOLVER + "# changed\n")
    assert run_name(folder, "mine.py:LargestFirst") != before
    assert run_name(folder, "window", solver="theirs.py:Nothing") != solved


def test_a_class_that_its_file_registers_too_has_the_name_with_the_file(folder, forget):
    head = "from optsched.registry import policies\n"
    own = POLICY.replace("@dataclass", '@policies.register("mine")\n@dataclass')
    (folder / "mine.py").write_text(own.replace("from dataclasses", head + "from dataclasses"))
    for text in ("mine.py:LargestFirst", "mine"):
        run = package.simulate("tiny.swf", "nodes:10", text)
        assert run.config["policy"] == "mine.py:LargestFirst"
        assert "--policy mine.py:LargestFirst" in run.config["repeat"]


@pytest.mark.parametrize(
    ("kind", "name"), [(registry.policies, "easy"), (registry.solvers, "greedy")]
)
def test_an_edited_copy_of_a_registered_class_does_not_take_its_place(kind, name, folder):
    kept = kind[name]
    (folder / "copied.py").write_text(inspect.getsource(inspect.getmodule(kept)))
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
        ("min.py:Mine", "", "min.py: no such file; did you mean mine.py"),
        ("a.py", SOLVER, "a.py: holds no policy; expected a subclass of optsched.extend.Policy"),
        ("a.py", POLICY + "class Two(LargestFirst): pass", "a.py: holds more than one policy;"),
        ("mine:Largest", "", "no module 'mine' is installed; did you mean mine.py:Largest?"),
        ("a.py:", POLICY, "'a.py:'; expected FILE.py:CLASS, a.py:Mine for instance"),
        ("a.py:Nothing", SOLVER, "a.py: Nothing is not a policy; expected a subclass of"),
        ("a.py:Mine", "import no_such", "a.py, line 1: ModuleNotFoundError: No module named"),
        ("a.py:Mine", "\n\nclass Mine", "a.py, line 3: SyntaxError: expected ':'\n"),
        ("mine", "", "unknown policy 'mine'; did you mean mine.py?"),
        ("a.py:Mine", "raise SystemExit", "a.py, line 1: SystemExit"),
        ("a.py:Two", POLICY + "class Two(Policy): pass", "a.py: Two does not define decide"),
        ("a.py", POLICY.replace(" = 100", ""), "of policy 'a.py:LargestFirst' is missing; it has"),
    ],
)
def test_mistakes_are_reported_in_one_line(text, content, words, folder, optsched):
    (folder / "a.py").write_text(content)
    told = optsched("simulate tiny.swf --policy", text, "-o out", code=1).err
    assert words in told
    assert len(told.splitlines()) == 1
    (folder / "sweep.toml").write_text(f"trace = 'tiny.swf'\npolicy = '{text}'\n")
    assert words in optsched("sweep sweep.toml -o out", code=1).err


def test_a_profile_names_a_registered_solver(folder):
    (folder / "profile.toml").write_text('solver = "theirs.py:Nothing"\n')
    with pytest.raises(package.InputError, match="expected the name of a registered solver"):
        package.solve(PROBLEM, "profile.toml")


BROKEN = """
from optsched.extend import Policy, Start
print("hello")

class Broken(Policy):
    def decide(self, system): return self.divided(1)
    def divided(self, number): return number / 0

class Nothing(Policy):
    def decide(self, system): pass

class Unknown(Policy):
    def decide(self, system): yield Start("1")

class Early(Policy):
    def begin(self, system): return 1 / 0
    def decide(self, system): return ()

class Late(Policy):
    def decide(self, system): return ()
    def figures(self, system): return {}["none"]
"""


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("Broken", "division by zero (bad.py, line 6 in decide, line 7 in divided)"),
        ("Unknown", "Start('1') names no job; expected a row of the trace, 0 to 29 (bad.py"),
        ("Early", "at 0 s: ZeroDivisionError: division by zero (bad.py, line 16 in begin)"),
        ("Late", "KeyError: 'none' (bad.py, line 21 in figures)"),
        ("Nothing", "TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_an_error_in_a_policy_is_one_line(folder, optsched, policy, reason):
    (folder / "bad.py").write_text(BROKEN)
    words = f"simulate tiny.swf --machine nodes:9 --policy bad.py:{policy} --json -o run"
    done = optsched(words, code=1)
    assert done.out == ""
    error = done.err.splitlines()[-1]
    assert error.startswith(f"optsched: policy bad.py:{policy} failed at ")
    assert reason in error


def test_an_error_in_an_execution_model_is_one_line(folder, optsched):
    (folder / "model.py").write_text(MODEL.replace("return", "return 1 / 0 or"))
    told = optsched(SIMULATE, "--policy mine.py --execution model.py -o run", code=1).err
    reason = "ZeroDivisionError: division by zero (model.py, line 6 in started)"
    assert told == f"optsched: execution model model.py:Half failed at 0 s: {reason}\n"
