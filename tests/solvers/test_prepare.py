"""After ``prepare`` no solve compiles or loads a kernel: the time limit is for the search."""

import importlib
import os
import subprocess
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest

from optsched import Budget, registry
from optsched.content import bundled
from optsched.kernel_cache import NotOnDiskError
from optsched.models import WindowMKP
from optsched.models.snapshot_file import snapshot_files
from optsched.solvers.window_mkp import branch_and_bound
from optsched.solvers.window_mkp._lagrangian import strategy
from optsched.solvers.window_mkp.branch_and_bound import called_beside

FORKS = """
import os, sys
from contextlib import suppress
from optsched import registry
from optsched.errors import InputError
from optsched.kernel_cache import KernelCache
from optsched.models.snapshot_file import read_snapshot
from optsched.solvers.result import Budget

asked = []
load_overload = KernelCache.load_overload

def noted(self, signature, target):  # each kernel that is not loaded is looked for on disk
    asked.append((self._function.__qualname__, str(signature)))
    return load_overload(self, signature, target)

KernelCache.load_overload = noted

own = [(n, model) for n in eval(sys.argv.pop()) for model in registry.solvers[n].models or ()]
found = [(file, read_snapshot(file).problem) for file in sys.argv[1:]]
for name, model in own:
    if os.fork():
        assert os.wait()[1] == 0
        continue
    for file, problem in found:
        if problem.name != model:
            continue
        solver = registry.solvers[name]()
        with suppress(InputError):  # a solver may refuse a problem of its model
            solver.prepare(problem)
        asked.clear()
        with suppress(InputError):
            solver.solve(problem, budget=Budget(seconds=0.1))
        for late in asked:
            print(name, file, *late)
    sys.stdout.flush()
    os._exit(0)
"""
"""Each solver in a process of its own, where no other has loaded what it needs."""


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("most", [1, pytest.param(None, marks=pytest.mark.long)])
def test_no_kernel_is_compiled_within_the_time_limit(most):
    """On so many snapshots of each model: one for the exact solvers, or all for all solvers."""
    solvers = [name for name in registry.solvers if registry.solvers[name].exact or most is None]
    folders = [bundled("models") / model for model in registry.models]
    files = [str(file) for folder in folders for file in [*snapshot_files(folder)][:most]]
    command = [sys.executable, "-c", FORKS, *files, repr(solvers)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_plain_search_reports_before_stronger_kernels_are_compiled(monkeypatch, caplog):
    called = []

    def call_other_kernels():
        called.append("here")
        if len(called) == 1:
            raise NotOnDiskError

    def beside(function):
        called.append("beside")
        assert function is strategy.call_column_search
        return nullcontext()

    monkeypatch.setattr(strategy, "call_other_kernels", call_other_kernels)
    monkeypatch.setattr(branch_and_bound, "called_beside", beside)
    branch_and_bound._prepare_lagrangian_search.cache_clear()
    caplog.set_level("DEBUG", "optsched")
    random = np.random.default_rng(1)
    window = WindowMKP(random.integers(100, 1000, 45), random.integers(100, 1000, 15))
    solver, few = branch_and_bound.BranchAndBound(), branch_and_bound.quick_nodes(45)
    for _ in range(2):
        solver.prepare(window)
    assert called == ["here", "beside", "here"]
    plain = solver.solve(window, budget=Budget(work=few))
    assert plain.objective < plain.bound
    assert f"plain search: objective {plain.objective:,}, bound {plain.bound:,}" in caplog.text
    branch_and_bound._prepare_lagrangian_search.cache_clear()


IN_SECOND_PROCESS = """
import os, time
from pathlib import Path

written = Path(__file__).with_name("written")

def write():
    temporary = written.with_suffix(".part")
    temporary.write_text(str(os.getpid()))
    temporary.rename(written)

def fail():
    write()
    raise ValueError

def hang():
    write()
    time.sleep(1000)
"""


@pytest.fixture
def functions(tmp_path, monkeypatch):
    (tmp_path / "in_second_process.py").write_text(IN_SECOND_PROCESS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(branch_and_bound, "cores", lambda: 2)
    yield importlib.import_module("in_second_process")
    del sys.modules["in_second_process"]


@pytest.mark.parametrize("name", ["write", "fail"])
def test_the_function_is_called_in_another_process(functions, name):
    with called_beside(getattr(functions, name)):
        pass
    assert int(functions.written.read_text()) != os.getpid()


@pytest.mark.parametrize("missing", [{"cores": lambda: 1}, {"sys.executable": "/missing"}])
def test_nothing_is_called_on_a_single_core_or_by_a_process_that_cannot_start(
    functions, monkeypatch, missing
):
    for name, value in missing.items():
        monkeypatch.setattr(f"{branch_and_bound.__name__}.{name}", value)
    with called_beside(functions.write):
        pass
    assert not functions.written.exists()


@pytest.mark.parametrize("interrupted", [True, False])
def test_the_process_ends_with_the_block(functions, monkeypatch, interrupted):
    monkeypatch.setattr(branch_and_bound, "PATIENCE", 0.01)
    try:
        with called_beside(functions.hang):
            while not functions.written.exists():
                time.sleep(0.01)
            if interrupted:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert interrupted
    with pytest.raises(ProcessLookupError):
        os.kill(int(functions.written.read_text()), 0)
