"""Sample traces, which come with optsched, by name: ``sample-256``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from optsched.content import bundled


@cache
def samples() -> dict[str, Path]:
    """Return the files of the sample traces by name."""
    files = sorted((bundled("traces") / "samples").iterdir())
    return {file.stem: file for file in files if file.suffix != ".toml"}  # which are machines
