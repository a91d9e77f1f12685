"""Functions called in a second process."""

from __future__ import annotations

import importlib
import os
import sys
import time

import pytest

from optsched.solvers.window_mkp import branch_and_bound
from optsched.solvers.window_mkp.branch_and_bound import called_beside

MODULE = """
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
    (tmp_path / "in_second_process.py").write_text(MODULE)
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
