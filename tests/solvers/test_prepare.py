"""After ``prepare`` no solve compiles or loads a kernel: the time limit is for the search."""

from __future__ import annotations

import subprocess
import sys
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

    def called_beside(function):
        called.append("beside")
        assert function is strategy.call_column_search
        return nullcontext()

    monkeypatch.setattr(strategy, "call_other_kernels", call_other_kernels)
    monkeypatch.setattr(branch_and_bound, "called_beside", called_beside)
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
