"""Snapshots on file, and problems in other formats. File format: ``docs/formats/snapshot.md``."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from optsched.content import SCHEMA_FILE, find_snapshot, of_model
from optsched.errors import InputError, brief, path_of
from optsched.files import (
    MOST,
    FolderKind,
    in_memory,
    json_text,
    read_bytes,
    read_head,
    write_bytes,
)
from optsched.models.integer_program.or_library import instances
from optsched.models.integer_program.program_files import parse_lp, parse_mps
from optsched.models.problem import Problem
from optsched.models.snapshot import FILE as TABLE
from optsched.models.snapshot import Snapshot, known_values, text_of
from optsched.models.window_mkp import parse_window_mkp_table, parse_window_mkp_text
from optsched.numbers import counted
from optsched.text_files import parse_json

FORMATS = {".lp": "LP", ".mps": "MPS"}
"""Name of the format by the suffix of its files."""

OTHERS = (".txt", ".csv", *FORMATS)
"""Suffixes of the files that are no snapshots."""

IN_COMMENT = re.compile(r"^\*\s*SENSE:\s*Max", re.IGNORECASE | re.MULTILINE)
"""The sense as PuLP writes it."""


def parse_program_file(data: bytes, path: Path, suffix: str) -> Snapshot:
    """Return the integer program of an LP or MPS file, decompressed."""
    text = text_of(data, path, FORMATS[suffix])
    if suffix == ".mps" and IN_COMMENT.search(text) and "OBJSENSE" not in text:
        problem = "is maximized by a comment (*SENSE) alone, which no reader of MPS heeds"
        raise InputError(f"{problem}; expected a section OBJSENSE", file=path)
    try:
        stated = parse_lp(text) if suffix == ".lp" else parse_mps(text)
    except InputError as error:
        raise error.within(path) from None
    return stated.snapshot(path)


SEPARATORS = re.compile(r"[,:\s]*")
"""Separators of the parts of a JSON list or object."""

PATTERNS = ("*.json", "*.json.gz", "*.txt", "*.lp", "*.mps", "*.mps.gz")
"""The files of a folder that may be snapshots."""

NUMBERED = re.compile(r"(.+\.txt(?:\.gz)?)#([1-9]\d{0,8})", re.DOTALL)
"""An instance of a file with several: ``mknap1.txt#3``."""

MOST_TEXT = 2**24
"""Largest size of a text file in bytes, several times the largest of the literature: 16 MiB."""

CAPTURE = FolderKind("captured snapshots", "capture.json", ("decision-*.json",))
"""The folder that a simulation captures to."""


def source_file(path: Path) -> Path:
    """Return the file that a path names, an instance in it for example: ``mknap1.txt#3``."""
    return _split(path)[0]


def sources(path: Path) -> tuple[Path, Path]:
    """Return the files that are read for a snapshot: its own, and the table beside, if there."""
    file = source_file(path)
    return file, file.parent / TABLE


def _split(path: Path) -> tuple[Path, int | None]:
    """Return a file, and the number of the instance in it, from 1, if the path names one."""
    numbered = NUMBERED.fullmatch(str(path))
    if numbered is None or path.exists():
        return path, None
    return Path(numbered[1]), int(numbered[2])


def snapshot_files(path: Path) -> list[Path]:
    """Return the snapshots of a path: the file itself, or those in a folder.

    The name of a model stands for its reference snapshots, of which the names are returned. A text
    file with several instances stands for them: ``mknap1.txt#1``, ``mknap1.txt#2``. The
    record of a capture and a schema are skipped, even if the path names one, as a shell pattern
    may. A text file (``.txt``) in a folder is a snapshot if it begins with a number, as instances
    do.
    """
    beside = (CAPTURE.marker, SCHEMA_FILE)
    if not os.path.lexists(path) and (names := of_model(str(path))):
        return [Path(name) for name in names]
    if not path.is_dir():
        return [] if path.name in beside else _instances(path)
    files = sorted(file for pattern in PATTERNS for file in path.glob(pattern))
    found = [file for file in files if file.name not in beside and not _is_prose(file)]
    if not found:
        raise InputError(f"holds no snapshot ({', '.join(PATTERNS)})", file=path)
    return [instance for file in found for instance in _instances(file)]


def _is_prose(file: Path) -> bool:
    return file.suffix == ".txt" and not re.match(rb"\s*\d", read_head(file))


def _instances(path: Path) -> list[Path]:
    """Return the instances of a file; the file itself if there is one, or it cannot be read."""
    if _suffix(path) != ".txt" or not path.is_file():
        return [path]
    try:
        found = instances(_words(read_bytes(path, MOST_TEXT)[0], path), path) or ()
    except InputError:  # reading the file tells it
        return [path]
    if len(found) < 2:
        return [path]
    return [path.with_name(f"{path.name}#{number}") for number in range(1, len(found) + 1)]


def _suffix(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix


def read_snapshot(path: str | Path) -> Snapshot:
    """Read a snapshot, or a problem in one of the other formats.

    The name tells the format: ``.txt`` is an instance of the literature, ``.csv`` a table of items
    and knapsacks, ``.lp`` and ``.mps`` an integer program, everything else a snapshot as JSON; all
    of them plain or gzipped. Known values in a table beside the file are added.

    `path`: the file, or the name of a reference snapshot: ``yang-2014-example``, or with its model,
    ``window-mkp/yang-2014-example``. A file of that name takes precedence.
    """
    snapshot = read_hashed(path)[0]
    problem = snapshot.problem
    logging.getLogger("optsched").debug("read %s: %s %s", path, problem.name, problem.size)
    return snapshot


def read_hashed(path: str | Path) -> tuple[Snapshot, str]:
    """Return a snapshot and the SHA-256 of its file, read once; see `read_snapshot`."""
    path = path_of(path, "path", "expected the file or the name of a snapshot")
    file, number = _split(path)
    file = find_snapshot(file)
    if file.is_dir():
        raise InputError(
            "is a folder; expected one of its files (compare takes folders)", file=file
        )
    suffix = _suffix(file)
    data, sha256 = read_bytes(file, MOST_TEXT if suffix in (".txt", ".csv") else MOST)
    with in_memory(file):
        if suffix == ".txt":
            snapshot = _of_text(_words(data, file), file, number)
        elif suffix == ".csv":
            snapshot = parse_window_mkp_table(data, file)
        elif suffix in FORMATS:
            snapshot = parse_program_file(data, file, suffix)
        else:
            snapshot = _parsed(data, file)
    known = known_values(file)
    return snapshot if known is None else known.added_to(snapshot, path if number else file), sha256


def _words(data: bytes, path: Path) -> list[list[str]]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("not text; expected an instance of the literature", file=path) from None
    return [line.split() for line in text.splitlines()]


def _of_text(words: list[list[str]], path: Path, number: int | None) -> Snapshot:
    """Return an instance of a text file; without a number, the only one."""
    found = instances(words, path)
    if found is None:
        if number not in (None, 1):
            raise InputError(f"holds one instance; there is no number {number}", file=path)
        return parse_window_mkp_text(words, path)
    if not found:
        raise InputError("holds no instance", file=path)
    if number is None and len(found) > 1:
        held = f"holds {counted(len(found), 'instance')} ({found[0].kind} of OR-Library)"
        named = f"{path.name}#1 to {path.name}#{len(found)}"
        raise InputError(f"{held}; expected one of them, {named}", file=path)
    if number is not None and number > len(found):
        held = f"holds {counted(len(found), 'instance')}"
        raise InputError(f"{held}; there is no number {number}", file=path)
    chosen = number or 1
    snapshot = found[chosen - 1].build()
    about = {"instance": f"{chosen} of {len(found)}"} if len(found) > 1 else {}
    return replace(snapshot, origin={**snapshot.origin, **about})


def _parsed(data: bytes, path: Path) -> Snapshot:
    try:
        fields = parse_json(data)
    except InputError as error:
        if _suffix(path) not in ("", ".json") and not data.lstrip().startswith(b"{"):
            expected = "expected JSON, or a file that ends in .txt, .csv, .lp or .mps"
            raise InputError(f"of no known format; {expected}", file=path) from None
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
    """Return the position of the innermost existing step into a JSON object, None without any."""
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
    separators = SEPARATORS.match(text, at)
    assert separators is not None
    return separators.end()


def as_snapshot(given: Any) -> Snapshot:
    """Return an argument that is a problem, a snapshot, or the file or the name of one."""
    if isinstance(given, str | Path):
        return read_snapshot(given)
    if isinstance(given, Problem):
        return Snapshot(given)
    if isinstance(given, Snapshot):
        return given
    expected = "expected a problem, a snapshot or the file of one"
    raise InputError(f"{brief(given)}; {expected}", field="problem")


def load_snapshot(path: str | Path) -> Problem[Any]:
    """Read the problem of a snapshot: a file, or the name of one; see `read_snapshot`.

    >>> load_snapshot("yang-2014-example").capacities.tolist()
    [3, 6, 6]
    """
    return read_snapshot(path).problem


def save_snapshot(snapshot: Snapshot | Problem[Any], path: str | Path) -> None:
    """Write a snapshot or a bare problem, under a temporary name that is then renamed."""
    written = as_snapshot(snapshot).to_json()
    path = path_of(path, "path", "expected the file to write to")
    if _suffix(path) in OTHERS:
        export = "optsched snapshot export writes .lp, .mps and .txt"
        raise InputError(f"is read as another format; expected FILE.json ({export})", file=path)
    write_bytes(path, (json_text(written, indent=1) + "\n").encode())
