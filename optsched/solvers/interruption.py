"""Ctrl-C during a solve: the first one ends the search, which returns the best solution so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 5.0
"""Seconds after which a search that does not end is interrupted as by a second Ctrl-C."""

_requested = False


def requested() -> bool:
    """Return whether Ctrl-C was pressed during this solve; searches ask as they do for limits."""
    return _requested


@contextmanager
def noted_once(
    forward: Callable[[], object] | None = None, patience: float | None = None
) -> Iterator[None]:
    """Note the first Ctrl-C instead of raising `KeyboardInterrupt`, which a second one does again.

    Only the main thread receives signals; in other threads, and where Ctrl-C is ignored, nothing
    changes.

    `forward`: called at the first Ctrl-C, to pass it on to the process that searches; `patience`:
    seconds after which the first Ctrl-C counts as two, `PATIENCE` by default.
    """
    before = signal.getsignal(signal.SIGINT)
    main = threading.main_thread()
    if threading.current_thread() is not main or before in (signal.SIG_IGN, signal.SIG_DFL, None):
        yield
        return
    timer = threading.Timer(
        PATIENCE if patience is None else patience,
        lambda: signal.pthread_kill(main.ident or 0, signal.SIGINT),
    )
    timer.daemon = True

    def note(_number: int, _frame: object) -> None:
        global _requested
        _requested = True
        signal.signal(signal.SIGINT, before)
        timer.start()
        if forward is not None:
            forward()

    global _requested
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        timer.cancel()
        _requested = False
