"""Kernels that numba compiles: once on a machine, then they are read from its cache."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import event


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep what was compiled on disk."""
    return njit(cache=True)(function)


class _Announcement(event.Listener):  # type: ignore[misc]
    """Tells, once in a process, why the first call takes so long."""

    def on_start(self, _event: event.Event) -> None:
        event.unregister("numba:compile", self)
        logging.getLogger("optsched").info("compiling kernels, once on this machine")

    def on_end(self, _event: event.Event) -> None:
        pass


event.register("numba:compile", _Announcement())
