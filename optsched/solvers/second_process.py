"""A second process that compiles kernels at the same time as this one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from optsched.compilation import cores

PATIENCE = 60.0
"""Seconds to wait for the second process after the end of the block."""


@contextmanager
def called_beside(function: Callable[[], None]) -> Iterator[None]:
    """Call a function of a module in a second process during the block, if there are two cores.

    The kernels that it compiles are on disk after the block. If the process fails, they are
    compiled when they are needed.
    """
    process = None
    if cores() > 1 and sys.executable:
        call = f"from {function.__module__} import {function.__name__} as call; call()"
        command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {call}"]
        nothing = subprocess.DEVNULL
        with suppress(OSError):
            process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        yield
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
    finally:
        if process is not None:
            process.kill()
            process.wait()
