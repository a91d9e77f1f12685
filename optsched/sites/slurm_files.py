"""What Slurm wrote: records in JSON, lines of ``Key=Value`` pairs, and what to say of other files.

The data parser, not the release of Slurm, decides on the fields of JSON: version 38 (Slurm 22.05)
has bare numbers and texts, later ones numbers as objects and states as lists. Lines are those of
configuration files, and what ``scontrol -o`` prints.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, TypeVar

from optsched.errors import InputError
from optsched.fields import Fields, Integer, Kind, Of, Parsed, WrongValueError, shown
from optsched.files import HEAD, MOST, read_bytes
from optsched.numbers import counted, whole_number
from optsched.sites.slurm_notation import host_list
from optsched.text_files import LONGEST_LINE, parse_json, too_long

STATES = r"COMPLETED|CANCELLED|FAILED|TIMEOUT|RUNNING|PENDING|NODE_FAIL|OUT_OF_MEM\w*"

_COMPRESSED = {
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
}

_JOB = r"\d+(_\S+|\.\w+|\+\d+)?"

A_LIST = "a list in JSON; expected the object that Slurm writes with --json"

NO_JOBS = "what sinfo or scontrol writes with --json; expected the jobs of sacct --json"

_FORMS: tuple[tuple[str, str], ...] = (
    (r"\s*<(!doctype|html|\?xml)", "a page of HTML or XML; expected what the command itself wrote"),
    (r"\s*\[\s*[\]{]", A_LIST),
    (
        r" *(\S+ +)*JobID(Raw)?( +\S+)* *\n *-{3,}( +-{3,})+",
        "the columns of sacct without -P; expected what sacct -P writes, or --json",
    ),
    (
        r" *([A-Z]\w+ +)*JobID(Raw)?( +[A-Z]\w+)+ *(\n|$)",
        "fields of sacct with blanks between them; expected what sacct -P writes, or --json",
    ),
    (
        rf"(?=[^\n]*\|({STATES}|\d{{4}}-\d\d-\d\dT[^|\n]*)\b)([^|\n]*\|)?{_JOB}\|[^\n]*\|",
        "no line with the names of the fields; expected sacct -P without -n (--noheader)",
    ),
    (
        rf"{_JOB} +[^\n]* ({STATES})\b",
        "columns without the names of the fields; expected sacct -P without -n (--noheader)",
    ),
    (r"(?=[^\n]*\bJOBID\b)[^a-z,;\t\n]+\n", "the text of squeue; expected squeue --json"),
    (
        r"(?=[^\n]*\bNODES\b)(?=[^\n]*\b(AVAIL|STATE)\b)[^a-z,;\t\n]+\n",
        "the text of sinfo; expected what scontrol show nodes --json writes",
    ),
    (r'\s*\{\s*"(sinfo|nodes|partitions|reservations|licenses)"', NO_JOBS),
    (r"JobId=\d+", "what scontrol show jobs writes; expected sacct or squeue with --json"),
    (r"NodeName=\S+ +(Arch|CoresPer)", "nodes, as scontrol shows them; expected other records"),
)
"""Pattern of the beginning of each form, and what to say of it."""

_ERROR = re.compile(r"\s*((sacct|squeue|sinfo|scontrol|slurm_\w+|slurm\w*)( error)?: [^\n]+)")

_OBJECTS = re.compile(rb"\s*\{\s*\".*\}[ \t\r]*\n\s*\{\s*\"")

_COMMAS = re.compile(rb"(?=(.*,)?JobID(Raw)?\b)(?=(.*,)?Submit\b)(?=(.*,)?State\b)\w+(,\w+)+,?\s")

_RECORD = re.compile(r"(NodeName|PartitionName|JobId|ReservationName|LicenseName)=", re.IGNORECASE)

_WHOLE = re.compile(r"\b(State|JobState|NodeCnt|Total)=")
"""What the first of several lines lacks."""

_SHOWN = {
    "nodename": "nodes",
    "partitionname": "partitions",
    "jobid": "jobs",
    "reservationname": "reservations",
    "licensename": "licenses",
}


def near_miss(data: bytes) -> str | None:
    """Return a message on the form of a file that its beginning shows; None if it is unclear.

    >>> near_miss(b"<!DOCTYPE html>")
    'a page of HTML or XML; expected what the command itself wrote'
    """
    if not data.strip():
        return "the file is empty"
    for magic, name in _COMPRESSED.items():
        if data.startswith(magic):
            return f"compressed with {name}; expected a plain file, or gzip"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or re.match(rb"(.\0){4}|(\0.){4}", data):
        return "text in UTF-16, as PowerShell writes it; expected UTF-8"
    if _OBJECTS.match(data):
        return "several objects in JSON, one on a line; expected a single one"
    # some patterns take long for many blanks
    text = data[:HEAD].decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    if error := _ERROR.match(text):
        return f"an error of Slurm: {error[1].strip()[:200]}"
    for form, said in _FORMS:
        if re.match(form, text, re.IGNORECASE if form.startswith(r"\s*<") else 0):
            return said
    return None


def with_commas(data: bytes) -> str | None:
    """Return a message on fields of sacct with commas, which a table may have too; or None."""
    if _COMMAS.match(data[:HEAD]) is None:
        return None
    return "fields of sacct with commas between them, which values hold too; expected sacct -P"


def on_several_lines(before: str, line: str) -> str | None:
    """Return a message if a line continues the record of the line before it; or None."""
    begun = _RECORD.match(before)
    # what follows a whole record goes on with a comment that has line breaks
    if begun is None or _WHOLE.search(before) or not line[:1].isspace() or "=" not in line:
        return None
    command = f"scontrol -o show {_SHOWN[begun[1].lower()]}"
    return f"a record on several lines; expected one on each line, as {command} writes them"


VERSIONS = range(38, 46)
"""Versions of the data parser that are known: v0.0.38 (Slurm 22.05) to v0.0.45 (Slurm 26.05)."""

UNSET = ("", "None assigned", "(null)", "N/A", "None", "Unknown")
"""Texts that stand for no value."""

_IS_OF = {"squeue": "job_state", "sacct": "steps"}
"""Field of jobs that one command alone writes."""

_VERSION = re.compile(r"v0\.0\.([0-9]+)$")


class Dump(NamedTuple):
    """Records that a command of Slurm wrote as JSON."""

    records: list[dict[str, Any]]  # one object for each node, job or the like
    version: int  # version of the data parser: 42 for v0.0.42
    release: str  # release of Slurm, such as ``24.11.5``; empty if it is not stated
    path: Path
    # When the records were written, in seconds since 1970; None if it is not stated
    time: int | None = None
    errors: str = ""  # what Slurm reports to have failed beside the records

    @property
    def fields(self) -> list[RecordFields]:
        """The records, whose fields are checked as they are taken."""
        return [RecordFields(self, place) for place in range(len(self.records))]

    def name(self, place: int) -> str:
        """Return the name of a record, from 0, for messages."""
        record = self.records[place]
        known = record.get("name") if "job_id" not in record else record["job_id"]
        return f"record {place + 1}" + ("" if known is None else f" ({known})")


def read_shown(
    path: Path, key: str, names: Mapping[str, str], *of_lines: str
) -> Sequence[RecordFields]:
    """Return the records of a file of Slurm, plain or gzip: those of JSON, or lines with pairs.

    `key`: key of the records; `names`: keys of the lines by those of JSON; `of_lines`: first key
    and command of a file that has no other lines.
    """
    data, _ = read_bytes(path)
    if data.lstrip().startswith(b"{"):
        return _dump(data, path, key).fields
    text = _text_of(data, path)
    return only_lines(text, path, *of_lines) if of_lines else [*_printed(text, path, names)]


def read_dump(path: str | Path, *keys: str, written_by: str | None = None) -> Dump:
    """Return the records of a file, plain or gzip.

    `keys`: key of the records, ``jobs`` or ``nodes`` for instance; the first one that is there
    counts; `written_by`: command whose jobs are expected.
    """
    path = Path(path)
    return _dump(read_bytes(path)[0], path, *keys, written_by=written_by)


def _dump(data: bytes, path: Path, *keys: str, written_by: str | None = None) -> Dump:
    try:
        value = parse_json(data)
    except InputError as error:
        said = near_miss(data)
        if said in (None, NO_JOBS):
            raise error.within(path) from None
        raise InputError(said, file=path) from None
    if isinstance(value, list):
        raise InputError(A_LIST, file=path)
    meta = value.get("meta") if isinstance(value, Mapping) else None
    if not isinstance(meta, Mapping):
        expected = "expected what Slurm writes with --json"
        raise InputError(f"no version of a data parser; {expected}", file=path, field="meta")
    for key in keys:
        records = value.get(key)
        if isinstance(records, list):
            errors = _errors(value)
            if errors and not records:
                raise InputError(f"no {key}, and an error of Slurm: {errors}", file=path)
            for place, record in enumerate(records, 1):
                if not isinstance(record, dict):
                    shown = f"{record!r:.60}"
                    raise InputError(
                        f"record {place}: {shown}; expected an object", file=path, field=key
                    )
            other = "squeue" if written_by == "sacct" else "sacct"
            if written_by and records and _IS_OF[other] in records[0]:
                raise InputError(
                    f"jobs of {other} --json; expected those of {written_by} --json", file=path
                )
            time = number(value.get("last_update"))
            time = int(time) if time is not None and 0 < time < math.inf else None
            return Dump(records, _version(meta, path), _release(meta), path, time, errors)
    lists = [key for key, each in value.items() if isinstance(each, list) and each]
    there = f"no list, but of {', '.join(lists)[:60]}" if lists else "no list"
    raise InputError(f"{there}; expected {' or '.join(keys)}", file=path, field=keys[0])


def _errors(value: Mapping[str, Any]) -> str:
    errors = value.get("errors")
    told = []
    for each in errors if isinstance(errors, list) else ():
        fields = each if isinstance(each, Mapping) else {"error": each}
        texts = (fields.get(key) for key in ("description", "error", "source"))
        told.append(", ".join(str(one) for one in texts if one) or "not described")
    return "; ".join(told)[:200]


def number(value: Any, otherwise: float | None = None) -> Any:
    """Return a number that is bare or an object with ``set``, ``infinite`` and ``number``.

    `otherwise` is returned for a number that is not set, and infinity for an infinite one.

    >>> number({"set": True, "infinite": False, "number": 3}), number(None), number(7)
    (3, None, 7)
    """
    if isinstance(value, Mapping):
        if value.get("infinite"):
            return math.inf
        value = value.get("number") if value.get("set") else None
    return value if type(value) in (int, float) else otherwise


def text(value: Any) -> str:
    """Return a text, empty for one that stands for no value."""
    return "" if not isinstance(value, str) or value in UNSET else value


def _version(meta: Mapping[str, Any], path: Path) -> int:
    plugin = meta.get("plugin", meta.get("plugins"))
    given = plugin if isinstance(plugin, Mapping) else {}
    stated = str(given.get("data_parser") or given.get("type") or "")
    found = _VERSION.search(stated)
    if found is None or int(found[1]) not in VERSIONS:
        known = f"v0.0.{VERSIONS[0]} to v0.0.{VERSIONS[-1]}"
        shown = stated or "none"
        expected = f"expected {known}, which --json=v0.0.44 asks for, for instance"
        raise InputError(f"data parser {shown}; {expected}", file=path, field="meta.plugin")
    return int(found[1])


def _release(meta: Mapping[str, Any]) -> str:
    slurm = meta.get("slurm", meta.get("Slurm"))
    return str(slurm.get("release", "")) if isinstance(slurm, Mapping) else ""


NO_VALUE = 2**32 - 2
"""The number of 32 bits that stands for no value; that for infinity is one more."""

NO_SHORT_VALUE = 32766
"""The same for counts of 16 bits."""

_Value = TypeVar("_Value")


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        if value.get("infinite") is True:
            return math.inf
        if value.get("set") is not True:
            return None
        value = value.get("number")
        if value is None:
            raise InputError("None; expected a number")
    if value is None or value in UNSET:
        return None
    if value in ("UNLIMITED", "INFINITE"):
        return math.inf
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError
    if value >= NO_VALUE:
        if value in (2**32 - 1, 2**64 - 1):
            return math.inf
        if value == NO_VALUE or 2**63 <= value <= 2**64:  # of 64 bits, or with a flag
            return None
        raise InputError(f"{value}; expected a number from 0 below 2^32")
    return float(value)


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(word for word in value if word not in UNSET)
    if value is not None and not isinstance(value, str):
        raise ValueError
    return () if value is None or value in UNSET else (value,)


_NOTHING = Fields()
_NUMBER = Parsed(_number, "a number from 0")
_WORDS = Parsed(_words, "a text")
_TEXT = Of(str, NoneType, expected="a text")
_FLAG = Of(bool, NoneType, expected="true or false")
_INTEGER = Integer(-NO_VALUE, NO_VALUE + 1, "expected a whole number of 32 bits")


class RecordFields:
    """A record of a dump, whose fields are checked as they are taken.

    A field of an object within the record is named with a dot: ``time.start``.
    """

    def __init__(self, dump: Dump, place: int) -> None:
        self.dump, self.place = dump, place
        self.fields = dump.records[place]

    def value(self, field: str) -> Any:
        """Return a field as it is, None if it is not there."""
        value: Any = self.fields
        for name in field.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def error(self, field: str, mistake: str) -> InputError:
        """Return a mistake in a field, with the name of the record."""
        name = self.dump.name(self.place)
        return InputError(f"{name}: {mistake}", file=self.dump.path, field=field)

    def wrong(self, field: str, expected: str) -> InputError:
        """Return the error of a field that has another form than `expected`."""
        return self.error(field, f"{shown(self.value(field))}; expected {expected}")

    def number(self, field: str) -> float | None:
        """Return a number from 0, infinity, or None for no value."""
        number: float | None = self._read(field, _NUMBER)
        return number

    def count(self, field: str, *, short: bool = False) -> int:
        """Return a whole number, with 0 for no value and for no limit."""
        number = self.number(field)
        if number is None or number == math.inf or (short and number >= NO_SHORT_VALUE):
            return 0
        if number != int(number):
            raise self.wrong(field, "a whole number from 0")
        return int(number)

    def instant(self, field: str) -> int | None:
        """Return a time in seconds since 1970, None for 0."""
        return self.count(field) or None

    def integer(self, field: str) -> int:
        """Return a whole number that may be negative."""
        return 0 if self.value(field) is None else int(self._read(field, _INTEGER))

    def flag(self, field: str) -> bool:
        """Return whether a field is true."""
        return bool(self._read(field, _FLAG))

    def text(self, field: str) -> str:
        """Return a text, empty for no value."""
        text = self._read(field, _TEXT)
        return "" if text is None or text in UNSET else str(text)

    def words(self, field: str) -> tuple[str, ...]:
        """Return the texts of a list, or one text."""
        return tuple(self._read(field, _WORDS))

    def listed(self, field: str, separator: str = ",") -> tuple[str, ...]:
        """Return the words between separators of a text, or of a list of texts."""
        return tuple(word for text in self.words(field) for word in text.split(separator) if word)

    def parsed(self, field: str, parse: Callable[[str], _Value]) -> _Value:
        """Return the value that `parse` makes of a text; its error names the field."""
        try:
            return parse(self.text(field))
        except InputError as error:
            raise self.error(field, error.mistakes[0]) from None

    def _read(self, field: str, kind: Kind) -> Any:
        try:
            return kind.read(self.value(field), _NOTHING)
        except WrongValueError as error:
            raise self.error(field, error.mistakes[0].removeprefix(": ")) from None


def captured_folder(path: Path) -> Path:
    """Return a path that is a folder."""
    if not path.is_dir():
        what = "is a file" if path.exists() else "is not there"
        raise InputError(
            f"{what}; expected a folder with the output of Slurm's commands", file=path
        )
    return path


def captured_files(folder: Path, *names: str) -> Iterator[Path]:
    """Yield those of these files that are there, plain or with ``.gz``.

    An empty file does not count: a command that Slurm refuses leaves one.
    """
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file() and path.stat().st_size:
                yield path


def captured_file(folder: Path, *names: str) -> Path | None:
    """Return the first of `captured_files`; None without one."""
    return next(captured_files(folder, *names), None)


def captured_time(folder: Path) -> int | None:
    """Return the seconds since 1970 in the file ``now``; None if it is not there."""
    file = captured_file(folder, "now")
    if file is None:
        return None
    text = read_bytes(file)[0].decode("utf-8", errors="replace").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise InputError(f"{text[:60]!r}; expected seconds since 1970", file=file)
    return int(text)


DEEPEST = 10
"""Most files that include each other."""

LEAST = 2**16
"""Bytes that an included file counts for, towards `MOST`, if it has fewer."""

MOST_KEYS = 5_000
"""Most keys of a line, and most settings of a cluster."""

MOST_LINES = 250_000
"""Most lines with keys in a file."""

_PAIR = re.compile(r"""\s*([\w.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?:\s+|$)""")
_LINE = re.compile(r"[^\n]++")
_PRINTED = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=(\S*(?:\s+(?![A-Za-z][\w/:]*=)\S+)*)")
_COMMENT = re.compile(r"(?<!\\)#.*")
_HEADING = re.compile(r"Configuration data as of .*|.* Configuration:|Slurmctld\(.*\) at .* is .*")
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Line(RecordFields):
    """Pairs of a line: a record as text. Keys are in small letters, `first` is the first of them.

    The methods take the names of JSON, too, for which `names` has other keys.
    """

    first: str
    values: Mapping[str, str]
    file: Path
    line: int | None
    names: Mapping[str, str] = field(default_factory=dict)

    def _key(self, field: str) -> str:
        return self.names.get(field, field.lower())

    def value(self, field: str) -> str:
        """Return a text as it is, empty if it is not there."""
        return self.values.get(self._key(field), "")

    def error(self, field: str, mistake: str) -> InputError:
        """Return a mistake in the value of a key."""
        return InputError(mistake, file=self.file, line=self.line, field=self._key(field))

    def text(self, field: str) -> str:
        """Return a text, empty for no value."""
        value = self.value(field)
        return "" if value in UNSET else value

    def count(self, field: str, *, short: bool = False) -> int:
        """Return a whole number, with 0 for no value."""
        number = whole_number(self.text(field) or "0")
        if number is None:
            raise self.wrong(field, "a whole number from 0")
        return number


def configuration_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a configuration file, and of the files that it includes.

    A backslash at the end of a line continues it, ``#`` begins a comment, and values may be in
    quotation marks. A relative path of an included file starts at the folder of `path`.
    """
    yield from _included(path, 0, [MOST])


def _included(path: Path, depth: int, left: list[int]) -> Iterator[Line]:
    """Yield the lines of a file and of those that it includes, which may have `left` bytes."""
    if depth > DEEPEST:
        raise InputError("is included too deeply; expected no circle", file=path)
    whole = read_text(path)
    left[0] -= max(len(whole), LEAST if depth else 0)
    if left[0] < 0:
        most = f"expected at most {MOST >> 20} MiB of all included files"
        raise InputError(f"is included after too many others; {most}", file=path)
    lines = 0
    for number, text in _logical_lines(whole, path):
        if included := _INCLUDE.fullmatch(text):
            yield from _included(path.parent / included[1], depth + 1, left)
            continue
        values: dict[str, str] = {}
        place, end = 0, len(text)
        while place < end:
            pair = _PAIR.match(text, place)
            if pair is None:
                shown = text[place : place + 100].strip()[:40]
                raise InputError(f"{shown!r}; expected Key=Value", file=path, line=number)
            key = sys.intern(pair[1].lower())
            if key in values:
                raise InputError(
                    "is there twice; expected it once", file=path, line=number, field=key
                )
            values[key] = pair[2] if pair[2] is not None else pair[3]
            check_keys(values, path, number)
            place = pair.end()
        if values:
            lines += 1
            _check_lines(lines, path)
            yield Line(next(iter(values)), values, path, number)


def printed_lines(path: Path, names: Mapping[str, str] = {}) -> Iterator[Line]:
    """Yield the lines with pairs of a file that ``scontrol -o`` printed; values may have blanks.

    The first value of a key counts: comments and reasons, which may hold anything, are at the end.
    """
    yield from _printed(read_text(path), path, names)


def _printed(content: str, path: Path, names: Mapping[str, str] = {}) -> Iterator[Line]:
    lines = 0
    for (number, text), (following, after) in pairwise(chain(lines_of(content, path), [(0, "")])):
        if said := on_several_lines(text, after):
            raise InputError(said, file=path, line=following)
        values: dict[str, str] = {}
        for pair in _PRINTED.finditer(text):
            values.setdefault(sys.intern(pair[1].lower()), pair[2])
            check_keys(values, path, number)
        if values:
            lines += 1
            _check_lines(lines, path)
            yield Line(next(iter(values)), values, path, number, names)
    if not lines and (said := near_miss(content.encode())):
        raise InputError(said, file=path)


def only_lines(content: str, path: Path, key: str, command: str) -> list[Line]:
    """Return the lines with pairs of a text that has nothing else, but for ``No ...``."""
    lines = list(_printed(content, path))
    known = {each.line for each in lines}
    for place, text in lines_of(content, path):
        if text.strip() and place not in known and not text.startswith("No "):
            expected = f"expected {key}=..., as {command} writes it"
            raise InputError(f"{text.strip()[:40]!r}; {expected}", file=path, line=place)
    return lines


def shown_settings(path: Path) -> dict[str, str]:
    """Return the settings that ``scontrol show config`` wrote, by names in small letters."""
    found: dict[str, str] = {}
    expected = "expected Key = Value, as scontrol show config writes it"
    is_empty = True
    for number, line in lines_of(read_text(path), path):
        name, has_value, value = line.partition("=")
        if not has_value and line.strip() and not _HEADING.fullmatch(line.strip()):
            raise InputError(f"{line.strip()[:40]!r}; {expected}", file=path, line=number)
        is_empty &= not has_value
        if value.strip() not in UNSET:
            found[name.strip().lower()] = value.strip()
        check_keys(found, path, number)
    if is_empty:
        raise InputError(f"no settings; {expected}", file=path)
    return found


def lines_of(
    text: str, path: Path | None = None, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are not empty, with their numbers from 1."""
    number, place = 1, 0
    for found in _LINE.finditer(text):
        number += text.count("\n", place, found.start())
        place = found.start()
        if found.end() - place > longest:
            raise too_long(path, number)
        yield number, found[0].removesuffix("\r")


def read_text(path: Path) -> str:
    """Return the text of a file, plain or gzip."""
    return _text_of(read_bytes(path)[0], path)


def _text_of(data: bytes, path: Path) -> str:
    try:
        if b"\0" not in data:
            return data.decode("utf-8-sig")
        raise InputError("has zero bytes; expected a text file", file=path)
    except UnicodeDecodeError:
        said = near_miss(data) or "not UTF-8; expected a text file"
        raise InputError(said, file=path) from None


def _logical_lines(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines without comments, with the lines that continue them, and their first number."""
    parts: list[str] = []
    begin = last = size = 0
    for number, line in lines_of(text, path):
        if parts and number > last + 1:  # an empty line ends one that is continued
            yield begin, " ".join(parts).rstrip()
            parts = []
        if not parts:
            begin, size = number, 0
        line = _COMMENT.sub("", line).replace("\\#", "#").rstrip()
        continued = line.endswith("\\")
        parts.append(line[:-1] if continued else line)
        last, size = number, size + len(line) + 1
        if size > LONGEST_LINE:
            raise too_long(path, begin)
        if not continued:
            yield begin, " ".join(parts).rstrip()
            parts = []
    if parts:
        yield begin, " ".join(parts).rstrip()


def check_keys(values: Mapping[str, str], path: Path, number: int | None) -> None:
    """Check that a line of a file, or all of it, has at most `MOST_KEYS` keys."""
    if len(values) > MOST_KEYS:
        raise InputError(f"expected at most {MOST_KEYS:,} keys", file=path, line=number)


def _check_lines(lines: int, path: Path) -> None:
    if lines > MOST_LINES:
        raise InputError(f"expected at most {MOST_LINES:,} lines with keys", file=path)


LONGEST_LIST = 60
"""Most characters of a list of names in a sentence."""


class Notes:
    """What a reader left out or changed, with the number of nodes or other things concerned."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, what: str) -> None:
        """Note something that concerns everything."""
        self._names[what, ""] = []

    def count(self, names: Iterable[str], what: str, noun: str = "node") -> None:
        """Note what was done to some nodes, or to other things of a noun; nothing for none."""
        if names := list(names):
            self._names.setdefault((what, noun), []).extend(names)

    @property
    def texts(self) -> tuple[str, ...]:
        """The notes, a line each."""
        return tuple(
            f"{listed(names, noun)}: {what}" if names else what
            for (what, noun), names in self._names.items()
        )


def listed(names: Sequence[str], noun: str = "node") -> str:
    """Return the number of nodes, or other things of a noun, with their names or the first one."""
    text = host_list(names)
    text = text if len(text) <= LONGEST_LIST else f"{names[0]} first"
    return f"{counted(len(names), noun)} ({text})"
