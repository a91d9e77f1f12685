from __future__ import annotations

import subprocess
import sys

import pytest

from optsched import registry
from optsched.errors import UnknownNameError
from optsched.registry import Registry


def test_an_unknown_name_comes_with_the_close_ones():
    with pytest.raises(UnknownNameError, match="unknown policy 'esay'; did you mean easy"):
        registry.policies["esay"]


def test_a_name_is_taken_once():
    names = Registry("thing", "optsched.policies")
    names.register("one")(type("First", (), {}))
    with pytest.raises(ValueError, match="already First"):
        names.register("one")(type("Second", (), {}))


def test_another_package_adds_a_solver_by_entry_point(tmp_path):
    """A distribution with an entry point in optsched.solvers is found, and its solver answers."""
    (tmp_path / "their_solver.py").write_text(
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
    info = tmp_path / "their_solver-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-solver\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[optsched.solvers]\ntheirs = their_solver\n")
    code = (
        "import optsched; from optsched.models import WindowMKP; "
        "r = optsched.solve(WindowMKP([2, 3], [4]), 'theirs'); print(r.status, r.verified)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "feasible True", done.stderr
