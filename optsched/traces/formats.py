"""The contract of a trace format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Protocol

from optsched.traces.trace import Trace


class Writer(Protocol):
    """Writes a trace to a path."""

    def __call__(self, trace: Trace, path: Path) -> None:
        """Write `trace` to `path`."""


class TraceFormat(ABC):
    """A file format of traces; a subclass is registered with ``@readers.register(name)``.

    The class itself is used, it is never instantiated. Gzip is no concern of a format: `read` and
    `write` go through `optsched.stored`.

    Attributes
    ----------
    name : str
        The registered name.
    suffixes : tuple of str
        The endings of its files, without ``.gz``.
    write : callable or None
        Writes a trace to a path; None for a format that is only read.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    write: ClassVar[Writer | None] = None

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
