"""Decorator ``@kernel`` for functions that numba compiles once per machine and keeps on disk."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import event

from optsched.kernel_cache import KernelCache


def kernel(function: Callable[..., Any] | None = None, *, allocates: bool = True) -> Any:
    """Compile a function at its first call, and keep the result on disk.

    A kernel may call other kernels of its own package and of optsched. A result on disk is
    recompiled if a file of these packages that kernels can depend on has changed.

    Parameters
    ----------
    function : callable, optional
        The function; left out in ``@kernel(allocates=False)``.
    allocates : bool
        Whether the kernel may create arrays or lists, or call kernels that return such. Without,
        nothing counts the references to its arrays, which can take most of the time of kernels
        that call small kernels with many arrays.
    """
    if function is None:
        return functools.partial(kernel, allocates=allocates)
    compiled = njit(function, _nrt=allocates)  # numba has no public name for this
    compiled._cache = KernelCache(function)  # numba has no public interface for this
    return compiled


class _Announcement(event.Listener):  # type: ignore[misc]
    """Listener that logs, once per process, why the first call takes long."""

    def on_start(self, _event: event.Event) -> None:
        event.unregister("numba:compile", self)
        logging.getLogger("optsched").info("compiling kernels, once on this machine")

    def on_end(self, _event: event.Event) -> None:
        pass


event.register("numba:compile", _Announcement())
