"""Files as bytes: plain or gzipped, read in bounded memory, written under a temporary name."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from optsched.errors import InputError
from optsched.files import check_name, written

GZIP_MAGIC = b"\x1f\x8b"
HEAD = 4096

MOST = 2**28
"""Most bytes, decompressed, of a file that is read as a whole: 256 MiB."""

MOST_RATIO = 100
"""Times its size that a file may unpack to, if that is more than `MOST` bytes."""

PIECE = 2**22
"""Bytes, decompressed, of a piece that is read at once."""


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    """Turn errors of reading a file in the context into input errors."""
    try:
        yield
    except EOFError:
        raise InputError("the gzip file is truncated", file=path) from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"the gzip data are damaged: {error}", file=path) from None
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from None


class Content:
    """Decompressed content of an open file or pipe, to be read once from the start.

    Gzip is recognized by its first two bytes, not by the name of the file.
    """

    def __init__(self, path: str | Path, stream: BinaryIO) -> None:
        self._path = path
        self._stored = _Hashed(stream)
        with _readable(path):
            first = self._stored.look_ahead(len(GZIP_MAGIC))
        self._size = 0
        self._plain: gzip.GzipFile | _Hashed = self._stored
        if first == GZIP_MAGIC:
            self._plain = gzip.GzipFile(fileobj=self._stored)  # type: ignore[call-overload]

    def read(self, size: int = PIECE) -> bytes:
        """Return the next `size` bytes; fewer only at the end."""
        with _readable(self._path):
            data = self._plain.read(size)
        self._size += len(data)
        if self._size > max(MOST, MOST_RATIO * self._stored.size):
            mistake = f"unpacks to more than {MOST >> 20} MiB and {MOST_RATIO} times its size"
            raise InputError(mistake, file=self._path)
        return data

    @property
    def sha256(self) -> str:
        """SHA-256 of the file as stored, valid once the whole content is read."""
        return self._stored.hash.hexdigest()


class _Hashed:
    """Binary file that hashes the bytes read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._ahead = b""
        self.size = 0
        self.hash = hashlib.sha256()

    def look_ahead(self, size: int) -> bytes:
        """Return the next bytes without consuming them."""
        self._ahead = self._stream.read(size)
        return self._ahead

    def read(self, size: int) -> bytes:
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        data = ahead + self._stream.read(size - len(ahead))
        self.hash.update(data)
        self.size += len(data)
        return data


@contextmanager
def opened(path: str | Path) -> Iterator[Content]:
    """Open a file or a pipe, to be read in pieces."""
    check_name(path)
    with _readable(path):
        mode = os.stat(path).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise InputError("is a device; expected a file", file=path)
        stream = open(path, "rb")  # noqa: SIM115 (closed below)
    with stream:
        yield Content(path, stream)


@contextmanager
def in_memory(path: str | Path) -> Iterator[None]:
    """Turn a lack of memory in the context into an `InputError` about a file."""
    try:
        yield
    except MemoryError:
        raise InputError("does not fit into memory", file=path) from None


def read_bytes(path: str | Path, most: int = MOST) -> tuple[bytes, str]:
    """Return the decompressed content of a file or pipe, and the SHA-256 of the file as stored."""
    pieces, size = [], 0
    with in_memory(path), opened(path) as content:
        while piece := content.read():
            size += len(piece)
            if size > most:
                raise InputError(f"holds more than {most >> 20} MiB", file=path)
            pieces.append(piece)
        return b"".join(pieces), content.sha256


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of a file as stored."""
    with _repeatable(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_head(path: str | Path) -> bytes:
    """Return the first `HEAD` bytes of a file, decompressed, or fewer at its end."""
    with _repeatable(path) as stream:
        stored = stream.read(HEAD)
        if not stored.startswith(GZIP_MAGIC):
            return stored
        return zlib.decompressobj(wbits=31).decompress(stored, HEAD)


@contextmanager
def _repeatable(path: str | Path) -> Iterator[BufferedReader]:
    """Open a file but no pipe, whose bytes would be lost for a later reader."""
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError("is a pipe or a device; expected a file", file=path)
    with _readable(path), path.open("rb") as stream:
        yield stream


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file under a temporary name, then rename it; gzipped if its name ends in ``.gz``.

    The same data always give the same file: no time stamp is stored.
    """
    with written_bytes(path, data):
        pass


@contextmanager
def written_bytes(path: str | Path, data: bytes) -> Iterator[None]:
    """Write a file like `write_bytes`, but rename it only if the context succeeds."""
    path = Path(path)
    if path.suffix == ".gz":
        data = gzip.compress(data, compresslevel=6, mtime=0)
    with written(path) as stream:
        stream.write(data)
        yield
