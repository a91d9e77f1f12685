"""Public names and registries: light to import, clear about mistakes, open to other packages."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import optsched
from optsched import extend, registry
from optsched.machines.machine import Machine
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.solver import Solver
from optsched.workloads.workload_model import WorkloadModel

PROBLEM = optsched.models.WindowMKP([6, 4, 3, 1, 2], [3, 6, 6])
HOW_TO = [*Path(__file__).resolve().parents[1].glob("docs/how-to/add-*.md")]
HOW_TO = sorted(page for page in HOW_TO if page.stem != "add-a-study")


def test_every_public_name_is_there():
    for name in optsched.__all__:
        assert getattr(optsched, name) is not None
    kinds = [registry.models[name] for name in registry.models]
    assert {kind.__name__ for kind in kinds} <= set(dir(optsched.models))
    assert all(getattr(optsched.models, kind.__name__) is kind for kind in kinds)
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchModel'"):
        optsched.models.NoSuchModel  # noqa: B018
    assert set(optsched.__all__) <= set(dir(optsched))
    assert optsched.models.__all__ == dir(optsched.models)  # from optsched.models import *


def test_plug_ins_have_every_registry_and_every_contract():
    contracts = (Policy, Solver, Problem, Machine, ExecutionModel, WorkloadModel)
    assert all(getattr(extend, contract.__name__) is contract for contract in contracts)
    kinds = {kind for kind in vars(extend).values() if isinstance(kind, registry.Registry)}
    assert kinds == set(registry.all_kinds())


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_a_page_for_authors_of_plug_ins_imports_nothing_else(page):
    text = page.read_text()
    imported = set(re.findall(r"^(?:from|import) (optsched[\w.]*)", text, re.MULTILINE))
    assert "optsched.extend" in imported
    allowed = {"optsched", "optsched.extend", "optsched.models", "optsched.testing"}
    assert imported - allowed - {"optsched.testing.contract"} == set()


def test_notebooks_show_small_tables_and_what_is_large_in_one_line(make_trace):
    run = optsched.simulate(make_trace((0, 10, 10, 1)), "nodes:4", "easy", journal=True)
    assert "mean wait" in run._repr_html_()
    assert "optimal" in optsched.solve(PROBLEM)._repr_html_()
    comparison = optsched.compare(PROBLEM, ["greedy", "highs"])
    result = optsched.solve(PROBLEM, solver="greedy")
    shown = [result, run, run.schedule, run.machine, run.journal, comparison, Snapshot(PROBLEM)]
    assert [repr(one) for one in shown] == [
        "<Result greedy: feasible, objective 15, bound None>",
        "<Run made: 1 jobs, easy on nodes:4>",
        "<Schedule: 1 jobs, 2 decisions>",
        "<Nodes nodes:4: 4 processors free>",
        "<Journal: 3 entries>",
        "<Comparison of greedy, highs: 1 snapshots>",
        "<Snapshot window-mkp 5x3>",
    ]


def test_a_file_or_a_snapshot_is_solved_like_its_problem(tmp_path):
    file = tmp_path / "snapshot.json"
    optsched.save_snapshot(PROBLEM, file)
    given = (PROBLEM, Snapshot(PROBLEM), file, str(file))
    assert [optsched.solve(one).objective for one in given] == [15] * 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": "5"}, r"budget: '5'; expected optsched.Budget\(seconds="),
        ({"seed": "a"}, "seed: 'a'; expected an integer"),
        ({"jobs": (1, 2.5)}, r"jobs: \(1, 2.5\); expected the first and the last job"),
        ({"trace": 5}, "trace: 5; expected a trace, a file, a name"),
        ({"policy": 5}, "policy: 5; expected a policy or the name"),
        ({"settings": ["window=5"]}, "settings: .'window=5'.; expected a mapping"),
        ({"policy": "window", "solver": 5}, "solver: 5; expected a solver or the name"),
        ({"problem": 5}, "problem: 5; expected a problem, a snapshot"),
        ({"problem": PROBLEM, "solver": CpSat}, r"the class CpSat, not CpSat\(\); expected a so"),
        ({"problem": PROBLEM, "budget": "5"}, r"budget: '5'; expected optsched\.Budget"),
        ({"problem": PROBLEM, "seed": "a"}, "seed: 'a'; expected an integer"),
        ({"problems": 5}, "problems: 5; expected a problem, a snapshot"),
        ({"problems": [PROBLEM, None]}, "problems: None; expected a problem"),
        ({"problems": PROBLEM, "solvers": 5}, "solver: 5; expected a solver or"),
        ({"problems": PROBLEM, "budget": "5"}, r"budget: '5'; expected optsched\.Budget"),
        ({"problems": PROBLEM, "seed": "a"}, "seed: 'a'; expected an integer"),
        ({"to": 8, "trace": "sample-256"}, "trace: 'sample-256'; expected a trace; optsched.read_"),
        ({"snapshot": 5, "path": "a.json"}, "problem: 5; expected a problem, a snapshot"),
        ({"file": {"trace": "sample-256"}, "output": 5}, "output: 5; expected the folder to"),
        ({"name": "franke-1999", "output": 5}, "output: 5; expected the folder to write to"),
        ({"folder": 5}, "folder: 5; expected the folder to write to"),
    ],
)
def test_functions_say_what_they_expected(options, words, make_trace):
    functions = {
        "problem": optsched.solve,
        "problems": optsched.compare,
        "to": optsched.scale_trace,
        "snapshot": optsched.save_snapshot,
        "file": optsched.sweep,
        "name": optsched.study,
        "folder": optsched.save,
    }
    function = functions.get(next(iter(options)), optsched.simulate)
    usual = {"trace": make_trace((0, 10, 10, 1)), "machine": "nodes:4", "policy": "easy"}
    if function is optsched.simulate:
        options = usual | options
    if function is optsched.save:
        options = {"result": optsched.simulate(**usual)} | options
    with pytest.raises(optsched.InputError, match=words):
        function(**options)


@pytest.mark.parametrize("kind", registry.all_kinds(), ids=lambda kind: kind.noun)
def test_the_text_of_a_module_has_the_names_that_it_registers(kind):
    for name in kind:
        for cls in getattr(kind[name], "classes", [kind[name]]):
            source = Path(sys.modules[cls.__module__].__file__).read_text()
            assert f'@{kind.variable}.register("{name}")' in source


PATH = os.environ.get("PYTHONPATH", "").split(os.pathsep)


def run_with(folder, module, entry_points, *command):
    """Run Python beside a distribution of one module and its entry points."""
    (folder / "their_module.py").write_text(module)
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    return subprocess.run(
        [sys.executable, *command],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *PATH])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_plug_in_takes_no_name_of_ours_even_if_ours_was_not_imported_yet(tmp_path):
    code = (
        "from optsched import registry\n"
        "try: registry.policies.register('easy')(type('Mine', (), {}))\n"
        "except ValueError as error: print(error)\n"
    )
    assert run_with(tmp_path, "", "", "-c", code).stdout == "policy 'easy' is already Easy\n"


def test_a_lookup_imports_the_modules_of_the_name_alone(tmp_path):
    code = (
        "import sys; from pathlib import Path; from optsched import registry\n"
        "registry.solvers['first-fit']\n"
        "ours = [one for one in sorted(sys.modules) if one.startswith('optsched.solvers.')]\n"
        "mark = '@solvers.register(\"'\n"
        "print(*[one for one in ours if mark in Path(sys.modules[one].__file__).read_text()])"
    )
    done = run_with(tmp_path, "", "", "-c", code)
    found = [one.removeprefix("optsched.solvers.") for one in done.stdout.split()]
    expected = ["gang_packing.fit_rules", "node_placement.fit_rules", "threshold_allocation"]
    assert found == expected, done.stderr


SOLVER = """
from dataclasses import dataclass
from optsched.registry import solvers
from optsched.solvers.result import Result, Status
from optsched.solvers.solver import Solver
{decorator}
@dataclass(frozen=True)
class Theirs(Solver):
    models = frozenset({{'window-mkp'}})
    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
        return Result('theirs', Status.FEASIBLE, (-1,) * len(problem.weights), 0)
"""
SOLVE = """
import optsched
from optsched.models import GangPacking, WindowMKP
result = optsched.solve(WindowMKP([2, 3], [4]), '{name}')
print(result.objective, result.verified)
"""
GANG = "print(optsched.solve(GangPacking(4, 2, [0b0011], [0], [1, 2]), '{name}').objective > 0)"


@pytest.mark.parametrize(
    ("name", "point", "decorator"),
    [
        ("theirs", "their_module", "@solvers.register('theirs')"),
        ("first-fit", "their_module", "@solvers.register('first-fit')"),
        ("first-fit", "their_module:Theirs", "@solvers.register('first-fit')"),
        ("first-fit", "their_module:Theirs", ""),
    ],
)
def test_another_package_adds_a_solver_or_a_model_to_the_name_of_one(
    name, point, decorator, tmp_path
):
    code = SOLVE + GANG * (name == "first-fit")
    points = f"[optsched.solvers]\n{name} = {point}\n"
    module = SOLVER.format(decorator=decorator)
    done = run_with(tmp_path, module, points, "-c", code.format(name=name))
    objective, *rest = done.stdout.split()
    assert (objective, {*rest}) == ("0", {"True"}), done.stderr


def test_snapshots_of_a_model_of_another_package_are_solved_from_the_command_line(tmp_path):
    page = Path(__file__).parents[1] / "docs" / "how-to" / "add-a-model.md"
    [module] = re.findall(r"```python\n(import optsched\n.*?)```", page.read_text(), re.DOTALL)
    fields = {"kind": "power-cap", "nodes": [64, 32, 32], "watts": [300, 150, 140], "cap": 310}
    (tmp_path / "power.json").write_text(json.dumps({"format": 1, **fields}))
    points = "[optsched.models]\npower-cap = their_module\n"
    words = ("-m", "optsched", "solve", str(tmp_path / "power.json"), "--solver", "highs")
    done = run_with(tmp_path, module, points, *words)
    assert "objective  64\n" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit('enough')", "SystemExit: enough"),
        (
            "from optsched.registry import policies\n@policies.register('easy')\nclass Mine: pass",
            "ValueError: policy 'easy' is already Easy",
        ),
    ],
)
def test_a_broken_plug_in_is_named_and_the_rest_works(module, reason, tmp_path):
    points = "[optsched.policies]\ntheirs = their_module\n"
    done = run_with(tmp_path, module, points, "-m", "optsched", "list", "policies")
    assert done.returncode == 0
    assert "conservative" in done.stdout
    place = "theirs = their_module in optsched.policies"
    assert done.stderr == f"optsched: plug-in {place} could not be loaded: {reason}\n"


def test_who_asks_for_a_broken_plug_in_or_the_doctor_is_told_why(tmp_path):
    points = "[optsched.solvers]\ntheirs = their_module\n"
    code = (
        "import optsched; from optsched.cli import run; from optsched.models import WindowMKP\n"
        "try: optsched.solve(WindowMKP([2, 3], [4]), 'theirs')\n"
        "except optsched.InputError as error: print(error)\n"
        "print(run(['doctor']))"
    )
    done = run_with(tmp_path, "1 / 0", points, "-c", code)
    told, *doctor, exit_code = done.stdout.splitlines()
    why = "ZeroDivisionError: division by zero"
    assert told == f"solver 'theirs' could not be loaded: {why}"
    assert doctor[-1].split(maxsplit=2) == ["theirs", "optsched.solvers", why]
    assert exit_code == "1"
