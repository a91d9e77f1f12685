"""What is compiled when, what is said of it, and the clock that leaves it out."""

import json
import os
import subprocess
import sys
import time
from functools import partial

import pytest

from optsched import compilation, registry
from optsched.cli import doctor_command

KERNELS = """
import time
from optsched import compilation
from optsched.compiled import kernel

@kernel
def inner(x):
    return x + 1

@kernel
def outer(x):
    return inner(x) + inner(x) + later(x)

@kernel
def later(x):
    return inner(x) - 1

@kernel
def other(x):
    return x * inner(x)

shown = []
compilation.show(lambda *counts: shown.append(counts))
began, counted = time.perf_counter(), compilation.clock()
outer(1), other(1), outer(1)
passed, counted = time.perf_counter() - began, compilation.clock() - counted
print((shown, counted < passed))
"""


def run(tmp_path, *words: str) -> tuple[str, str]:
    """Run Python in a process of its own with a cache of its own; return stdout and stderr."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path, env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_kernels_are_counted_with_all_that_they_call_while_the_clock_stands_still(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    shown, is_less = eval(run(tmp_path, "kernels.py")[0])
    assert shown[0] == (0, 3)
    assert shown.count((3, 3)) == 1
    assert shown[-2:] == [(3, 4), (4, 4)]
    assert sorted(shown) == shown
    assert is_less
    assert eval(run(tmp_path, "kernels.py")[0])[0] == []  # all are on disk


def test_the_clock_stands_still_within_a_compilation():
    before = compilation.clock()
    compilation.begin(run)
    held = compilation.clock()
    time.sleep(0.001)
    assert compilation.clock() == held >= before
    compilation.end(run)
    assert compilation.clock() >= held


@pytest.mark.long
def test_compilation_is_announced_by_the_first_command_that_compiles(tmp_path):
    def says_so(words: str) -> bool:
        return line in run(tmp_path, "-m", "optsched", *words.split())[1]

    line = "optsched: compiling kernels, once on this machine; first commands take up to a minute"
    quiet = ("list traces", "list solvers", "-q trace info sample-256", "trace info sample-256")
    assert not any(map(says_so, quiet))
    assert says_so("solve yang-2014-example --solver greedy")
    assert not says_so("solve yang-2014-example")
    (mark,) = (tmp_path / "cache").rglob("announced-*")
    mark.rename(mark.with_name("announced-by-an-older-version"))
    assert says_so("solve node-placement/two-leaves --solver best-fit")
    assert [one.name for one in (tmp_path / "cache").rglob("announced-*")] == [mark.name]


def test_each_model_and_each_policy_on_each_of_its_machines_is_compiled():
    parts = {part.args for part in doctor_command.list_parts()}
    assert parts == {(model,) for model in registry.models} | {
        (name, kind) for name in registry.policies for kind in registry.policies[name].machines
    }


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
    assert [run(tmp_path, "-c", code)[0] for _ in range(2)] == ["True\n", "False\n"]


@pytest.mark.long
def test_the_doctor_compiles_no_solver(tmp_path):
    printed, said = run(tmp_path, "-m", "optsched", "doctor", "--json")
    rows = {(row["solver"], row["problem"]): row for row in json.loads(printed)["solvers"]}
    assert rows["highs", "box-placement/corners-lose"]["works"] is True
    own = rows["branch-and-bound", "window-mkp/yang-2014-example"]
    assert (own["works"], own["state"]) == (None, "not tried: not compiled yet")
    assert list(tmp_path.rglob("*depth_first*.kernel")) == []
    left = len({row["solver"] for row in rows.values() if row["state"] == own["state"]})
    assert f"{left} solvers not compiled yet; --compile does it" in said


def test_lists_compile_nothing(tmp_path):
    code = """
from optsched.cli import run
from optsched.cli.list_command import _LISTS
print([run(["list", what, "--json"]) for what in _LISTS])
"""
    codes = run(tmp_path, "-c", code)[0].splitlines()[-1]
    assert set(eval(codes)) == {0}
    assert list(tmp_path.rglob("*.kernel")) == []


def test_a_failure_of_a_part_is_raised(monkeypatch):
    parts = [partial(len, ()), partial(len, None)]
    monkeypatch.setattr(doctor_command, "list_parts", lambda: parts)
    with pytest.raises(TypeError):
        doctor_command.compile_all()
