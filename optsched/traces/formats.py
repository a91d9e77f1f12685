"""The contract of a trace format."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Set
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from optsched.traces.trace import COLUMNS, UNKNOWN, Trace


class Encoder(Protocol):
    """States a trace in a format."""

    def __call__(self, trace: Trace, path: Path) -> bytes:
        """Return what a file that states `trace` holds; `path` is its name, for messages."""


class TraceFormat(ABC):
    """A file format of traces; a subclass is registered with ``@readers.register(name)``.

    The class itself is used, it is never instantiated. Gzip is no concern of a format: `read` goes
    through `optsched.stored`, and so does what `encode` returns.

    Attributes
    ----------
    name : str
        The registered name.
    suffixes : tuple of str
        The endings of its files, without ``.gz``.
    annotations : frozenset of str
        The annotations that its files may state.
    encode : callable or None
        Returns what a file that states a trace holds, before it is compressed; None for a format
        that is only read.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    annotations: ClassVar[frozenset[str]] = frozenset()
    encode: ClassVar[Encoder | None] = None

    @staticmethod
    @abstractmethod
    def recognises(first_bytes: bytes, path: Path) -> bool:
        """Tell from the first bytes, decompressed, whether a file is likely of this format."""

    @staticmethod
    @abstractmethod
    def read(path: Path) -> Trace:
        """Read a raw trace.

        Raises
        ------
        InputError
            If the file cannot be read or is not of this format.
        """

    @staticmethod
    def job_numbers(trace: Trace) -> NDArray[np.int64]:
        """Return the numbers that the jobs of a trace have when a file of it is read back."""
        return trace.job_id

    @staticmethod
    def line_of(path: Path, job_id: int) -> int | None:
        """Return the line of a job in a file that was read, if a line is all of a job."""
        return None


def say_left_out(
    trace: Trace, target: str, written: Set[str], header: Set[str] = frozenset()
) -> None:
    """Say in the log what of a trace a format has no place for.

    Parameters
    ----------
    trace : Trace
        The trace that was written.
    target : str
        What was written, for the message.
    written : set of str
        The columns and annotations that it holds.
    header : set of str
        The keys of header lines that it holds, in lower case.
    """
    lines = sum(bool(text) and key.lower() not in header for key, text in trace.header.lines)
    names = [
        name
        for name in COLUMNS
        if name not in written
        and (getattr(trace, name) != UNKNOWN).any()
        and not (name == "stated_time" and np.array_equal(trace.stated_time, trace.requested_time))
    ]
    names += [name for name in trace.annotations if name not in written]
    left_out = [f"{lines:,} header lines"] if lines else []
    left_out += [f"{len(names)} columns ({', '.join(names)})"] if names else []
    if left_out:
        logging.getLogger("optsched").info(
            "not written, %s has no place for them: %s", target, " and ".join(left_out)
        )


def stem(path: Path) -> str:
    """Return the name of a trace: that of its file without the suffixes ``.gz`` and of the format.

    >>> stem(Path("logs/SDSC-SP2-1998-4.2-cln.swf.gz"))
    'SDSC-SP2-1998-4.2-cln'
    """
    plain = without_gz(path)
    known = plain.suffix[1:].isalpha()
    return plain.stem if known else plain.name


def without_gz(path: Path) -> Path:
    """Return `path` without a final ``.gz``."""
    return path.with_suffix("") if path.suffix == ".gz" else path
