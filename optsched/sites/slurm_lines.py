"""Lines of ``Key=Value`` pairs: Slurm's configuration files, and what ``scontrol -o`` prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

from optsched.binary_files import read_bytes
from optsched.errors import InputError
from optsched.sites.near_misses import near_miss, on_several_lines
from optsched.sites.slurm_json import UNSET

DEEPEST = 10
"""Most files that include each other."""

_PAIR = re.compile(r"""\s*([\w.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?=\s|$)""")
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
        """Return what `parse` makes of a text; its error names the key."""
        try:
            return parse(self.text(key))
        except InputError as error:
            raise self.error(key, error.mistakes[0]) from None


def configuration_lines(path: Path, depth: int = 0) -> Iterator[Line]:
    """Yield the lines of a configuration file, and of the files that it includes.

    A backslash at the end of a line continues it, ``#`` begins a comment, and values may be in
    quotation marks. A relative path of an included file starts at the folder of `path`.

    Raises
    ------
    InputError
        If a file cannot be read, files include each other, or a line has no such pairs.
    """
    if depth > DEEPEST:
        raise InputError("is included too deeply; expected no circle", file=path)
    for number, text in _logical_lines(read_text(path)):
        if included := _INCLUDE.fullmatch(text):
            yield from configuration_lines(path.parent / included[1], depth + 1)
            continue
        values: dict[str, str] = {}
        place = 0
        while text[place:].strip():
            pair = _PAIR.match(text, place)
            if pair is None:
                shown = text[place:].strip()[:40]
                raise InputError(f"{shown!r}; expected Key=Value", file=path, line=number)
            values[pair[1].lower()] = pair[2] if pair[2] is not None else pair[3]
            place = pair.end()
        if values:
            yield Line(next(iter(values)), values, path, number)


def printed_lines(path: Path) -> Iterator[Line]:
    """Yield the lines with pairs of a file that ``scontrol -o`` printed; values may have blanks.

    The first value of a key counts: comments and reasons, which may hold anything, are at the end.

    Raises
    ------
    InputError
        If the file cannot be read, has records on several lines, or what another command wrote.
    """
    content = read_text(path)
    lines, found = content.splitlines(), False
    for number, (before, text) in enumerate(pairwise(lines), 2):
        if said := on_several_lines(before, text):
            raise InputError(said, file=path, line=number)
    for number, text in enumerate(lines, 1):
        values: dict[str, str] = {}
        for pair in _PRINTED.finditer(text):
            values.setdefault(pair[1].lower(), pair[2])
        if values:
            found = True
            yield Line(next(iter(values)), values, path, number)
    if not found and (said := near_miss(content.encode())):
        raise InputError(said, file=path)


def read_text(path: Path) -> str:
    """Return the text of a file, plain or gzip.

    Raises
    ------
    InputError
        If the file cannot be read, or is not UTF-8.
    """
    data, _ = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        said = near_miss(data) or "not UTF-8; expected a text file"
        raise InputError(said, file=path) from None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments, with the lines that continue them, and their first number."""
    whole, begin = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        line = _COMMENT.sub("", line).replace("\\#", "#").rstrip()
        begin = begin or number
        if line.endswith("\\"):
            whole += line[:-1] + " "
            continue
        yield begin, whole + line
        whole, begin = "", 0
    if whole:
        yield begin, whole
