"""Files, read in bounded memory, plain or gzipped; and files and folders, written as a whole.

Output is written under a temporary name, then renamed. A file is synced before it is renamed, so
that an output with its name survives a power failure. No other user can foresee a temporary name,
and no link that is laid there is followed.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import math
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from optsched.errors import InputError

TEMPORARY = re.compile(
    r"\.(?P<name>.+)\.(?P<host>[^.]*)-(?P<process>\d+)(?:\.(?P<began>\d+))?(?:\.r[0-9a-f]+)?"
    r"\.(?P<state>partial|old)",
    re.DOTALL,
)
"""Temporary names of files and folders, with their writer.

The writer is identified by host, process and start time of the process, since process numbers are
reused; a random part follows. The state ``old`` is that of a folder that is being replaced.
"""

KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of writing that do not always have the name of the file."""


class FolderKind(NamedTuple):
    """Kind of output folder: its name in messages and its contents.

    The file `marker` identifies such a folder. `files` are patterns of the names of all others.
    """

    name: str
    marker: str
    files: tuple[str, ...]
    folders: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Return whether a folder of this kind may have a file of a given name."""
        return any(fnmatch(name, pattern) for pattern in (self.marker, *self.files))


def check_name(path: str | Path) -> None:
    """Check that a name is UTF-8, so that tables, JSON and other programs can hold it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError("the name is not UTF-8; rename it", file=ascii(str(path))) from None


def check_output(path: Path, *sources: str | Path | None) -> None:
    """Check that a path can be written as a file, before long work.

    An output is absent or a regular file, since a device, a pipe or a socket would be replaced. A
    link is followed to its target. Files `sources` that are read must not be overwritten under any
    name or link.
    """
    check_name(path)
    what = _what_is(path)
    if what not in (None, "a file"):
        raise InputError(f"is {what}; expected a file to write to", file=path)
    there = (source for source in sources if source is not None and os.path.exists(source))
    if what is not None and any(path.samefile(source) for source in there):
        raise InputError("is the input; expected another file to write to", file=path)
    if what is not None and not os.access(path, os.W_OK):
        raise InputError("cannot be written: the file is read-only", file=path)
    folder = _target(path).parent
    if not folder.is_dir():
        raise unwritable(path, OSError(errno.ENOENT, ""))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("cannot be written: its folder is read-only", file=path)


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Yield a file under a temporary name, open for writing; it is renamed to `path` on success.

    A file that is replaced keeps its permissions. Leftovers of killed processes are removed.
    """
    check_output(path)
    target = _target(path)
    temporary = _beside(target, "partial")
    alone = TEMPORARY.fullmatch(target.parent.name) is None  # otherwise synced with its folder
    try:
        if alone:
            with suppress(OSError):  # a writable folder may be unlistable
                remove_leftovers(target.parent, target.name, restore=False)
        # what is there already, a link too, is an error
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        try:
            stream = open(os.open(temporary, flags, 0o666), "wb")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise unwritable(path, error) from None
        try:
            yield stream
            try:
                stream.flush()
                if alone:
                    os.fsync(stream.fileno())
                with suppress(OSError):  # not on every file system
                    os.fchmod(stream.fileno(), target.stat().st_mode & 0o777)
                if not os.path.samestat(os.fstat(stream.fileno()), os.lstat(temporary)):
                    raise OSError("somebody has replaced the temporary file")
                temporary.replace(target)
            except OSError as error:
                raise unwritable(path, error) from None
        except OSError as error:
            if error.filename is None and error.errno in DISK_FULL:
                raise unwritable(path, error) from None
            raise
        finally:
            with suppress(OSError):  # what could not be written is tried again
                stream.close()
        if alone:
            _sync_folder(target.parent)
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def written_folder(folder: Path, kind: FolderKind) -> Iterator[Path]:
    """Yield a temporary folder to fill with files, which is renamed to `folder` on success.

    Enter the context before long work: a folder that cannot be written is refused at once. An
    existing one is replaced if it is empty, or of the same kind without other contents. Leftovers
    of killed processes are removed.
    """
    check_replaceable(folder, kind)
    target = _target(folder)
    temporary, old = _beside(target, "partial"), _beside(target, "old")
    try:
        make_folder(target.parent)
        with suppress(OSError):  # a writable folder may be unlistable
            remove_leftovers(target.parent, target.name)
        temporary.mkdir()
        mode = stat.S_IMODE(temporary.stat().st_mode)
        temporary.chmod(mode & ~0o077)  # nobody else puts a link in
        if os.listdir(temporary):
            raise OSError("somebody has put something into the temporary folder")
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        with _named(temporary, folder):
            yield temporary
            with ThreadPoolExecutor() as threads:  # several files are synced together
                list(threads.map(_sync, temporary.iterdir()))
            temporary.chmod(mode)
            _sync_folder(temporary)
        check_replaceable(folder, kind)  # again: the work may have taken hours
        try:
            if target.exists():
                target.rename(old)
            temporary.rename(target)
            _sync_folder(target.parent)
        except OSError as error:
            raise unwritable(folder, error) from None
    finally:
        if not os.path.lexists(target):
            with suppress(OSError):
                old.rename(target)  # the new folder could not be renamed
        for leftover in (temporary, old):
            shutil.rmtree(leftover, ignore_errors=True)


def check_replaceable(folder: Path, kind: FolderKind) -> None:
    """Check that a folder holds nothing but the contents of its kind.

    Temporary files are ignored: another process may be writing one.
    """
    check_name(folder)
    what = _what_is(folder)
    if what is None:
        return
    if what != "a folder":
        raise InputError(f"is {what}; expected a folder to write to", file=folder)
    try:
        names = [name for name in os.listdir(folder) if not TEMPORARY.fullmatch(name)]
    except OSError as error:
        raise unwritable(folder, error) from None
    if names and kind.marker not in names:
        reason = f"is a folder with other things in it (no {kind.marker}); give another name"
        raise InputError(reason, file=folder)
    for name in sorted(names):
        if name in kind.folders:
            continue
        if not kind.has(name):
            reason = f"holds {name!r}, which is not of {kind.name}; give another name"
            raise InputError(reason, file=folder)
        if not stat.S_ISREG(os.lstat(folder / name).st_mode):
            reason = f"holds {name!r}, which is not a regular file; give another name"
            raise InputError(reason, file=folder)


def make_folder(folder: Path) -> None:
    """Make a folder and its missing parents, and sync them."""
    target = _target(folder)
    if not target.is_dir():
        make_folder(target.parent)
        target.mkdir(exist_ok=True)
        _sync_folder(target.parent)


def begin_folder(folder: Path) -> None:
    """Make a folder if there is none, and remove leftovers of ended processes in it."""
    try:
        make_folder(folder)
        remove_leftovers(folder)
    except OSError as error:
        raise unwritable(folder, error) from None


def remove_leftovers(folder: Path, name: str | None = None, *, restore: bool = True) -> None:
    """Remove leftovers of ended processes of this host in `folder`: of `name`, or of any name.

    A folder that such a process had moved away to replace it is moved back, if `restore` is True.
    """
    for entry in os.listdir(folder):
        found = TEMPORARY.fullmatch(entry)
        if found is None or name not in (None, found["name"]) or found["host"] != _host():
            continue
        if _is_running(int(found["process"]), found["began"]):
            continue
        final = folder / found["name"]
        if found["state"] != "old" or os.path.lexists(final):
            remove(folder / entry)
        elif restore:
            with suppress(OSError):
                (folder / entry).rename(final)


def remove(path: Path) -> None:
    """Remove a file or a folder if possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON."""
    write_text(path, json_text(value, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, as it is."""
    with written(path) as stream:
        stream.write(text.encode())


def _what_is(path: Path) -> str | None:
    """Return the type of the file at a path, through links; None if there is no file."""
    try:
        return KINDS[stat.S_IFMT(os.stat(path).st_mode)]
    except FileNotFoundError:
        return None
    except OSError as error:  # a circle of links, for instance
        raise unwritable(path, error) from None


def _target(path: Path) -> Path:
    """Return the path to write for `path`: the target of a link."""
    return Path(os.path.realpath(path))


def _beside(path: Path, state: str) -> Path:
    """Return a temporary name that identifies the writer, even in folders shared by hosts."""
    process = os.getpid()
    began = _beginning(process)
    writer = f"{process}" if began is None else f"{process}.{began}"
    return path.with_name(f".{path.name}.{_host()}-{writer}.r{os.urandom(6).hex()}.{state}")


def _host() -> str:
    return os.uname().nodename.partition(".")[0]


def _is_running(process: int, began: str | None) -> bool:
    """Return whether a process is running, and not another one that reuses its number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's process
    return began is None or _beginning(process) in (None, began)


def _beginning(process: int) -> str | None:
    """Return the start time of a process in clock ticks; None if unknown."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return None
    return status.rpartition(")")[2].split()[19]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not on every file system
        _sync(folder)


@contextmanager
def _named(temporary: Path, folder: Path) -> Iterator[None]:
    """Report errors in a temporary folder by the final names of the files."""
    try:
        yield
    except InputError as error:
        if error.file is None or temporary not in Path(error.file).parents:
            raise
        raise error.within(folder / Path(error.file).relative_to(temporary)) from None
    except OSError as error:
        path = Path(error.filename) if isinstance(error.filename, str) else None
        if path is not None and temporary in path.parents:
            raise unwritable(folder / path.relative_to(temporary), error) from None
        if path is None and error.errno in DISK_FULL:
            raise unwritable(folder, error) from None
        raise


def unwritable(path: Path, error: OSError) -> InputError:
    """Return the error of an output that the system refuses to write."""
    reason = str(error) if error.errno is None else os.strerror(error.errno)
    return InputError(f"cannot be written: {reason}", file=path)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value, also of numpy's numbers, as strict JSON: null for NaN and infinity."""
    try:
        return json.dumps(value, indent=indent, allow_nan=False, default=_of_python)
    except ValueError:
        return json.dumps(_with_nulls(value), indent=indent, allow_nan=False)


def _of_python(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _with_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_nulls(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_nulls(inner) for inner in value]
    if not isinstance(value, str | int | float | None):
        value = _of_python(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        self._path, self._size = path, 0
        with _readable(path):
            ahead = stream.read(len(GZIP_MAGIC))
        self._stored = _Hashed(stream, ahead)
        self._plain: gzip.GzipFile | _Hashed = self._stored
        if ahead == GZIP_MAGIC:
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
    """Binary file that hashes the bytes read, the first of which were read `ahead`."""

    def __init__(self, stream: BinaryIO, ahead: bytes) -> None:
        self._stream, self._ahead = stream, ahead
        self.size, self.hash = 0, hashlib.sha256()

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
