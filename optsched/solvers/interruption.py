"""Ctrl-C during a solve: the first one ends the search, which returns the best solution so far."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 5.0
"""Seconds after which a search that does not end is interrupted as by a second Ctrl-C."""

_requested = False


def requested() -> bool:
    """Return whether Ctrl-C was pressed during this solve; searches ask as they do for limits."""
    return _requested


@contextmanager
def noted_once() -> Iterator[None]:
    """Note the first Ctrl-C instead of raising `KeyboardInterrupt`, which a second one does again.

    Only the main thread receives signals; in other threads, and where Ctrl-C is ignored, nothing
    changes.
    """
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or before in (signal.SIG_IGN, signal.SIG_DFL, None):
        yield
        return
    timer = threading.Timer(PATIENCE, _thread.interrupt_main)
    timer.daemon = True

    def note(_number: int, _frame: object) -> None:
        global _requested
        _requested = True
        signal.signal(signal.SIGINT, before)
        timer.start()

    global _requested
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        timer.cancel()
        _requested = False
