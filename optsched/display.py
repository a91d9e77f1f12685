"""What notebooks show of runs, results, problems and comparisons."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def display_of(kind: str) -> Any:
    """Return the module of `optsched.report.displays` for a kind of object, with ``html(shown)``.

    Objects know it by name alone, since pages are on a floor above them.
    """
    return import_module(f"optsched.report.displays.{kind}")
