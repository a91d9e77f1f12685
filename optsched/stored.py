"""Files as bytes: plain or gzipped, read in bounded memory, written under a temporary name."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from optsched.errors import InputError
from optsched.files import check_name, written

GZIP_MAGIC = b"\x1f\x8b"
HEAD = 4096

MOST = 2**28
"""Bytes, decompressed, of a file that is read as a whole: 256 MiB."""

PIECE = 2**22
"""Bytes, decompressed, that are read at once."""


class Content:
    """What a file or a pipe holds, decompressed, to be read once from the start.

    Gzip is recognised by its first two bytes, whatever the name of the file.

    Parameters
    ----------
    path : path
        The file, for messages.
    stream : binary file
        The same, open for reading.
    """

    def __init__(self, path: str | Path, stream: BinaryIO) -> None:
        self._path = path
        self._stored = _Hashed(stream)
        with self._readable():
            first = self._stored.look_ahead(len(GZIP_MAGIC))
        self._plain: gzip.GzipFile | _Hashed = self._stored
        if first == GZIP_MAGIC:
            self._plain = gzip.GzipFile(fileobj=self._stored)  # type: ignore[call-overload]

    def read(self, size: int = PIECE) -> bytes:
        """Return the next `size` bytes; fewer only at the end, where there are none.

        Raises
        ------
        InputError
            If the file cannot be read, or is a truncated or damaged gzip file.
        """
        with self._readable():
            return self._plain.read(size)

    @property
    def sha256(self) -> str:
        """SHA-256 of the file as it is stored, once all of it is read."""
        return self._stored.hash.hexdigest()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except EOFError:
            raise InputError("the gzip file ends before its end", file=self._path) from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"the gzip data are damaged: {error}", file=self._path) from None
        except OSError as error:
            raise InputError(error.strerror or str(error), file=self._path) from None


class _Hashed:
    """A binary file that hashes what is read of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._ahead = b""
        self.hash = hashlib.sha256()

    def look_ahead(self, size: int) -> bytes:
        """Return the next bytes, which are still to be read."""
        self._ahead = self._stream.read(size)
        return self._ahead

    def read(self, size: int) -> bytes:
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        data = ahead + self._stream.read(size - len(ahead))
        self.hash.update(data)
        return data


@contextmanager
def opened(path: str | Path) -> Iterator[Content]:
    """Open a file or a pipe, to be read in pieces.

    Raises
    ------
    InputError
        If it cannot be opened, or is a device.
    """
    check_name(path)
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise InputError("is a device; expected a file", file=path)
        stream = open(path, "rb")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from None
    with stream:
        yield Content(path, stream)


@contextmanager
def in_memory(path: str | Path) -> Iterator[None]:
    """Say that a file does not fit into memory where what is done meanwhile runs out of it.

    Raises
    ------
    InputError
        If it does.
    """
    try:
        yield
    except MemoryError:
        raise InputError("does not fit into memory", file=path) from None


def read_bytes(path: str | Path, most: int = MOST) -> tuple[bytes, str]:
    """Return what a file or pipe holds, decompressed, and the SHA-256 of it as it is stored.

    Parameters
    ----------
    path : path
        The file.
    most : int
        Bytes that it may hold, decompressed.

    Raises
    ------
    InputError
        If the file cannot be read, is a truncated or damaged gzip file, or holds more than `most`.
    """
    pieces, size = [], 0
    with in_memory(path), opened(path) as content:
        while piece := content.read():
            size += len(piece)
            if size > most:
                raise InputError(f"holds more than {most >> 20} MiB", file=path)
            pieces.append(piece)
        return b"".join(pieces), content.sha256


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of a file as it is stored.

    Raises
    ------
    InputError
        If it cannot be read, or is none that can be read again.
    """
    path = Path(path)
    _check_repeatable(path)
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from None


def read_head(path: str | Path) -> bytes:
    """Return at most the first `HEAD` bytes of what a file holds, decompressed.

    Raises
    ------
    InputError
        If the file cannot be read, is a damaged gzip file, or is none that can be read again.
    """
    path = Path(path)
    _check_repeatable(path)
    try:
        with path.open("rb") as stream:
            stored = stream.read(HEAD)
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from None
    if not stored.startswith(GZIP_MAGIC):
        return stored
    try:
        return zlib.decompressobj(wbits=31).decompress(stored, HEAD)
    except zlib.error as error:
        raise InputError(f"the gzip data are damaged: {error}", file=path) from None


def _check_repeatable(path: Path) -> None:
    if path.exists() and not (path.is_file() or path.is_dir()):
        # what is taken from a pipe is gone for whoever reads the whole
        raise InputError("is a pipe or a device; expected a file", file=path)


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file under a temporary name, then rename it; gzipped if its name ends in ``.gz``.

    The same data always give the same file: no time stamp is stored.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with written_bytes(path, data):
        pass


@contextmanager
def written_bytes(path: str | Path, data: bytes) -> Iterator[None]:
    """Write a file as `write_bytes` does, but rename it only when what is done meanwhile went well.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    path = Path(path)
    if path.suffix == ".gz":
        data = gzip.compress(data, compresslevel=6, mtime=0)
    with written(path) as temporary:
        temporary.write_bytes(data)
        yield
