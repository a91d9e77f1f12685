"""A trace of a few jobs, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.traces.reading import write_trace


@pytest.fixture(scope="session")
def write_tiny(make_trace) -> Callable[[Path], None]:
    """Return the function that writes ``tiny.swf``, a trace of 30 jobs, into a folder."""
    rows = [(20 * k, 60 + 11 * k % 90, 200, 1 + (7 * k) % 9) for k in range(30)]
    trace = make_trace(*rows)
    return lambda folder: write_trace(trace, folder / "tiny.swf")


@pytest.fixture
def tiny(write_tiny, tmp_path, monkeypatch) -> Path:
    """Return the folder of ``tiny.swf``, which is the current one."""
    write_tiny(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
