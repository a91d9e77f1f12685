"""Folders with captured output of the commands of Slurm, a file for each command."""

from __future__ import annotations

from pathlib import Path

from optsched.binary_files import read_bytes
from optsched.errors import InputError


def captured_folder(path: Path) -> Path:
    """Return a path that is a folder."""
    if not path.is_dir():
        what = "is a file" if path.exists() else "is not there"
        raise InputError(
            f"{what}; expected a folder with the output of Slurm's commands", file=path
        )
    return path


def captured_file(folder: Path, *names: str) -> Path | None:
    """Return the first of these files that is there, plain or with ``.gz``; None without one.

    An empty file does not count: a command that Slurm refuses leaves one.
    """
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file() and path.stat().st_size:
                return path
    return None


def captured_time(folder: Path) -> int | None:
    """Return the seconds since 1970 in the file ``now``; None if it is not there."""
    file = captured_file(folder, "now")
    if file is None:
        return None
    text = read_bytes(file)[0].decode("utf-8", errors="replace").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise InputError(f"{text[:60]!r}; expected seconds since 1970", file=file)
    return int(text)
