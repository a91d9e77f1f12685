"""What is said of the compilation of kernels, and the clock that leaves it out."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from optsched import compilation

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
"""


def run(tmp_path, check: str) -> str:
    """Execute the kernels in a process of its own, with a cache of its own."""
    (tmp_path / "kernels.py").write_text(KERNELS + check)
    done = subprocess.run(
        [sys.executable, "kernels.py"],
        cwd=tmp_path,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernels_are_counted_from_the_first_on_with_all_that_they_call(tmp_path):
    counts = "print(shown)"
    shown = eval(run(tmp_path, counts))
    assert shown[0] == (0, 3)
    assert shown.count((3, 3)) == 1
    assert shown[-2:] == [(3, 4), (4, 4)]
    assert sorted(shown) == shown
    assert eval(run(tmp_path, counts)) == []  # all are on disk


def test_the_clock_stands_still_while_kernels_are_compiled(tmp_path):
    assert run(tmp_path, "assert counted < passed; print('less')") == "less\n"


def test_the_clock_stands_still_within_a_compilation(monkeypatch):
    for name in ("_needed", "_ready"):
        monkeypatch.setattr(compilation, name, set())
    monkeypatch.setattr(compilation, "_begun", [])
    monkeypatch.setattr(compilation, "_show", None)

    def function() -> None:
        pass

    for _ in range(2):
        before = compilation.clock()
        compilation.begin(function)
        held = compilation.clock()
        time.sleep(0.001)
        assert compilation.clock() == held >= before
        compilation.end(function)
        assert compilation.clock() >= held


def commands(tmp_path, *commands: str) -> list[str]:
    """Run commands one after the other, with one cache; return what each says on stderr."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "optsched", *command.split()],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    return said


@pytest.mark.long
def test_compilation_is_announced_by_the_first_command_that_compiles(tmp_path):
    said = commands(
        tmp_path, "list traces", "list solvers", "-q trace info sample-256",
        "trace info sample-256", "solve yang-2014-example --solver greedy",
        "solve yang-2014-example",
    )  # fmt: skip
    line = "optsched: compiling kernels, once on this machine; first commands take up to a minute"
    assert [line in text for text in said] == [False] * 4 + [True, False]
    (mark,) = (tmp_path / "cache").rglob("announced-*")
    mark.rename(mark.with_name("announced-by-an-older-version"))
    assert line in commands(tmp_path, "solve node-placement/two-leaves --solver best-fit")[0]
    assert [one.name for one in (tmp_path / "cache").rglob("announced-*")] == [mark.name]
