"""Snapshots on file. File format: ``docs/formats/snapshot.md``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from optsched.errors import InputError
from optsched.files import FolderKind
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.window_mkp_text import parse_window_mkp_text
from optsched.stored import read_bytes, read_head, write_bytes
from optsched.text_files import parse_json

SEPARATORS = re.compile(r"[\[,\s]*")
"""What stands before an element of a JSON list."""

PATTERNS = ("*.json", "*.json.gz", "*.txt")
"""The files of a folder that may be snapshots."""

CAPTURE = FolderKind("captured snapshots", "capture.json", ("decision-*.json",))
"""What a simulation captures to."""


def snapshot_files(path: Path) -> list[Path]:
    """Return the files that a path stands for: itself, or the snapshots in that folder.

    The record that a capture leaves beside its snapshots is none, though a shell may name it too.

    A text file (``.txt``) in a folder is one if it begins with a number, as instances do.

    Raises
    ------
    InputError
        If it is a folder without a snapshot.
    """
    if not path.is_dir():
        return [] if path.name == CAPTURE.marker else [path]
    files = sorted(file for pattern in PATTERNS for file in path.glob(pattern))
    found = [file for file in files if file.name != CAPTURE.marker and not _is_prose(file)]
    if not found:
        raise InputError(f"holds no snapshot ({', '.join(PATTERNS)})", file=path)
    return found


def _is_prose(file: Path) -> bool:
    return file.suffix == ".txt" and not re.match(rb"\s*\d", read_head(file))


def read_snapshot(path: str | Path) -> Snapshot:
    """Read a snapshot (JSON, plain or gzipped), or a literature instance (``.txt``).

    Raises
    ------
    InputError
        If the file cannot be read, is not JSON, or holds mistakes; all of them at once.
    """
    return read_hashed(path)[0]


def read_hashed(path: str | Path) -> tuple[Snapshot, str]:
    """Return a snapshot and the SHA-256 of its file, read once; see `read_snapshot`."""
    path = Path(path)
    data, sha256 = read_bytes(path)
    parse = parse_window_mkp_text if path.suffix == ".txt" else _parsed
    return parse(data, path), sha256


def _parsed(data: bytes, path: Path) -> Snapshot:
    try:
        fields = parse_json(data)
    except InputError as error:
        raise error.within(path) from None
    try:
        return Snapshot.from_json(fields)
    except InputError as error:
        mistakes = [_with_line(mistake, data.decode("utf-8-sig")) for mistake in error.mistakes]
        raise InputError(*mistakes, file=path, field=error.field) from None


def _with_line(mistake: str, text: str) -> str:
    """Put the line in front of a mistake that begins with a field, or with a place in its list."""
    named = re.match(r"(\w+)(?:\[(\d+)\])?: ", mistake)
    key = named and re.search(rf'"{named[1]}"\s*:\s*', text)
    if not named or not key:
        return mistake
    place = key.start()
    if named[2]:
        decode, end = json.JSONDecoder().raw_decode, key.end()
        for _ in range(int(named[2]) + 1):
            gap = SEPARATORS.match(text, end)
            place = gap.end() if gap else end
            _, end = decode(text, place)
    return f"line {text.count(chr(10), 0, place) + 1}, {mistake}"


def load_snapshot(path: str | Path) -> Problem[Any]:
    """Read the problem of a snapshot; see `read_snapshot`."""
    return read_snapshot(path).problem


def save_snapshot(snapshot: Snapshot | Problem[Any], path: str | Path) -> None:
    """Write a snapshot or a bare problem; under a temporary name first, then renamed."""
    if isinstance(snapshot, Problem):
        snapshot = Snapshot(snapshot)
    write_bytes(path, (json.dumps(snapshot.to_json(), indent=1) + "\n").encode())
