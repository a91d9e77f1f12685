"""What notebooks show of runs, results, problems and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def display_of(kind: str) -> Callable[..., Any]:
    """Return the function of `optsched.report.displays` for a kind of object.

    Objects know it by name alone, since pages are on a floor above them.
    """
    function: Callable[..., Any] = getattr(import_module("optsched.report.displays"), kind)
    return function
