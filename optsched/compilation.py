"""What this process works with: its cores, the kernels to compile, a clock without their time."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger("optsched.compilation")

_needed: set[Any] = set()
_ready: set[Any] = set()
_begun: list[float] = []  # one time for each kernel that is being compiled, the outermost first
_spent = 0.0
_show: Callable[[int, int], None] | None = None


def cores() -> int:
    """Return the number of cores that this process may use, which a batch system may limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def clock() -> float:
    """Return seconds since an arbitrary time, without those in which kernels were compiled."""
    return (_begun[0] if _begun else time.perf_counter()) - _spent


def show(progress: Callable[[int, int], None] | None) -> None:
    """Call a function with the numbers of compiled and of needed kernels whenever they change.

    The needed kernels are those that the first kernel calls, directly or through others; more
    become known with the next kernel.
    """
    global _show
    _show = progress


def announces() -> bool:
    """Return whether a line in the log, in place of a function, tells that kernels are compiled."""
    return _show is None and log.isEnabledFor(logging.INFO)


def begin(function: Callable[..., Any], *given: Callable[..., Any]) -> None:
    """Note that the compilation of a kernel begins, which is given other kernels."""
    waiting: list[Any] = [function, *given]
    while waiting:  # also those that they call, directly or through others
        if (one := waiting.pop()) not in _needed:
            _needed.add(one)
            named = map(one.__globals__.get, one.__code__.co_names)
            waiting += [value.py_func for value in named if hasattr(value, "py_func")]
    _ready.discard(function)  # it may be for other types
    _begun.append(time.perf_counter())
    log.debug("compiling %s, kernel %d", function.__name__, len(_ready) + len(_begun))
    _report()


def end(function: Callable[..., Any]) -> None:
    """Note that the compilation of a kernel ends."""
    global _spent
    _ready.add(function)
    began = _begun.pop()
    if not _begun:
        _spent += time.perf_counter() - began
        _ready.update(_needed)
    _report()


def _report() -> None:
    if _show is not None:
        _show(len(_needed & _ready), len(_needed))
