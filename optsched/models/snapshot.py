"""Snapshots: problems with their origin and their known results."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from optsched.errors import InputError, UnknownNameError
from optsched.files import MOST, read_bytes
from optsched.models.problem import Problem
from optsched.numbers import LARGEST, parse_number
from optsched.registry import models

FORMAT = 1

SCALE = "objective_scale"
"""Entry of an origin: what the objective of the file was multiplied by, to be an integer."""

KNOWN = ("objective", "bound", "solution", "infeasible", "source")
"""Keys of the known results."""

DEEPEST = 20
"""Most levels of nested lists and objects in the free-form fields."""


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """A problem with its origin and its known results.

    Parameters
    ----------
    problem : Problem
        The problem.
    origin : mapping
        Origin of the problem: trace, policy, simulated time, number of the decision; or a citation.
    known : mapping
        Known results: ``objective`` and ``bound`` (equal when the optimum is proven), ``solution``
        in the model's JSON form, ``infeasible`` (true when it is proven that no solution exists),
        ``source``.
    options : mapping
        Options of solvers by name, each for those solvers that have it: the settings of the policy
        that posed the problem.
    """

    problem: Problem[Any]
    origin: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Snapshot {self.problem.name} {self.problem.size}>"

    @property
    def scale(self) -> int:
        """What the objective of the original file was multiplied by; 1 if it was not."""
        scale = self.origin.get(SCALE)
        return scale if type(scale) is int and 0 < scale <= LARGEST else 1

    def describe_origin(self) -> list[tuple[str, str]]:
        """Return the origin as lines for people."""
        lines = [(name, str(value)) for name, value in self.origin.items() if name != SCALE]
        if self.scale > 1:
            lines.append(("scaled", f"the objective is {self.scale} times that of the file"))
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the object that is written to file."""
        written: dict[str, Any] = {"kind": self.problem.name, "format": FORMAT}
        if self.origin:
            written["origin"] = dict(self.origin)
        if self.options:
            written["options"] = dict(self.options)
        written |= self.problem.to_json()
        if self.known:
            written["known"] = dict(self.known)
        return written

    @classmethod
    def from_json(cls, fields: Any) -> Snapshot:
        """Build a snapshot from the object on file.

        Raises
        ------
        InputError
            If there are mistakes; the message lists all of them.
        """
        if not isinstance(fields, dict):
            raise InputError("expected a JSON object with a kind and the fields of the problem")
        if not isinstance(fields.get("kind"), str):
            raise InputError("expected the kind of problem, a string", field="kind")
        if fields["kind"] not in models:
            raise _unknown(fields)
        mistakes = []
        version = fields.get("format", FORMAT)
        if type(version) is not int or version != FORMAT:
            mistakes.append(f"format: {fields['format']!r}; this version reads format {FORMAT}")
        about = {name: fields.get(name, {}) for name in ("origin", "known", "options")}
        mistakes += [
            f"{name}: expected an object" for name in about if not isinstance(about[name], dict)
        ]
        mistakes += [
            f"{name}: nested deeper than {DEEPEST} levels"
            for name, value in about.items()
            if _is_deeper(value, DEEPEST)
        ]
        if isinstance(about["known"], dict):
            mistakes += [
                f"known.{name}: {UnknownNameError('key', name, KNOWN)}"
                for name in about["known"]
                if name not in KNOWN
            ]
        outer = {"kind", "format", *about}
        inner = {name: value for name, value in fields.items() if name not in outer}
        former = {
            name: inner.pop(name) for name in models[fields["kind"]].former_options if name in inner
        }
        if isinstance(about["options"], dict):
            mistakes += [
                f"{name}: also among the options; expected once"
                for name in former
                if name in about["options"]
            ]
            about["options"] = former | about["options"]
        try:
            problem = models[fields["kind"]].from_json(inner)
        except InputError as error:
            mistakes += error.mistakes
        if mistakes:
            raise InputError(*mistakes)
        return cls(problem, **about)


def _unknown(fields: Mapping[str, Any]) -> InputError:
    """Return the error of an unknown kind, with the file of its model if the origin names it."""
    origin, kind = fields.get("origin"), fields["kind"]
    home = origin.get("model") if isinstance(origin, dict) else None
    file = home.get("file") if isinstance(home, dict) else None
    if not isinstance(file, str):
        return models.unknown(kind)
    return InputError(f"model {kind!r} is one of {file}; expected --model {file}, which runs it")


def snapshot_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of the snapshots of a model, draft 2020-12.

    `Snapshot.from_json` refuses all that the schema refuses, and also mistakes that a schema cannot
    express: overlapping boxes, or lists of different lengths.
    """
    model = models[kind]
    if not has_schema(kind):
        raise InputError(f"model {kind!r} declares no fields, so it has no schema")
    fields = model.schema.json_schema()
    about = {
        "kind": {"description": "the model", "const": kind},
        "format": {"description": "version of the format", "const": FORMAT, "default": FORMAT},
        "origin": {"description": "where the snapshot came from", "type": "object"},
        "known": {"description": "known objective, bound and solution", "type": "object"},
        "options": {"description": "options of solvers, by name", "type": "object"},
    }
    for name in model.former_options:
        about[name] = {"description": "an option, as written by version 0.1.0", "deprecated": True}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"snapshot of {kind}",
        **fields,
        "properties": about | fields["properties"],
        "required": ["kind", *fields["required"]],
        "additionalProperties": False,
    }


def has_schema(kind: str) -> bool:
    """Return whether a model declares its fields; a plug-in need not."""
    return hasattr(models[kind], "schema")


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 1 or _is_deeper(part, levels - 1) for part in inner)


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


def text_of(data: bytes, path: Path, expected: str) -> str:
    """Return the text of a file, which may begin with a mark of its encoding."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"not text; expected {expected}", file=path) from None


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
