"""``optsched doctor --compile``, and commands that compile nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial

import pytest

from optsched import registry
from optsched.cli import doctor_command


def test_each_model_and_each_policy_on_each_of_its_machines_is_compiled():
    parts = {part.args for part in doctor_command.list_parts()}
    assert parts == {(model,) for model in registry.models} | {
        (name, kind) for name in registry.policies for kind in registry.policies[name].machines
    }


def run(folder, *words):
    """Run Python with a cache of kernels in a folder."""
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.long
def test_after_a_part_nothing_is_left_to_compile(tmp_path):
    code = """
from optsched import compilation, registry
from optsched.cli.doctor_command import list_parts
shown = []
compilation.show(lambda *counts: shown.append(counts))
[part] = [one for one in list_parts() if one.args == ("fcfs", "nodes")]
part()
print(bool(shown))
"""
    assert [run(tmp_path, "-c", code).stdout for _ in range(2)] == ["True\n", "False\n"]


@pytest.mark.long
def test_the_doctor_compiles_no_solver(tmp_path):
    done = run(tmp_path, "-m", "optsched", "doctor", "--json")
    rows = {(row["solver"], row["problem"]): row for row in json.loads(done.stdout)["solvers"]}
    assert rows["highs", "box-placement/corners-lose"]["works"] is True
    own = rows["branch-and-bound", "window-mkp/yang-2014-example"]
    assert (own["works"], own["state"]) == (None, "not tried: not compiled yet")
    assert list(tmp_path.rglob("*depth_first*.kernel")) == []
    left = len({row["solver"] for row in rows.values() if row["state"] == own["state"]})
    assert f"{left} solvers not compiled yet; --compile does it" in done.stderr


def test_lists_compile_nothing(tmp_path):
    code = """
from optsched.cli import run
from optsched.cli.list_command import _LISTS
print([run(["list", what, "--json"]) for what in _LISTS])
"""
    codes = run(tmp_path, "-c", code).stdout.splitlines()[-1]
    assert set(eval(codes)) == {0}
    assert list(tmp_path.rglob("*.kernel")) == []


def test_a_failure_of_a_part_is_raised(monkeypatch):
    parts = [partial(len, ()), partial(len, None)]
    monkeypatch.setattr(doctor_command, "list_parts", lambda: parts)
    with pytest.raises(TypeError):
        doctor_command.compile_all()
