"""Which runs of a sweep are finished: their folders hold what is kept of them, whole.

A folder gets its name when it is complete and on the disk. What else may befall it, a copy that
broke off for instance, leaves files that are missing, empty or cut.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.text_files import parse_json

if TYPE_CHECKING:
    from optsched.report.run_folder import Keep

SUMMARY = "summary.json"
TABLES = ("jobs.parquet", "decisions.parquet")
NEEDED: dict[Keep, tuple[str, ...]] = {
    "summary": ("run.json", SUMMARY, "timing.json"),
    "jobs": ("run.json", SUMMARY, "timing.json", *TABLES),
    "all": ("run.json", SUMMARY, "timing.json", *TABLES, "jobs.csv"),
}
"""What a folder must hold to count as finished."""

DRAWN = (".svg", ".png", ".html")
"""Files that are never empty."""

PARQUET = b"PAR1"
"""How a Parquet file begins, and ends after the length of its footer."""


def fault(folder: Path, keep: Keep) -> str | None:
    """Return what is wrong with the folder of a run, if it is there; none if it is finished.

    Parameters
    ----------
    folder : path
        The folder.
    keep : {"summary", "jobs", "all"}
        How much must have been kept.
    """
    try:
        found = set(os.listdir(folder))
        for name in NEEDED[keep]:
            if name not in found:
                return f"{folder / name} is missing"
        if flaw := _flaw(folder):
            return flaw
        for name in sorted(found):
            if not _is_whole(folder / name):
                return f"{folder / name} is damaged"
    except OSError as error:
        return f"{error.filename or folder} cannot be read"
    return None


def is_finished(folder: Path, keep: Keep) -> bool:
    """Return whether a folder holds a run of which at least that much was kept."""
    return folder.is_dir() and fault(folder, keep) is None


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object of a file that is there; none if it is damaged."""
    try:
        read = parse_json(path.read_bytes())
    except InputError:
        return None
    return read if isinstance(read, dict) else None


def _flaw(folder: Path) -> str | None:
    """Return which of the files that say what was run, and how it went, is damaged."""
    from optsched.report.run_page import read_config, read_summary

    try:
        read_config(folder)
        read_summary(folder)
    except InputError as error:
        return f"{error.file} is damaged"
    return None


def _is_whole(path: Path) -> bool:
    """Return whether nothing of a file is missing, as far as a glance tells."""
    if path.suffix == ".json":
        return read_object(path) is not None
    if path.suffix == ".parquet":
        return _has_its_footer(path)
    if path.suffix == ".csv":
        summary = read_object(path.with_name(SUMMARY)) or {}
        return bool(path.read_bytes().count(b"\n") > summary.get("jobs", 0))
    return path.suffix not in DRAWN or path.stat().st_size > 0


def _has_its_footer(path: Path) -> bool:
    with path.open("rb") as file:
        begins = file.read(4)
        size = file.seek(0, os.SEEK_END)
        if size < 12:
            return False
        file.seek(-8, os.SEEK_END)
        length, ends = int.from_bytes(file.read(4), "little"), file.read(4)
    return begins == ends == PARQUET and length <= size - 12
