from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from optsched import registry
from optsched.errors import UnknownNameError
from optsched.registry import Registry


def test_an_unknown_name_comes_with_the_close_ones():
    with pytest.raises(UnknownNameError, match="unknown policy 'esay'; did you mean easy"):
        registry.policies["esay"]


@pytest.mark.parametrize("kind", registry.all_kinds(), ids=lambda kind: kind.noun)
def test_the_text_of_a_module_has_the_names_that_it_registers(kind):
    for name in kind:
        for cls in getattr(kind[name], "classes", [kind[name]]):
            source = Path(sys.modules[cls.__module__].__file__).read_text()
            assert f'@{kind.variable}.register("{name}")' in source


@pytest.mark.parametrize(
    ("kind", "name", "modules"),
    [
        ("policies", "easy", "easy"),
        (
            "solvers",
            "first-fit",
            "gang_packing.fit_rules node_placement.fit_rules threshold_allocation",
        ),
        ("models", "window-mkp", "window_mkp"),
    ],
)
def test_a_lookup_imports_the_modules_of_the_name_alone(kind, name, modules):
    code = (
        "import sys; from pathlib import Path; from optsched import registry\n"
        f"registry.{kind}[{name!r}]\n"
        f"ours = [one for one in sorted(sys.modules) if one.startswith('optsched.{kind}.')]\n"
        f"mark = '@{kind}.register(\"'\n"
        "print(*[one for one in ours if mark in Path(sys.modules[one].__file__).read_text()])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    found = done.stdout.split()
    assert found == [f"optsched.{kind}.{module}" for module in modules.split()], done.stderr


def test_a_plug_in_takes_no_name_of_ours_even_if_ours_was_not_imported_yet():
    code = (
        "from optsched import registry\n"
        "try: registry.policies.register('easy')(type('Mine', (), {}))\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "policy 'easy' is already Easy\n", done.stderr


def test_a_name_is_taken_once():
    names = Registry("thing", "optsched.policies")
    names.register("one")(type("First", (), {}))
    with pytest.raises(ValueError, match="already First"):
        names.register("one")(type("Second", (), {}))


def run_with(folder, module, entry_points, *command):
    """Run a command with a distribution in the path that is one module and its entry points."""
    (folder / "their_module.py").write_text(module)
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    return subprocess.run(
        [sys.executable, *command],
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_another_package_adds_a_solver_by_entry_point(tmp_path):
    """A distribution with an entry point in optsched.solvers is found, and its solver answers."""
    module = (
        "from dataclasses import dataclass\n"
        "from optsched.registry import solvers\n"
        "from optsched.solvers.result import Result, Status\n"
        "from optsched.solvers.solver import Solver\n"
        "@solvers.register('theirs')\n"
        "@dataclass(frozen=True)\n"
        "class Theirs(Solver):\n"
        "    models = frozenset({'window-mkp'})\n"
        "    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):\n"
        "        return Result('theirs', Status.FEASIBLE, (-1,) * len(problem.weights), 0)\n"
    )
    code = (
        "import optsched; from optsched.models import WindowMKP; "
        "r = optsched.solve(WindowMKP([2, 3], [4]), 'theirs'); print(r.status, r.verified)"
    )
    done = run_with(tmp_path, module, "[optsched.solvers]\ntheirs = their_module\n", "-c", code)
    assert done.stdout.strip() == "feasible True", done.stderr


@pytest.mark.parametrize(
    ("point", "decorator"),
    [
        ("their_module", "@solvers.register('first-fit')\n"),
        ("their_module:Theirs", "@solvers.register('first-fit')\n"),
        ("their_module:Theirs", ""),
    ],
)
def test_another_package_adds_a_model_to_a_name(point, decorator, tmp_path):
    module = (
        "from optsched.registry import solvers\n"
        "from optsched.solvers.result import Result, Status\n"
        "from optsched.solvers.solver import Solver\n"
        f"{decorator}"
        "class Theirs(Solver):\n"
        "    models = frozenset({'window-mkp'})\n"
        "    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):\n"
        "        return Result('theirs', Status.FEASIBLE, (-1,) * len(problem.weights), 0)\n"
    )
    code = (
        "import optsched; from optsched.models import GangPacking, WindowMKP\n"
        "for problem in (WindowMKP([2, 3], [4]), GangPacking(4, 2, [0b0011], [0], [1, 2])):\n"
        "    print(optsched.solve(problem, 'first-fit').objective)\n"
    )
    entry_points = f"[optsched.solvers]\nfirst-fit = {point}\n"
    done = run_with(tmp_path, module, entry_points, "-c", code)
    assert done.stdout.split()[:1] == ["0"], done.stderr
    assert int(done.stdout.split()[1]) > 0


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
