"""Reading of a text file in pieces of whole lines, so that only a piece is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from optsched.errors import InputError
from optsched.stored import Content

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

LONGEST_LINE = 2**20
"""Most bytes of a line."""


class Piece(NamedTuple):
    """Whole lines of a file, and the number of the first."""

    data: bytes
    line: int


def pieces(content: Content, path: Path, expected: str) -> Iterator[Piece]:
    """Yield the lines of a file, in pieces of the size that is read at once.

    Parameters
    ----------
    content : Content
        Content of the file; a byte order mark is left out.
    path : path
        The file, for messages.
    expected : str
        Expected content, for messages.

    Raises
    ------
    InputError
        If the file cannot be read, is not text, or a line is longer than `LONGEST_LINE`.
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
            most = f"expected lines of at most {LONGEST_LINE >> 20} MiB"
            raise InputError(f"is too long; {most}", file=path, line=line)
        data = content.read()
    if begun:
        yield Piece(begun, line)
