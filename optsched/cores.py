"""Cores of this machine."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the number of cores that this process may use, which a batch system may limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
