"""HTML of runs, results and problems in notebooks."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def html_of(kind: str, shown: Any) -> str:
    """Return an object as HTML, by the module of its kind in `optsched.report.displays`."""
    html: str = import_module(f"optsched.report.displays.{kind}").html(shown)
    return html
