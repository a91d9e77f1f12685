"""Sample traces, which come with optsched, by name: ``sample-256``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from optsched.content import bundled


@cache
def samples() -> dict[str, Path]:
    """Return the files of the sample traces by name."""
    return {file.stem: file for file in sorted((bundled("traces") / "samples").iterdir())}
