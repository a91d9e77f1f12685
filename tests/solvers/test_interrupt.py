"""Ctrl-C in a solve comes through at once, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from optsched import Budget, solve
from optsched.models import WindowMKP

HARD = WindowMKP(
    weights=[60, 99, 87, 73, 52, 91, 66, 78, 95, 57, 83, 70, 62, 88, 97, 54, 76, 81, 69, 93] * 3,
    capacities=[301, 317, 329, 331, 337, 347, 349, 353],
)


def children():
    """Return the processes that this one has started and that are not gone; those of Linux."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = status.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found.add(status.parent.name)
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals go to the main thread",
)
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("delay", [0.02, 0.4])
def test_ctrl_c_stops_a_solve(generic, delay, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    generic.prepare()
    before = children()
    stopped = threading.Event()

    def press() -> None:
        # again after a while, as people do: Python drops an interrupt that comes in a destructor
        pause = delay
        while not stopped.wait(pause):
            os.kill(os.getpid(), signal.SIGINT)
            pause = 3.0

    fingers = threading.Thread(target=press)
    fingers.start()
    began = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            solve(HARD, generic, budget=Budget(seconds=30))
    finally:
        stopped.set()
        fingers.join()
    assert time.perf_counter() - began < 15
    assert list(tmp_path.iterdir()) == []
    assert children() <= before
    assert solve(WindowMKP([3, 2], [4]), generic).objective == 3
