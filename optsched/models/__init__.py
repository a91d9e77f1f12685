"""Decisions as optimisation problems: one module each, data, formulation and verification."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optsched.models.gang_packing import GangPacking as GangPacking
    from optsched.models.gang_packing import Packing as Packing
    from optsched.models.problem import Problem as Problem
    from optsched.models.problem import Violation as Violation
    from optsched.models.program import Program as Program
    from optsched.models.window_mkp import WindowMKP as WindowMKP

_HOME = {
    "GangPacking": "optsched.models.gang_packing",
    "Packing": "optsched.models.gang_packing",
    "Problem": "optsched.models.problem",
    "Program": "optsched.models.program",
    "Violation": "optsched.models.problem",
    "WindowMKP": "optsched.models.window_mkp",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'optsched.models' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
