"""Known values of the instances of a folder, from a table beside them.

File format: ``docs/formats/instances.md``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from optsched.binary_files import MOST, read_bytes
from optsched.errors import InputError
from optsched.models.snapshot import Snapshot
from optsched.numbers import parse_number

FILE = "known_values.csv"
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
            known["source"] = f"{FILE}, line {row.line}"
        return replace(snapshot, known=known)


def _times(scale: int, bound: float | None) -> float | None:
    return None if bound is None else float(scale * Decimal(str(bound)))


def _names(path: Path) -> tuple[str, str]:
    """Return the names that the table may have for a file: with and without its suffix."""
    return path.name, SUFFIX.sub("", path.name)


def known_values(path: Path) -> KnownValues | None:
    """Return the table beside an instance's file, None without one."""
    table = path.parent / FILE
    try:
        facts = table.stat()
    except OSError:
        return None
    return _read(table, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int, _size: int) -> KnownValues:
    """Return a table; it is read once for all instances beside it."""
    data, sha256 = read_bytes(path, MOST)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not text; expected CSV", file=path) from None
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
    if text is None or not text.strip():
        return None
    text = text.strip()
    try:
        return float(parse_number(text))
    except ValueError as error:
        mistakes.append(f"line {line}, {column}: {error}")
        return None
