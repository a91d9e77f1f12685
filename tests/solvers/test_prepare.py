"""After ``prepare`` no solve compiles or loads a kernel: the time limit is for the search."""

from __future__ import annotations

import subprocess
import sys

import pytest

from optsched import registry
from optsched.content import bundled
from optsched.models.snapshot_file import snapshot_files

FORKS = """
import gc, os, sys
from numba.core.dispatcher import Dispatcher
from optsched import registry
from optsched.models.snapshot_file import read_snapshot
from optsched.solvers.result import Budget

def kernels():
    found = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    return {(one.py_func.__qualname__, str(each)) for one in found for each in one.signatures}

problems = [(file, read_snapshot(file).problem) for file in sys.argv[1].split()]
for name in sys.argv[2:]:
    if os.fork():
        assert os.wait()[1] == 0
        continue
    for file, problem in problems:
        solver = registry.solvers[name]()
        solver.prepare(problem)
        before = kernels()
        solver.solve(problem, budget=Budget(seconds=0.1))
        for late in sorted(kernels() - before):
            print(name, file, *late)
    sys.stdout.flush()
    os._exit(0)
"""
"""Each solver in a process of its own, where no other has loaded what it needs."""


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize("model", list(registry.models))
def test_no_kernel_is_compiled_within_the_time_limit(model):
    files = list(snapshot_files(bundled("models") / model))
    own = [name for name in registry.solvers if model in (registry.solvers[name].models or ())]
    command = [sys.executable, "-c", FORKS, "\n".join(map(str, files)), *own]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
