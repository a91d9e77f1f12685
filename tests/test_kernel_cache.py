"""Compiled kernels: when they are compiled, and what of those on disk is loaded."""

import ast
import errno
import importlib
import json
import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from numba.core import config

from optsched import kernel_cache, registry
from optsched.cli import doctor_command

SOURCES = {
    "__init__.py": "",
    "limits.py": "LIMIT = 10\n",
    "inner.py": """\
from optsched.compiled import kernel
from plug.limits import LIMIT

@kernel
def added(x):
    return min(x + 1, LIMIT)
""",
    "outer.py": """\
from optsched.compiled import kernel
from plug.inner import added

@kernel
def twice(x):
    return 2 * added(x)
""",
}
PEEKING = """\
import numpy as np

from optsched.compiled import kernel

@kernel
def behind(values, index):
    return values[index]

@kernel
def twice(x):
    return behind(np.arange(8)[:4], x + 3) > 9
"""
GIVEN = """\
from optsched.compiled import kernel

@kernel
def added(x):
    return x + 1
"""
TAKING = """\
from optsched.compiled import kernel

@kernel
def twice(function, x):
    return 2 * function(x)
"""
OURS = kernel_cache.PACKAGE
NEVER = 2**63
"""As the time of import: later than any file."""


@pytest.fixture
def package(tmp_path, monkeypatch, caplog):
    """Write a package whose kernels are in two files, and return its folder."""
    caplog.set_level(logging.INFO)
    folder = tmp_path / "plug"
    folder.mkdir()
    for name, source in SOURCES.items():
        (folder / name).write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python does not look at content
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setattr(config, "BOUNDSCHECK", None)
    monkeypatch.setattr(kernel_cache, "IMPORTED", NEVER)
    return folder


def forget() -> None:
    """Let the package be imported anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("plug", "given")]:
        del sys.modules[name]
    for known in ("_digest", "_folder", "_private_folder", "_say"):
        getattr(kernel_cache, known).cache_clear()


@pytest.fixture
def run(package):
    """Return a function: import the package as a new process would, and call its outer kernel.

    It returns the kernel's answer for 1, and whether it was compiled.
    """

    def run():
        forget()
        twice = importlib.import_module("plug.outer").twice
        return twice(1), bool(twice.compiled.stats.cache_misses)

    yield run
    forget()


def edit(file: Path, before: str, after: str) -> None:
    """Edit a file; its size and time stay what they were."""
    status, source = file.stat(), file.read_text()
    assert before in source
    assert len(before) == len(after)
    file.write_text(source.replace(before, after))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def kept(folder: Path) -> dict[str, bytes]:
    """Return what is kept in a folder: names of files and what they hold."""
    return {file.name: file.read_bytes() for file in folder.rglob("*.kernel")}


@pytest.mark.parametrize(
    ("file", "before", "after", "expected"),
    [
        ("inner.py", "x + 1", "x + 6", 14),
        ("outer.py", "2 *", "5 *", 10),
        ("limits.py", "10", " 1", 2),
    ],
)
def test_a_change_replaces_what_was_compiled(run, package, file, before, after, expected):
    assert [run(), run()] == [(4, True), (4, False)]
    old = kept(package)
    edit(package / file, before, after)
    assert [run(), run()] == [(expected, True), (expected, False)]
    assert kept(package).keys() == old.keys()
    assert not set(kept(package).values()) & set(old.values())


def test_a_change_of_a_kernel_that_another_is_given_replaces_both(package):
    """The two are of different packages."""

    def run(module):
        forget()
        given, taking = importlib.import_module(module), importlib.import_module("plug.outer")
        return taking.twice(given.added, 1), bool(taking.twice.compiled.stats.cache_misses)

    other = package.with_name("given")
    other.mkdir()
    for file in (other / "one.py", other / "two.py"):
        file.write_text(GIVEN)
    (package / "outer.py").write_text(TAKING)
    assert [run("given.one"), run("given.one")] == [(4, True), (4, False)]
    assert [run("given.two"), run("given.one")] == [(4, True), (4, False)]
    old = kept(package)
    edit(other / "one.py", "x + 1", "x + 6")
    assert [run("given.one"), run("given.one")] == [(14, True), (14, False)]
    assert run("given.two") == (4, True)
    assert kept(package).keys() == old.keys()
    assert not set(kept(package).values()) & set(old.values())


def test_kernels_of_like_code_in_two_scripts_are_told_apart(package):
    """Both scripts are the module ``__main__`` of a process."""
    for name in ("one", "two"):
        (package / f"{name}.py").write_text(GIVEN)
    forget()
    modules = map(importlib.import_module, ("plug.one", "plug.two"))
    one, two = (kernel_cache.KernelCache(each.added.py_func, wrapped=False) for each in modules)
    assert one._stamp != two._stamp


def test_another_version_of_numba_compiles_again(run, package, monkeypatch):
    run()
    monkeypatch.setattr(kernel_cache, "VERSIONS", ("0.1", *kernel_cache.VERSIONS[1:]))
    assert [run(), run()] == [(4, True), (4, False)]


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b""])
def test_what_a_power_failure_leaves_is_not_loaded(run, package, damage):
    run()
    for file in package.rglob("*.kernel"):
        file.write_bytes(damage(file.read_bytes()))
    assert [run(), run()] == [(4, True), (4, False)]


def test_kernels_of_files_that_changed_in_the_meantime_are_not_kept(
    run, package, monkeypatch, caplog
):
    monkeypatch.setattr(kernel_cache, "IMPORTED", (package / "inner.py").stat().st_ctime_ns)
    assert [run(), run()] == [(4, True), (4, True)]
    assert kept(package) == {}
    assert "changed since this process started" in caplog.text


def test_kernels_with_bounds_checks_are_kept_beside_those_without(run, package, monkeypatch):
    (package / "outer.py").write_text(PEEKING)
    peeked = run()
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    for _ in range(2):
        with pytest.raises(IndexError):
            run()
    monkeypatch.setattr(config, "BOUNDSCHECK", None)
    assert run()[1] is False
    assert peeked[1] is True


def test_the_seal_covers_each_file_with_kernels_and_what_they_take_from_others():
    covered = {path for path, _ in kernel_cache.source_files(OURS, nested=True)}
    with_kernels = {path: used for path in OURS.rglob("*.py") if (used := used_by_kernels(path))}
    assert len(with_kernels) > 30
    for path, used in with_kernels.items():
        homes = {OURS.parent.joinpath(*name.split(".")).with_suffix(".py") for name in used}
        assert {path, *homes} <= covered


def used_by_kernels(path: Path) -> set[str]:
    """Return the modules of optsched from which a file takes names that its kernels use."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    kernels = [f for f in functions if "kernel" in " ".join(map(ast.unparse, f.decorator_list))]
    parts = [each for kernel in kernels for part in kernel.body for each in ast.walk(part)]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return {
        f"{node.module}.{alias.name}" if _is_package(node.module) else node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("optsched.")
        for alias in node.names
        if (alias.asname or alias.name) in names
    }


def _is_package(module: str) -> bool:
    return (OURS.parent.joinpath(*module.split(".")) / "__init__.py").is_file()


@pytest.fixture
def unwritable(package, monkeypatch, tmp_path):
    """Let kernels be kept neither beside their source, nor in the home."""
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    (package / "__pycache__").write_text("a file, so that not even root can write a folder here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(package / "__pycache__" / "cache"))
    monkeypatch.setattr(config, "CACHE_DIR", str(package / "__pycache__" / "numba"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"optsched-kernels-{os.geteuid()}"


def test_without_a_lasting_folder_kernels_are_kept_in_a_temporary_one(run, unwritable, caplog):
    assert [run(), run()] == [(4, True), (4, False)]
    assert stat.S_IMODE(unwritable.stat().st_mode) == 0o700
    assert len(kept(unwritable)) == 2
    said = f"no folder of your own can be written; compiled kernels are kept in {unwritable}"
    assert [one for one in caplog.messages if "can be written" in one] == [said] * 2


def open_to_all(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def link(folder: Path) -> None:
    folder.with_name("elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.with_name("elsewhere"))


def of_another(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(folder, 65534, -1)


@pytest.mark.parametrize(
    "prepare", [open_to_all, link, of_another, lambda folder: folder.parent.chmod(0o777)]
)
def test_a_folder_that_others_can_write_is_not_used(run, unwritable, caplog, prepare):
    prepare(unwritable)
    assert [run(), run()] == [(4, True), (4, True)]
    assert kept(unwritable.parent) == {}
    assert "every run compiles its kernels" in caplog.text
    if prepare is of_another:
        assert f"{unwritable} belongs to another user; every run compiles" in caplog.text


@pytest.mark.parametrize("prepare", [open_to_all, of_another])
@pytest.mark.parametrize("given", [True, False])
def test_kernels_that_others_may_have_put_there_are_not_loaded(
    run, package, monkeypatch, tmp_path, given, prepare
):
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    folder = package / "__pycache__"
    if given:
        monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "numba"))
        (package / "__pycache__").write_text("no folder")
        forget()
        folder = kernel_cache._folder(package)
        shutil.rmtree(folder)
    prepare(folder)
    assert [run(), run()] == [(4, True), (4, False)]
    assert kept(folder) == {}
    assert len(kept(home)) == 2


def test_what_a_killed_process_left_goes_with_the_next_kernel(run, package):
    run()
    [name, _] = kept(package)
    old, new = (package / "__pycache__" / f"{name}.{k}" for k in "ab")
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (0, 0))
    edit(package / "inner.py", "x + 1", "x + 6")
    run()
    assert [path.name for path in new.parent.glob("*.kernel.*")] == [new.name]


def test_an_interrupt_leaves_no_temporary_file(run, package, monkeypatch):
    def interrupted(path, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert list((package / "__pycache__").iterdir()) == []


def test_a_source_that_vanishes_is_no_error(package, monkeypatch, caplog):
    forget()
    gone = package / "gone.py"
    monkeypatch.setattr(kernel_cache, "source_files", lambda folder, nested: [(gone, b"")])
    assert kernel_cache._digest(package, True) is None
    assert "gone.py has changed" in caplog.text


def test_a_full_disk_is_told_and_nothing_else(run, package, monkeypatch, caplog):

    def full(path, mode):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", full)
    assert [run(), run()] == [(4, True), (4, True)]
    assert "cannot be kept there: No space left on device" in caplog.text


@pytest.mark.long
@pytest.mark.parametrize("file", ["policies/test_line.py", "traces/test_swf.py"])
def test_kernels_stay_within_their_arrays(file):
    """A small part of what ``make bounds`` does."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", file]
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    subprocess.run(words, cwd=Path(__file__).parent, env=env, check=True)


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
def other(function, x):
    return x * function(x)

@kernel
def last(x):
    return inner(x)

shown, times = [], []
compilation.show(lambda *counts: shown.append(counts) or times.append(compilation.clock()))
began, counted = time.perf_counter(), compilation.clock()
outer(1), other(last, 1), outer(1)
passed, counted = time.perf_counter() - began, compilation.clock() - counted
print((shown, len({*times}), counted < passed))
"""


def python(tmp_path, *words: str) -> tuple[str, str]:
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
    shown, times, is_less = eval(python(tmp_path, "kernels.py")[0])
    assert shown[0] == (0, 3)
    assert shown.count((3, 3)) == 1
    assert shown[-4:] == [(3, 5), (3, 5), (4, 5), (5, 5)]
    assert sorted(shown) == shown
    assert times <= 5 < len(shown)  # one within each compilation, and one after it
    assert is_less
    assert eval(python(tmp_path, "kernels.py")[0])[0] == []  # all are on disk


@pytest.mark.long
def test_compilation_is_announced_by_the_first_command_that_compiles(tmp_path):
    def says_so(words: str) -> bool:
        return line in python(tmp_path, "-m", "optsched", *words.split())[1]

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
    assert [python(tmp_path, "-c", code)[0] for _ in range(2)] == ["True\n", "False\n"]


@pytest.mark.long
def test_texts_of_few_runs_compile_nothing_and_are_the_same(tmp_path):
    code = """
from numpy import array
from optsched.machines import texts
texts.FEW = {}
runs = array([0, 2]), array([2, 3]), array([[0, 1], [9, 12], [100, 1001]])
print(*texts.Texts(*texts.interval_text(*runs)), sep=", ")
"""
    for few, compiled in ((4, 0), (3, 1)):
        assert python(tmp_path, "-c", code.format(few))[0] == "0 9-11, 100-1000\n"
        assert len(list(tmp_path.rglob("texts.write_texts*.kernel"))) == compiled


@pytest.mark.long
def test_the_doctor_compiles_no_solver(tmp_path):
    printed, said = python(tmp_path, "-m", "optsched", "doctor", "--json")
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
    codes = python(tmp_path, "-c", code)[0].splitlines()[-1]
    assert set(eval(codes)) == {0}
    assert list(tmp_path.rglob("*.kernel")) == []


def test_a_failure_of_a_part_is_raised(monkeypatch):
    parts = [partial(len, ()), partial(len, None)]
    monkeypatch.setattr(doctor_command, "list_parts", lambda: parts)
    with pytest.raises(TypeError):
        doctor_command.compile_all()
