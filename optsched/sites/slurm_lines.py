"""Lines of ``Key=Value`` pairs: Slurm's configuration files, and what ``scontrol -o`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from optsched.binary_files import read_bytes
from optsched.errors import InputError

DEEPEST = 10
"""Most files that include each other."""

_PAIR = re.compile(r"""\s*([\w.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?=\s|$)""")
_PRINTED = re.compile(r"(?:^|\s)([A-Za-z]\w*)=(.*?)(?=\s+[A-Za-z]\w*=|\s*$)")
_COMMENT = re.compile(r"(?<!\\)#.*")
_INCLUDE = re.compile(r"\s*include\s+(\S+)\s*", re.IGNORECASE)


class Line(NamedTuple):
    """Pairs of a line. Keys are in small letters, `first` is the first of them."""

    first: str
    values: Mapping[str, str]
    file: Path
    number: int

    def error(self, key: str, mistake: str) -> InputError:
        """Return a mistake in the value of a key."""
        return InputError(mistake, file=self.file, line=self.number, field=key)


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

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    for number, text in enumerate(read_text(path).splitlines(), 1):
        values = {pair[1].lower(): pair[2] for pair in _PRINTED.finditer(text)}
        if values:
            yield Line(next(iter(values)), values, path, number)


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
        raise InputError("not UTF-8; expected a text file", file=path) from None


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
