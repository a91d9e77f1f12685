"""Snapshots and problems in other formats on file, and the table of known values beside them.

File format: ``docs/formats/snapshot.md``.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

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
from optsched.models.instances import instance, instances, parse_knapsack_table
from optsched.models.integer_program.program_files import parse_program_file
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.numbers import parse_number
from optsched.text_files import parse_json, text_of

TEXTS = {".txt": "an instance of the literature", ".csv": "CSV", ".lp": "LP", ".mps": "MPS"}
"""What a text file holds, by its suffix."""

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
    found = [
        file
        for file in files
        if file.name not in beside
        and (file.suffix != ".txt" or re.match(rb"\s*\d", read_head(file)))
    ]
    if not found:
        raise InputError(f"holds no snapshot ({', '.join(PATTERNS)})", file=path)
    return [instance for file in found for instance in _instances(file)]


def _instances(path: Path) -> list[Path]:
    """Return the instances of a file; the file itself if there is one, or it cannot be read."""
    if _suffix(path) != ".txt" or not path.is_file():
        return [path]
    try:
        found = instances(text_of(read_bytes(path, MOST_TEXT)[0], path, TEXTS[".txt"]), path)
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
    try:
        with in_memory(file):
            text = text_of(data, file, TEXTS[suffix]) if suffix in TEXTS else ""
            if suffix == ".txt":
                snapshot = instance(text, file, number)
            elif suffix == ".csv":
                snapshot = parse_knapsack_table(text, file)
            elif suffix in TEXTS:
                snapshot = parse_program_file(text, file, suffix)
            else:
                snapshot = _parsed(data, suffix)
    except InputError as error:
        raise error.within(file) from None
    known = known_values(file)
    return snapshot if known is None else known.added_to(snapshot, path if number else file), sha256


def _parsed(data: bytes, suffix: str) -> Snapshot:
    try:
        fields = parse_json(data)
    except InputError:
        if suffix not in ("", ".json") and not data.lstrip().startswith(b"{"):
            expected = "expected JSON, or a file that ends in .txt, .csv, .lp or .mps"
            raise InputError(f"of no known format; {expected}") from None
        raise
    try:
        return Snapshot.from_json(fields)
    except InputError as error:
        mistakes = [_with_line(mistake, data.decode("utf-8-sig")) for mistake in error.mistakes]
        raise InputError(*mistakes, field=error.field) from None


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


TABLE = "known_values.csv"
"""Name of the table in a folder of instances."""

INSTANCE = "instance"
BOUNDS = ("lower_bound", "upper_bound")

SUFFIX = re.compile(r"\.(json|txt|csv|lp|mps)(\.gz)?(?=#\d+$|$)")
"""Ending of the name of an instance's file, which the table may leave out."""


class Row(NamedTuple):
    """Bounds of the optimum of an instance, None if unknown, and the line that states them."""

    line: int
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class KnownValues:
    """The table of a folder."""

    path: Path
    sha256: str  # SHA-256 of the table
    rows: Mapping[str, Row]  # known values by name of the instance

    def name_of(self, path: Path) -> str | None:
        """Return the name of an instance's file in the table, None if it is not there."""
        found = {self.rows[name].line: name for name in _names(path) if name in self.rows}
        if len(found) > 1:
            (first, _), (again, name) = sorted(found.items())
            message = f"{name!r} names the same file as line {first}"
            raise InputError(message, file=self.path, line=again, field=INSTANCE)
        return next(iter(found.values()), None)

    def unused(self, paths: Iterable[Path]) -> list[str]:
        """Return the names in the table that are of none of these files."""
        names = {name for path in paths for name in _names(path)}
        return [name for name in self.rows if name not in names]

    def added_to(self, snapshot: Snapshot, path: Path) -> Snapshot:
        """Return a snapshot with its known values in the table, unless it has some of its own."""
        name = self.name_of(path)
        if name is None or snapshot.known:
            return snapshot
        row = self.rows[name]
        maximized = snapshot.problem.sense == "max"
        column, stated = (BOUNDS[0], row.lower) if maximized else (BOUNDS[1], row.upper)
        scale = snapshot.scale
        objective = _times(scale, stated)
        bound = _times(scale, row.upper if maximized else row.lower)
        known: dict[str, Any] = {}
        if objective is not None:
            if not objective.is_integer():
                expected = "an integer" if scale == 1 else f"a multiple of {1 / scale:g}"
                problem = f"{stated:.15g}; expected {expected}, the value of a solution"
                raise InputError(problem, file=self.path, line=row.line, field=column)
            known["objective"] = int(objective)
        if bound is not None:
            known["bound"] = int(bound) if bound.is_integer() else bound
        if known:
            known["source"] = f"{TABLE}, line {row.line}"
        return replace(snapshot, known=known)


def _times(scale: int, bound: float | None) -> float | None:
    return None if bound is None else float(scale * Decimal(str(bound)))


def _names(path: Path) -> tuple[str, str]:
    """Return the names that the table may have for a file: with and without its suffix."""
    return path.name, SUFFIX.sub("", path.name)


def known_values(path: Path) -> KnownValues | None:
    """Return the table beside an instance's file, None without one."""
    table = path.parent / TABLE
    try:
        facts = table.stat()
    except OSError:
        return None
    return _read(table, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int, _size: int) -> KnownValues:
    """Return a table; it is read once for all instances beside it."""
    data, sha256 = read_bytes(path, MOST)
    text = text_of(data, path, "CSV")
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows: dict[str, Row] = {}
    mistakes: list[str] = []
    try:
        columns = reader.fieldnames or ()
        missing = [c for c in (INSTANCE, *BOUNDS) if c not in columns]
        if missing:
            raise InputError(f"column {missing[0]!r} is missing", file=path, line=1)
        for cells in reader:
            line, name = reader.line_num, (cells[INSTANCE] or "").strip()
            if not name:
                mistakes.append(f"line {line}, {INSTANCE}: expected the name of an instance")
            elif name in rows:
                first = rows[name].line
                mistakes.append(f"line {line}, {INSTANCE}: {name!r} again, as on line {first}")
            lower, upper = (_bound(cells[c], line, c, mistakes) for c in BOUNDS)
            if lower is not None and upper is not None and lower > upper:
                above = f"{lower:.15g}; expected at most {BOUNDS[1]}, {upper:.15g}"
                mistakes.append(f"line {line}, {BOUNDS[0]}: {above}")
            rows.setdefault(name, Row(line, lower, upper))
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", file=path, line=reader.reader.line_num) from None
    if mistakes:
        raise InputError(*mistakes, file=path)
    return KnownValues(path, sha256, rows)


def _bound(text: str | None, line: int, column: str, mistakes: list[str]) -> float | None:
    text = (text or "").strip()
    try:
        return parse_number(text) if text else None
    except ValueError as error:
        mistakes.append(f"line {line}, {column}: {error}")
        return None


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
    if _suffix(path) in TEXTS:
        export = "optsched snapshot export writes .lp, .mps and .txt"
        raise InputError(f"is read as another format; expected FILE.json ({export})", file=path)
    write_bytes(path, (json_text(written, indent=1) + "\n").encode())
