"""The check whether the folder of a run is finished: all its files are there and undamaged.

A folder gets its name when it is complete and on the disk. Later damage, such as an interrupted
copy, leaves files that are missing, empty or truncated.
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
"""Files of a finished run, by the value of ``keep``."""

DRAWN = (".svg", ".png", ".html")
"""Files that are never empty."""

PARQUET = b"PAR1"
"""Magic number at the beginning and the end of a Parquet file."""


def fault(folder: Path, keep: Keep) -> str | None:
    """Return the first fault of an existing folder of a run, None if the run is finished."""
    try:
        found = set(os.listdir(folder))
        for name in NEEDED[keep]:
            if name not in found:
                return f"{folder / name} is missing"
        if damage := _damaged_record(folder):
            return damage
        for name in sorted(found):
            if not _is_complete(folder / name):
                return f"{folder / name} is damaged"
    except OSError as error:
        return f"{error.filename or folder} cannot be read"
    return None


def is_finished(folder: Path, keep: Keep) -> bool:
    """Return whether a folder holds a run with at least the files of `keep`."""
    return folder.is_dir() and fault(folder, keep) is None


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object of a file, None if the file is damaged."""
    try:
        read = parse_json(path.read_bytes())
    except InputError:
        return None
    return read if isinstance(read, dict) else None


def _damaged_record(folder: Path) -> str | None:
    """Return a message if the config or the summary of a run is damaged, None otherwise."""
    from optsched.report.run_page import read_config, read_summary

    try:
        read_config(folder)
        read_summary(folder)
    except InputError as error:
        return f"{error.file} is damaged"
    return None


def _is_complete(path: Path) -> bool:
    """Return whether a file passes a quick check for truncation."""
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
