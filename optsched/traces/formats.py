"""Interface of trace formats, and the reading of texts in pieces."""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.files import Content
from optsched.numbers import counted
from optsched.text_files import LONGEST_LINE, too_long
from optsched.traces.trace import COLUMNS, UNKNOWN, Trace


class Encoder(Protocol):
    """Function that returns the content of a file of a trace, before compression."""

    def __call__(self, trace: Trace, path: Path) -> bytes:
        """Return the content; the path is for messages."""


class TraceFormat(ABC):
    """A file format of traces; a subclass is registered with ``@readers.register(name)``.

    The class itself is used, without instances. A format ignores gzip: `read` uses
    `optsched.files` for its files, and so does the caller of `encode`.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]  # suffixes of the files of the format, without ``.gz``
    # Annotations that a file of the format can state
    annotations: ClassVar[frozenset[str]] = frozenset()
    # Whether a file can state annotations and texts of all names, and so demands too
    any_annotation: ClassVar[bool] = False
    encode: ClassVar[Encoder | None] = None  # None for a format that is only read

    @staticmethod
    @abstractmethod
    def recognizes(first_bytes: bytes, path: Path) -> bool:
        """Return whether a file is likely of this format, by its first bytes, decompressed."""

    @staticmethod
    @abstractmethod
    def read(path: Path) -> Trace:
        """Read a raw trace."""

    @staticmethod
    def job_numbers(trace: Trace) -> NDArray[np.int64]:
        """Return the numbers that the jobs of a trace have after writing and reading."""
        return trace.job_id

    @staticmethod
    def line_of(path: Path, job_id: int) -> int | None:
        """Return the line of a job in a file; None if the format has no line per job."""
        return None


class TableFormat(TraceFormat):
    """A file format of tables with named columns, which may have other names than in a trace."""

    any_annotation = True

    @staticmethod
    @abstractmethod
    def read(path: Path, columns: Mapping[str, str] | None = None) -> Trace:
        """Read a raw trace, with the names in the file of columns that have others there."""


def known_columns(trace: Trace) -> list[str]:
    """Return the columns that are known for any job, without a stated time that is requested."""
    return [
        name
        for name in COLUMNS
        if (getattr(trace, name) != UNKNOWN).any()
        and not (name == "stated_time" and np.array_equal(trace.stated_time, trace.requested_time))
    ]


def say_left_out(
    trace: Trace, target: str, written: Set[str], header: Set[str] | None = frozenset()
) -> None:
    """Log the columns and header lines of a trace that a format, the target, cannot hold.

    The format holds the columns, annotations and texts `written`, and the header lines with the
    keys `header`, in lower case; all lines if that is None.
    """
    lines = 0
    if header is not None:
        lines = sum(bool(text) and key.lower() not in header for key, text in trace.header.lines)
    names = [name for name in known_columns(trace) if name not in written]
    names += [name for name in (*trace.annotations, *trace.texts) if name not in written]
    left_out = [counted(lines, "header line")] if lines else []
    left_out += [f"{counted(len(names), 'column')} ({', '.join(names)})"] if names else []
    log = logging.getLogger("optsched")
    if left_out:
        log.info("not written, %s has no place for them: %s", target, " and ".join(left_out))
    if header is not None and trace.header.unix_start_time:
        log.info(
            "the time at which the trace begins (UnixStartTime) is not written, so reservations of "
            "a site do not hold at their dates; Parquet and SWF have it"
        )


def stem(path: Path) -> str:
    """Return the name of a trace: the name of its file without ``.gz`` and the format's suffix.

    >>> stem(Path("logs/SDSC-SP2-1998-4.2-cln.swf.gz"))
    'SDSC-SP2-1998-4.2-cln'
    """
    plain = without_gz(path)
    known = plain.suffix[1:].isalpha()
    return plain.stem if known else plain.name


def without_gz(path: Path) -> Path:
    """Return `path` without a final ``.gz``."""
    return path.with_suffix("") if path.suffix == ".gz" else path


MOST = 2**34  # most bytes of a file that is read as a whole: 16 GiB

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

SHOWN = 30  # most characters of a wrong word in a message


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


def shown(word: bytes | str, encoding: str = "utf-8") -> str:
    """Return a word for a message, shortened to `SHOWN` characters."""
    word = word.encode(errors="replace") if isinstance(word, str) else word
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
