"""``@kernel``: functions that numba compiles, once on a machine; then they are on its disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import event

from optsched.kernel_cache import KernelCache


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep what was compiled on disk.

    A kernel may call others of its own package and those of optsched. What is on disk is compiled
    again when a file of these packages that kernels can depend on has changed.
    """
    compiled = njit(function)
    compiled._cache = KernelCache(function)  # numba has no public way to it
    return compiled


class _Announcement(event.Listener):  # type: ignore[misc]
    """Tells, once in a process, why the first call takes so long."""

    def on_start(self, _event: event.Event) -> None:
        event.unregister("numba:compile", self)
        logging.getLogger("optsched").info("compiling kernels, once on this machine")

    def on_end(self, _event: event.Event) -> None:
        pass


event.register("numba:compile", _Announcement())
