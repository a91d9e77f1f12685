"""Files as bytes: plain or gzipped, read whole, written under a temporary name."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from optsched.errors import InputError
from optsched.files import check_name, written

GZIP_MAGIC = b"\x1f\x8b"
HEAD = 4096


def read_bytes(path: str | Path) -> tuple[bytes, str]:
    """Return what a file or pipe holds, decompressed, and the SHA-256 of it as it is stored.

    Gzip is recognised by its first two bytes, whatever the name of the file.

    Raises
    ------
    InputError
        If the file cannot be read, or is a truncated or damaged gzip file.
    """
    check_name(path)
    try:
        stored = Path(path).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from None
    return _decompressed(stored, path), hashlib.sha256(stored).hexdigest()


def read_head(path: str | Path) -> bytes:
    """Return at most the first `HEAD` bytes of what a file holds, decompressed.

    Raises
    ------
    InputError
        If the file cannot be read, is a damaged gzip file, or is none that can be read again.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        # what is taken from a pipe is gone for whoever reads the whole
        raise InputError("is a pipe or a device; expected a file", file=path)
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


def _decompressed(stored: bytes, path: str | Path) -> bytes:
    if not stored.startswith(GZIP_MAGIC):
        return stored
    try:
        return gzip.decompress(stored)
    except EOFError:
        raise InputError("the gzip file ends before its end", file=path) from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"the gzip data are damaged: {error}", file=path) from None
