"""Lines of ``Key=Value`` pairs: Slurm's configuration files, and what ``scontrol -o`` prints."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from optsched.errors import InputError
from optsched.files import MOST, read_bytes
from optsched.sites.slurm_json import UNSET, near_miss, on_several_lines
from optsched.text_files import LONGEST_LINE, lines_of, too_long

DEEPEST = 10
"""Most files that include each other."""

LEAST = 2**16
"""Bytes that an included file counts for, towards `MOST`, if it has fewer."""

MOST_KEYS = 5_000
"""Most keys of a line, and most settings of a cluster."""

MOST_LINES = 250_000
"""Most lines with keys in a file."""

_PAIR = re.compile(r"""\s*([\w.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?:\s+|$)""")
_PRINTED = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=(\S*(?:\s+(?![A-Za-z][\w/:]*=)\S+)*)")
_COMMENT = re.compile(r"(?<!\\)#.*")
_WHOLE = re.compile(r"[0-9]{1,15}")
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*", re.IGNORECASE)


_Value = TypeVar("_Value")


class Line(NamedTuple):
    """Pairs of a line. Keys are in small letters, `first` is the first of them.

    The methods raise InputError with file, line and key if a value has another form.
    """

    first: str
    values: Mapping[str, str]
    file: Path
    number: int | None

    def error(self, key: str, mistake: str) -> InputError:
        """Return a mistake in the value of a key."""
        return InputError(mistake, file=self.file, line=self.number, field=key)

    def wrong(self, key: str, expected: str) -> InputError:
        """Return the error of a value that has another form than `expected`."""
        shown = repr(self.values.get(key, ""))
        shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
        return self.error(key, f"{shown}; expected {expected}")

    def text(self, key: str) -> str:
        """Return a text, empty for no value."""
        value = self.values.get(key, "")
        return "" if value in UNSET else value

    def count(self, key: str) -> int:
        """Return a whole number, with 0 for no value."""
        value = self.text(key)
        if value and not _WHOLE.fullmatch(value):
            raise self.wrong(key, "a whole number from 0")
        return int(value or 0)

    def parsed(self, key: str, parse: Callable[[str], _Value]) -> _Value:
        """Return the value that `parse` makes of a text; its error names the key."""
        try:
            return parse(self.text(key))
        except InputError as error:
            raise self.error(key, error.mistakes[0]) from None


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


def printed_lines(path: Path) -> Iterator[Line]:
    """Yield the lines with pairs of a file that ``scontrol -o`` printed; values may have blanks.

    The first value of a key counts: comments and reasons, which may hold anything, are at the end.
    """
    content = read_text(path)
    for (_, before), (number, text) in pairwise(lines_of(content, path)):
        if said := on_several_lines(before, text):
            raise InputError(said, file=path, line=number)
    lines = 0
    for number, text in lines_of(content, path):
        values: dict[str, str] = {}
        for pair in _PRINTED.finditer(text):
            values.setdefault(sys.intern(pair[1].lower()), pair[2])
            check_keys(values, path, number)
        if values:
            lines += 1
            _check_lines(lines, path)
            yield Line(next(iter(values)), values, path, number)
    if not lines and (said := near_miss(content.encode())):
        raise InputError(said, file=path)


def read_text(path: Path) -> str:
    """Return the text of a file, plain or gzip."""
    data, _ = read_bytes(path)
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
