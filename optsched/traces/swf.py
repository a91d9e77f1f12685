"""The Standard Workload Format: 18 columns per job, ``;`` comments as header.

File format: ``docs/formats/swf.md``.

References
----------
S. J. Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers",
JSSPP 1999, doi:10.1007/3-540-47954-6_4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Floats, Ints
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.files import opened
from optsched.numbers import LARGEST
from optsched.registry import readers
from optsched.traces.formats import (
    BYTE_ORDER_MARK,
    Piece,
    TraceFormat,
    pieces,
    say_left_out,
    shown,
    stem,
)
from optsched.traces.trace import UNKNOWN, Header, Trace

COLUMNS = 18

WELL_FORMED = 0
TOO_FEW = 1
TOO_MANY = 2
NOT_A_NUMBER = 3
NOT_AN_INTEGER = 4
TOO_LARGE = 5
TOO_LOW = 6

INEXACT = 127
"""Number of decimals of a number whose digits do not fit; its value is the offset of its text."""

_NEWLINE, _SEMICOLON, _MINUS, _POINT, _ZERO, _NINE = 10, 59, 45, 46, 48, 57
_LARGEST = np.iinfo(np.int64).max

# facts of float64 and no limits of `optsched.numbers`: digits and power of ten that are exact
_EXACT = 2**53
_EXACT_PLACES = 22


@kernel(allocates=False)
def _is_blank(character: int) -> bool:
    return character == 32 or character == 9 or character == 13


@kernel(allocates=False)
def _skip_blanks(data: NDArray[np.uint8], at: int) -> int:
    while at < len(data) and _is_blank(data[at]):
        at += 1
    return at


@kernel(allocates=False)
def _skip_line(data: NDArray[np.uint8], at: int) -> int:
    while at < len(data) and data[at] != _NEWLINE:
        at += 1
    return at


@kernel(allocates=False)
def count_jobs(data: NDArray[np.uint8]) -> tuple[int, int]:
    """Return the number of job lines, and the offset of the first one.

    A job line is neither blank nor a comment. Without one, the offset is the end of the text.
    """
    jobs, first = 0, len(data)
    at = 0
    while at < len(data):
        line_start = at
        at = _skip_blanks(data, at)
        if at < len(data) and data[at] != _NEWLINE:
            if data[at] != _SEMICOLON:
                if jobs == 0:
                    first = line_start
                jobs += 1
            at = _skip_line(data, at)
        at += 1
    return jobs, first


@kernel(allocates=False)
def _number(
    data: NDArray[np.uint8], at: int, with_decimals: bool, lowest: int, highest: int
) -> tuple[int, int, np.int64, int]:
    """Read the number at `at`; return (verdict, end of the text, digits as one integer, decimals).

    The digits divided by ``10**decimals`` are the number, correctly rounded, since both are exact
    in float64.
    """
    start = at
    negative = data[at] == _MINUS
    if negative:
        at += 1
    value = whole = np.int64(0)
    decimals = -1
    any_digit = fraction = False
    exact = True
    while at < len(data):
        digit = np.int64(data[at]) - _ZERO
        if 0 <= digit <= 9:
            any_digit = True
            if decimals < 0:
                if value > (_LARGEST - digit) // 10:
                    return TOO_LARGE, at, value, decimals
                value = whole = 10 * value + digit
            else:
                if digit > 0:
                    fraction = True
                if value <= (_EXACT - digit) // 10 and decimals < _EXACT_PLACES:
                    value = 10 * value + digit
                    decimals += 1
                else:
                    exact = False
        elif data[at] == _POINT and decimals < 0:
            if not with_decimals:
                return NOT_AN_INTEGER, at, value, decimals
            decimals = 0
            exact = bool(value <= _EXACT)
        else:
            break
        at += 1
    if not any_digit or (at < len(data) and not (_is_blank(data[at]) or data[at] == _NEWLINE)):
        return NOT_A_NUMBER, at, value, decimals
    if negative and lowest >= -1 and (fraction or whole > -lowest):
        return TOO_LOW, at, value, decimals
    if whole > highest or (whole == highest and fraction):
        return TOO_LARGE, at, value, decimals
    if not exact:
        return WELL_FORMED, at, np.int64(start), INEXACT
    return WELL_FORMED, at, -value if negative else value, decimals


@kernel(allocates=False)
def parse(
    data: NDArray[np.uint8],
    with_decimals: Flags,
    lowest: Ints,
    highest: Ints,
    after_jobs: bool,
    values: Ints,
    decimals: NDArray[np.int8],
) -> tuple[int, int, int, int, int, int]:
    """Parse the job lines of an SWF text.

    The columns `with_decimals` may have a decimal point. The `lowest` number of a column is 0 or -1
    (and nothing between -1 and 0), where a lower value allows any number; the `highest` is that of
    either sign. The digits of each number, without their point, go to `values`, shape (18,
    capacity), and the number of those after the point, -1 without a point, or `INEXACT` to
    `decimals`.

    Returns the numbers of job lines, of comment lines after the first job line (of the file,
    `after_jobs` if it is before this text) and of line breaks passed; `WELL_FORMED` or the mistake;
    and the offset of the line with the mistake, and its column, from 0.
    """
    at = rows = comments = lines = 0
    while at < len(data):
        line_start = at
        column = 0
        at = _skip_blanks(data, at)
        if at < len(data) and data[at] == _SEMICOLON:
            if after_jobs or rows > 0:
                comments += 1
            at = _skip_line(data, at)
        while at < len(data) and data[at] != _NEWLINE:
            if column == COLUMNS:
                return rows, comments, lines, TOO_MANY, line_start, column
            verdict, at, values[column, rows], decimals[column, rows] = _number(
                data, at, with_decimals[column], lowest[column], highest[column]
            )
            if verdict != WELL_FORMED:
                return rows, comments, lines, verdict, line_start, column
            at = _skip_blanks(data, at)
            column += 1
        if column == COLUMNS:
            rows += 1
        elif column > 0:
            return rows, comments, lines, TOO_FEW, line_start, column
        at += 1
        lines += 1
    return rows, comments, lines, WELL_FORMED, at, 0


ANY = np.iinfo(np.int64).min


class Field(NamedTuple):
    """Column of the format: its name in `Trace` and in messages, and its valid values."""

    column: str
    label: str
    decimals: bool = False
    lowest: int = UNKNOWN

    @property
    def highest(self) -> int:
        """Highest number that is represented exactly, as float64 where decimals are allowed."""
        return LARGEST if self.decimals else np.iinfo(np.int64).max

    @property
    def expected(self) -> str:
        """Valid values of the column, for messages."""
        kind = "a number" if self.decimals else "an integer"
        if self.lowest == ANY:
            return kind
        return f"{kind} of at least 0" + (", or -1 for unknown" if self.lowest == UNKNOWN else "")


FIELDS = (
    Field("job_id", "job number", lowest=0),
    Field("submit", "submit time", decimals=True),
    Field("wait", "wait time", decimals=True),
    Field("runtime", "run time", decimals=True),
    Field("processors", "allocated processors"),
    Field("average_cpu_time", "average CPU time", decimals=True),
    Field("memory", "used memory", decimals=True),
    Field("requested_processors", "requested processors"),
    Field("requested_time", "requested time", decimals=True),
    Field("requested_memory", "requested memory", decimals=True),
    Field("status", "status", lowest=ANY),
    Field("user", "user"),
    Field("group", "group"),
    Field("executable", "executable"),
    Field("queue", "queue"),
    Field("partition", "partition"),
    Field("preceding_job", "preceding job"),
    Field("think_time", "think time", decimals=True),
)
"""The 18 columns. Times and memory may have decimals, as the definition of the format allows."""

_WRITTEN = {"stated_time", *(field.column for field in FIELDS)}

JOBS = "jobs in SWF"
"""Expected content of a file, for messages."""

LONGEST_HEADER = 2**20
"""Most bytes of all comments before the first job."""

_ROWS_AT_ONCE = 1 << 16
_POWERS_OF_TEN = np.array([float(10**power) for power in range(23)])
_WORD = re.compile(rb"[^ \t\r\n]+")


def read_swf(path: str | Path, *, unknown_negative: bool = False) -> Trace:
    """Read a raw trace, plain or gzipped; `unknown_negative` as in `read_trace`."""
    path = Path(path)
    with opened(path) as content:
        jobs = _Jobs(path, unknown_negative)
        for piece in pieces(content, path, JOBS):
            jobs.add(piece)
        columns = jobs.columns()
        return Trace(
            **columns,
            name=stem(path),
            path=path,
            sha256=content.sha256,
            header=jobs.header(),
            oddities=unusual(columns)
            | jobs.negative
            | {"comment lines between jobs": jobs.comments_between},
        )


def _encode(trace: Trace, path: Path) -> bytes:
    for field in FIELDS:
        _check_writable(field, getattr(trace, field.column), path)
    header = trace.header
    for note in _notes(trace):
        header = header.noted(note)
    columns = [_texts(getattr(trace, field.column)) for field in FIELDS]
    jobs = zip(*columns)
    chunks = ["".join(f";{comment}\n" for comment in header.comments(path))]
    while chunk := [" ".join(job) for job in islice(jobs, _ROWS_AT_ONCE)]:
        chunks.append("\n".join(chunk) + "\n")
    say_left_out(trace, "this format", _WRITTEN, header=None)
    return "".join(chunks).encode()


@readers.register("swf")
class StandardWorkloadFormat(TraceFormat):
    """The Standard Workload Format."""

    suffixes = (".swf",)
    read = staticmethod(read_swf)
    encode = staticmethod(_encode)

    @staticmethod
    def recognizes(first_bytes: bytes, path: Path) -> bool:
        """Return whether the text begins with a comment or a number."""
        words = first_bytes.removeprefix(BYTE_ORDER_MARK).split(maxsplit=1)
        return bool(words) and (
            words[0].startswith(b";") or words[0].translate(None, b"0123456789-.") == b""
        )

    @staticmethod
    def line_of(path: Path, job_id: int) -> int | None:
        """Return the line of a job; None if several jobs have its number."""
        begin = re.compile(rb"^[ \t\r]*%d(?=[ \t\r\n]|\Z)" % job_id, re.MULTILINE)
        with opened(path) as content:
            lines = [
                piece.line + piece.data.count(b"\n", 0, found.start())
                for piece in pieces(content, path, JOBS)
                for found in begin.finditer(piece.data)
            ]
        return lines[0] if len(lines) == 1 else None


class _Jobs:
    """Jobs and header of a file that is read piece by piece."""

    def __init__(self, path: Path, unknown_negative: bool) -> None:
        self.comments_between = 0
        self.negative: dict[str, int] = {}
        self._unknown_negative = unknown_negative
        self._path = path
        self._jobs = 0
        self._parts: list[list[NDArray[Any]]] = [[] for _ in FIELDS]
        self._leading: list[tuple[int, str]] = []
        self._leading_bytes = 0

    def add(self, piece: Piece) -> None:
        """Read the jobs and, before the first one, the comments of a piece."""
        text = np.frombuffer(piece.data, dtype=np.uint8)
        capacity, first_job = count_jobs(text)
        if not self._jobs:
            self._add_comments(piece.data[:first_job], piece.line)
        values = np.empty((len(FIELDS), capacity), dtype=np.int64)
        decimals = np.empty((len(FIELDS), capacity), dtype=np.int8)
        rows, comments, lines, *found = parse(
            text,
            np.array([field.decimals for field in FIELDS]),
            np.array([ANY if self._allowed(field) else field.lowest for field in FIELDS]),
            np.array([field.highest for field in FIELDS]),
            self._jobs > 0,
            values,
            decimals,
        )
        if found[0] != WELL_FORMED:
            raise _mistake(piece.data, self._path, piece.line + lines, *found)
        self.comments_between += comments
        self._jobs += rows
        for parts, digits, places in zip(self._parts, values, decimals):
            if rows:
                parts.append(_column(piece.data, digits, places))

    def columns(self) -> dict[str, Any]:
        """Return the known columns by name; refuse a file without a job."""
        if not self._jobs:
            what = "only comments" if self._leading else "the file is empty"
            raise InputError(f"{what}; expected {JOBS}", file=self._path)
        known: dict[str, NDArray[Any]] = {}
        for field, parts in zip(FIELDS, self._parts):
            if any(part.strides != (0,) for part in parts):
                known[field.column] = np.concatenate(parts)
            parts.clear()  # so that two copies of one column at most are in memory
        for field in filter(self._allowed, FIELDS):
            column = known.get(field.column, np.empty(0))
            below = (column < 0) & (column != UNKNOWN)
            if number := int(below.sum()):
                known[field.column] = np.where(below, UNKNOWN, column)
                self.negative[f"jobs with a negative {field.label}, read as unknown"] = number
        unknown = np.broadcast_to(np.int64(UNKNOWN), self._jobs)
        for required in ("runtime", "requested_time", "processors", "submit"):
            known.setdefault(required, unknown)
        return known

    def _allowed(self, field: Field) -> bool:
        """Return whether any negative number stands for unknown in a column."""
        return self._unknown_negative and field.decimals

    def header(self) -> Header:
        """Return the header: the comments before the first job."""
        header = Header.from_comments(text for _, text in self._leading)
        try:
            header.check_numbers([line for line, _ in self._leading])
        except InputError as error:
            raise error.within(self._path) from None
        return header

    def _add_comments(self, data: bytes, line: int) -> None:
        """Keep the line number of each comment, and its text without the ``;``."""
        start = data.find(b";")
        line += data.count(b"\n", 0, max(start, 0))
        while start >= 0:
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            self._leading_bytes += end - start
            if self._leading_bytes > LONGEST_HEADER:
                mistake = f"the header is longer than {LONGEST_HEADER >> 20} MiB"
                raise InputError(f"{mistake}; expected {JOBS}", file=self._path, line=line)
            self._leading.append((line, _decoded(data[start + 1 : end].rstrip(b" \t\r"))))
            start = data.find(b";", end)
            line += data.count(b"\n", end, max(start, end))


def _column(data: bytes, digits: Ints, decimals: NDArray[np.int8]) -> NDArray[Any]:
    """Return a column of numbers: float64 if any has a decimal point, else int64.

    A column that is unknown for all jobs takes no memory: its stride is 0.
    """
    if decimals.max() < 0:
        unknown = bool((digits == UNKNOWN).all())
        return np.broadcast_to(np.int64(UNKNOWN), len(digits)) if unknown else digits.copy()
    numbers: Floats = digits / _POWERS_OF_TEN[np.clip(decimals, 0, len(_POWERS_OF_TEN) - 1)]
    for row in np.flatnonzero(decimals == INEXACT):
        word = _WORD.match(data, int(digits[row]))
        assert word is not None
        numbers[row] = float(word[0])
    return numbers


def _mistake(
    data: bytes, path: Path, line: int, verdict: int, line_start: int, column: int
) -> InputError:
    """Return the error of a line, from the verdict of the parser."""
    words = _WORD.findall(data[line_start:].split(b"\n", 1)[0])
    if verdict in (TOO_FEW, TOO_MANY):
        hint = ""
        if any(word.startswith(b"{") for word in words):
            hint = "; the extended SWF of Alea is not read"
        return InputError(f"{len(words)} columns; expected 18{hint}", file=path, line=line)
    field = FIELDS[column]
    expected = field.expected
    if verdict == TOO_LOW and field.decimals:
        expected += ", as trace convert --unknown-negative reads it"
    if verdict == TOO_LARGE:
        expected = "a number of at most 2^53" if field.decimals else "an integer below 2^63"
    return InputError(
        f"{shown(words[column], 'latin-1')}; expected {expected}",
        file=path,
        line=line,
        field=f"{field.label} (column {column + 1})",
    )


def _decoded(text: bytes) -> str:
    """Decode header text: UTF-8, or Latin-1 as in older logs."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def unusual(columns: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Count the jobs that are unusual, but valid, by columns of a raw trace."""
    job_id, submit = columns["job_id"], columns["submit"]
    ascending = bool((np.diff(job_id) > 0).all())  # as in most logs; much faster than sorting
    status = columns.get("status", np.empty(0))
    return {
        "job numbers used before": 0 if ascending else len(job_id) - len(np.unique(job_id)),
        "jobs submitted before the job above": int((np.diff(submit) < 0).sum()),
        "lines with status 2 to 4, in SWF parts of checkpointed jobs": int(
            ((status >= 2) & (status <= 4)).sum()
        ),
        "jobs with a status that SWF does not define": int(((status < -1) | (status > 5)).sum()),
    }


def invalid(field: Field, column: NDArray[Any]) -> Flags:
    """Return a mask of the values that are not valid in a column."""
    valid = (column >= field.lowest) & (column <= field.highest)
    if column.dtype.kind == "f":
        valid &= (column >= 0) | (column == UNKNOWN)
    return ~valid


def _check_writable(field: Field, column: NDArray[Any], path: Path) -> None:
    wrong = invalid(field, column)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"{column[row]} for the job in row {row + 1}; expected {field.expected}",
            file=path,
            field=field.label,
        )


def _notes(trace: Trace) -> list[str]:
    notes = []
    if trace.cleaning is not None:
        notes.append(trace.cleaning.note(len(trace)))
    if trace.label is not None:
        notes.append("jobs are numbered; their names in the original are not part of this format")
    if columns := [*trace.annotations, *trace.texts]:
        notes.append(f"{', '.join(columns)} of the jobs are not part of this format")
    if trace.limits_hold:
        notes.append("jobs end at their requested time, even those with a longer run time")
    return notes


def _texts(column: NDArray[Any]) -> Iterator[str]:
    """Yield each number as text that reads back as the same number, without exponents."""
    if column.dtype.kind == "i":
        return map(str, column.tolist())
    return (
        str(int(number)) if number.is_integer() else np.format_float_positional(number, trim="-")
        for number in column.tolist()
    )
