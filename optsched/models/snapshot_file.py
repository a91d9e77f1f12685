"""Snapshots on file. File format: ``docs/formats/snapshot.md``."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from optsched.binary_files import MOST, in_memory, read_bytes, read_head, write_bytes
from optsched.errors import InputError, path_of
from optsched.files import FolderKind
from optsched.json_text import json_text
from optsched.models.problem import Problem
from optsched.models.reference_snapshots import SCHEMA_FILE, find_snapshot, of_model
from optsched.models.snapshot import Snapshot
from optsched.models.window_mkp.text import MOST_TEXT, parse_window_mkp_text
from optsched.text_files import parse_json

SEPARATORS = re.compile(r"[,:\s]*")
"""Separators of the parts of a JSON list or object."""

PATTERNS = ("*.json", "*.json.gz", "*.txt")
"""The files of a folder that may be snapshots."""

CAPTURE = FolderKind("captured snapshots", "capture.json", ("decision-*.json",))
"""The folder that a simulation captures to."""


def snapshot_files(path: Path) -> list[Path]:
    """Return the snapshot files of a path: the file itself, or the snapshots in a folder.

    The name of a model stands for its reference snapshots, of which the names are returned.
    The record of a capture and a schema are skipped, even if the path names one, as a shell
    pattern may. A text file (``.txt``) in a folder is a snapshot if it begins with a number, as
    instances do.

    Raises
    ------
    InputError
        If the path is a folder without a snapshot.
    """
    beside = (CAPTURE.marker, SCHEMA_FILE)
    if not os.path.lexists(path) and (names := of_model(str(path))):
        return [Path(name) for name in names]
    if not path.is_dir():
        return [] if path.name in beside else [path]
    files = sorted(file for pattern in PATTERNS for file in path.glob(pattern))
    found = [file for file in files if file.name not in beside and not _is_prose(file)]
    if not found:
        raise InputError(f"holds no snapshot ({', '.join(PATTERNS)})", file=path)
    return found


def _is_prose(file: Path) -> bool:
    return file.suffix == ".txt" and not re.match(rb"\s*\d", read_head(file))


def read_snapshot(path: str | Path) -> Snapshot:
    """Read a snapshot (JSON, plain or gzipped), or a literature instance (``.txt``).

    Parameters
    ----------
    path : str or path
        The file, or the name of a reference snapshot: ``yang-2014-example``, or with its model,
        ``window-mkp/yang-2014-example``. A file of that name takes precedence.

    Raises
    ------
    InputError
        If the file cannot be read, is not JSON, or has mistakes; the message lists all mistakes.
    """
    snapshot = read_hashed(path)[0]
    problem = snapshot.problem
    logging.getLogger("optsched").debug("read %s: %s %s", path, problem.name, problem.size)
    return snapshot


def read_hashed(path: str | Path) -> tuple[Snapshot, str]:
    """Return a snapshot and the SHA-256 of its file, read once; see `read_snapshot`."""
    path = find_snapshot(path_of(path, "path", "expected the file or the name of a snapshot"))
    is_text = path.suffix == ".txt"
    parse = parse_window_mkp_text if is_text else _parsed
    data, sha256 = read_bytes(path, MOST_TEXT if is_text else MOST)
    with in_memory(path):
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
    """Return a mistake with the line of its field in front, if the field is found."""
    named = re.match(r"(\w+(?:\[\d+\]|\.\w+)*): ", mistake)
    place = None if named is None else _place(text, re.findall(r"\w+", named[1]))
    if place is None:
        return mistake
    return f"line {text.count(chr(10), 0, place) + 1}, {mistake}"


def _place(text: str, steps: Sequence[str]) -> int | None:
    """Return the position of the innermost existing step into a JSON object, None without any.

    Parameters
    ----------
    text : str
        The JSON object.
    steps : sequence of str
        Names of members and numbers of elements, from the outside to the inside.
    """
    decode = json.JSONDecoder().raw_decode
    found, at = None, _next(text, 0)
    for step in steps:
        opening, at = text[at], _next(text, at + 1)
        if opening not in "{[":
            break
        number = 0
        while text[at] not in "]}":
            begins, name = at, str(number)
            if opening == "{":
                name, at = decode(text, at)
                at = _next(text, at)
            if name == step:
                found = begins
                break
            _, at = decode(text, at)
            at = _next(text, at)
            number += 1
        else:
            break
    return found


def _next(text: str, at: int) -> int:
    """Return the position of the next value or of the end of the list."""
    separators = SEPARATORS.match(text, at)
    assert separators is not None
    return separators.end()


def load_snapshot(path: str | Path) -> Problem[Any]:
    """Read the problem of a snapshot: a file, or the name of one; see `read_snapshot`.

    >>> load_snapshot("yang-2014-example").capacities.tolist()
    [3, 6, 6]
    """
    return read_snapshot(path).problem


def save_snapshot(snapshot: Snapshot | Problem[Any], path: str | Path) -> None:
    """Write a snapshot or a bare problem, under a temporary name that is then renamed."""
    if isinstance(snapshot, Problem):
        snapshot = Snapshot(snapshot)
    write_bytes(path, (json_text(snapshot.to_json(), indent=1) + "\n").encode())
