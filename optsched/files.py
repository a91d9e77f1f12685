"""Output that is never half-written: a temporary name first, then a rename.

What has its name is on the disk: it is synced before it is renamed, and survives a power failure.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from optsched.errors import InputError

TEMPORARY = re.compile(
    r"\.(?P<name>.+)\.(?P<host>[^.]*)-(?P<process>\d+)(?:\.(?P<began>\d+))?\.(?P<state>partial|old)",
    re.DOTALL,
)
"""The names of what is being written: which file or folder, by whom.

The writer is told by host, process and the moment at which that began: numbers of processes are
used again. A state of ``old`` is of a folder that is just being replaced.
"""

KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of writing that do not always come with the name of the file."""


class FolderKind(NamedTuple):
    """A kind of output folder: how one is told, and what belongs into it.

    Parameters
    ----------
    name : str
        What is in it, for messages.
    marker : str
        Name of the file that every such folder has.
    files : tuple of str
        Patterns of the names of all other files.
    folders : tuple of str
        Names of the folders in it.
    """

    name: str
    marker: str
    files: tuple[str, ...]
    folders: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Return whether such a folder has files of that name."""
        return any(fnmatch(name, pattern) for pattern in (self.marker, *self.files))


def check_name(path: str | Path) -> None:
    """Refuse a name that is not UTF-8: tables, JSON and other programs could not tell it.

    Raises
    ------
    InputError
        If it is not.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError("the name is not UTF-8; rename it", file=ascii(str(path))) from None


def check_output(path: Path, source: str | Path | None = None) -> None:
    """Refuse what cannot be written as a file; worth a look before long work.

    An output is absent or a regular file: a device, a pipe or a socket would be replaced. Through
    a link the file that it names is written.

    Parameters
    ----------
    path : path
        The output.
    source : path, optional
        A file that was read, and is not to be written, whatever names or links it has.

    Raises
    ------
    InputError
        If it is something else, is `source`, or its folder is not there or cannot be written.
    """
    check_name(path)
    what = _what_is(path)
    if what not in (None, "a file"):
        raise InputError(f"is {what}; expected a file to write to", file=path)
    if source is not None and what is not None and os.path.exists(source) and path.samefile(source):
        raise InputError("is the input; expected another file to write to", file=path)
    folder = _target(path).parent
    if not folder.is_dir():
        raise unwritable(path, OSError(errno.ENOENT, ""))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("cannot be written: its folder is read-only", file=path)


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Give a temporary path to write a file to; rename it to `path` when all went well.

    What a killed process left of an earlier attempt is removed.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    check_output(path)
    target = _target(path)
    temporary = _beside(target, "partial")
    alone = TEMPORARY.fullmatch(target.parent.name) is None  # else it is synced with its folder
    try:
        if alone:
            remove_leftovers(target.parent, target.name)
        yield temporary
        if alone:
            _sync(temporary)
        temporary.replace(target)
        if alone:
            _sync_folder(target.parent)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def written_folder(folder: Path, kind: FolderKind) -> Iterator[Path]:
    """Give a temporary folder to fill with files; rename it to `folder` when all went well.

    Entered before long work, it refuses a folder that cannot be written before the work is lost.
    What a killed process left of an earlier attempt is removed.

    Parameters
    ----------
    folder : path
        Where the result goes. One that is there already is replaced if it is empty, or is of the
        same kind and holds nothing else.
    kind : FolderKind
        What is written.

    Raises
    ------
    InputError
        If `folder` holds something else, or cannot be written.
    """
    check_replaceable(folder, kind)
    target = _target(folder)
    temporary, old = _beside(target, "partial"), _beside(target, "old")
    try:
        make_folder(target.parent)
        remove_leftovers(target.parent, target.name)
        temporary.mkdir()
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        with _named(temporary, folder):
            yield temporary
            with ThreadPoolExecutor() as threads:  # a disk syncs several files in one go
                list(threads.map(_sync, temporary.iterdir()))
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
                old.rename(target)  # the new folder did not get its name
        for leftover in (temporary, old):
            shutil.rmtree(leftover, ignore_errors=True)


def check_replaceable(folder: Path, kind: FolderKind) -> None:
    """Refuse a folder that holds something else than what a folder of this kind holds.

    Temporary files are not looked at: another process may be writing one.

    Raises
    ------
    InputError
        If it does, or is no folder.
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
    """Make a folder, and those that it lies in, if they are not there; synced.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    target = _target(folder)
    if not target.is_dir():
        make_folder(target.parent)
        target.mkdir(exist_ok=True)
        _sync_folder(target.parent)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what processes of this host that are no more have left in `folder`.

    A folder that such a process was about to replace, and has moved away already, is moved back.

    Parameters
    ----------
    folder : path
        A folder that is there.
    name : str, optional
        Of the file or folder that they were writing; any if left out.
    """
    for entry in os.listdir(folder):
        found = TEMPORARY.fullmatch(entry)
        if found is None or name not in (None, found["name"]) or found["host"] != _host():
            continue
        if _is_running(int(found["process"]), found["began"]):
            continue
        final = folder / found["name"]
        if found["state"] == "old" and not os.path.lexists(final):
            with suppress(OSError):
                (folder / entry).rename(final)
        else:
            remove(folder / entry)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there and can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON."""
    with written(path) as temporary:
        temporary.write_text(json_text(value, indent=2) + "\n", encoding="utf-8")


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as strict JSON, which has no word for NaN and infinity: they become null.

    Numbers may be numpy's.
    """
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


def _what_is(path: Path) -> str | None:
    """Return what a path names, through links; none if that is not there."""
    try:
        return KINDS[stat.S_IFMT(os.stat(path).st_mode)]
    except FileNotFoundError:
        return None
    except OSError as error:  # links in a circle, for instance
        raise unwritable(path, error) from None


def _target(path: Path) -> Path:
    """Return the path that is written for `path`: that which a link names."""
    return Path(os.path.realpath(path))


def _beside(path: Path, state: str) -> Path:
    """Return a temporary name; it says who writes, for folders that several hosts share."""
    process = os.getpid()
    began = _beginning(process)
    writer = f"{process}" if began is None else f"{process}.{began}"
    return path.with_name(f".{path.name}.{_host()}-{writer}.{state}")


def _host() -> str:
    return os.uname().nodename.partition(".")[0]


def _is_running(process: int, began: str | None) -> bool:
    """Return whether a process is there, and is not another that has got its number since."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is somebody else's
    return began is None or _beginning(process) in (None, began)


def _beginning(process: int) -> str | None:
    """Return when a process began, in ticks of the system's clock; none if that is not told."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return None
    return status.rpartition(")")[2].split()[19]


def _sync(path: Path) -> None:
    """See to it that what a file or a folder holds is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every file system can
        _sync(folder)


@contextmanager
def _named(temporary: Path, folder: Path) -> Iterator[None]:
    """Tell of what cannot be written in a temporary folder by the name that it would have had."""
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
        if path is None and error.errno in NO_ROOM:
            raise unwritable(folder, error) from None
        raise


def unwritable(path: Path, error: OSError) -> InputError:
    """Return the mistake of an output that the system refuses to write."""
    reason = str(error) if error.errno is None else os.strerror(error.errno)
    return InputError(f"cannot be written: {reason}", file=path)
