"""Reading of a text file in pieces of whole lines, and the errors of words in such lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from optsched.binary_files import Content
from optsched.errors import InputError
from optsched.text_files import LONGEST_LINE, too_long

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

SHOWN = 30
"""Most characters of a wrong word in a message."""


class Piece(NamedTuple):
    """Whole lines of a file, and the number of the first."""

    data: bytes
    line: int


def pieces(content: Content, path: Path, expected: str) -> Iterator[Piece]:
    """Yield the lines of a file, in pieces of the size that is read at once.

    Only a piece is in memory. A byte order mark is left out. The expected content is for messages.
    """
    line, begun = 1, b""
    data = content.read().removeprefix(BYTE_ORDER_MARK)
    while data:
        if b"\0" in data:
            raise InputError(f"not text; expected {expected}", file=path)
        whole = data.rfind(b"\n") + 1
        if whole:
            yield Piece(begun + data[:whole], line)
            line += data.count(b"\n")
            begun = data[whole:]
        else:
            begun += data
        if len(begun) > LONGEST_LINE:
            raise too_long(path, line)
        data = content.read()
    if begun:
        yield Piece(begun, line)


def check_utf8(data: bytes, path: Path, expected: str) -> None:
    """Check that the content of a file is UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        raise InputError(f"not UTF-8; expected {expected}", file=path, line=line) from None


def shown(word: bytes, encoding: str = "utf-8") -> str:
    """Return a word for a message, shortened to `SHOWN` characters."""
    text = word.decode(encoding, errors="replace")
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")


def refuse_word(checks: Iterable[tuple[str, bytes, str, bytes]], path: Path, line: int) -> NoReturn:
    """Raise the error of the first wrong word of a line, which has at least one.

    The checks are name, pattern, expected content and word of each field.
    """
    field, _, expected, word = next(
        check for check in checks if re.fullmatch(check[1], check[3]) is None
    )
    raise InputError(f"{shown(word)}; expected {expected}", file=path, line=line, field=field)
