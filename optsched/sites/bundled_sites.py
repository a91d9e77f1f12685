"""Bundled sites, which come with optsched, by name: ``campus``."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from optsched.content import bundled
from optsched.errors import no_such_file
from optsched.files import check_name


@cache
def bundled_sites() -> dict[str, Path]:
    """Return the bundled sites by name: files, and folders with captured output of Slurm."""
    paths = sorted(bundled("sites").iterdir())
    return {path.stem: path for path in paths if path.suffix == ".toml" or path.is_dir()}


def find_site(path_or_name: str | Path) -> Path:
    """Return the file or folder of a path, or that of the name of a bundled site.

    A file or folder of that name takes precedence.
    """
    check_name(path_or_name)
    path, known = Path(path_or_name), bundled_sites()
    if os.path.lexists(path):
        return path
    if str(path) in known:
        return known[str(path)]
    unnamed = "" if path.suffix else ", and no name in `optsched list sites`"
    raise no_such_file(path, known, f"no such file{unnamed}")
