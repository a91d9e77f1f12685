"""Output that is never half-written: a temporary name first, then a rename."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from optsched.errors import InputError

TEMPORARY = re.compile(
    r"\.(?P<name>.+)\.(?P<host>[^.]*)-(?P<process>\d+)\.(?:partial|old)", re.DOTALL
)
"""The names of what is being written: which file or folder, by whom."""


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
    """

    name: str
    marker: str
    files: tuple[str, ...]


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


def check_not_read(output: Path, source: str | Path | None) -> None:
    """Refuse to write to the file that was read, whatever names or links it has.

    Raises
    ------
    InputError
        If they are one file.
    """
    if source is not None and output.exists() and output.samefile(source):
        raise InputError("is the input; expected another file to write to", file=output)


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Give a temporary path to write a file to; rename it to `path` when all went well.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    check_name(path)
    if not path.name or path.is_dir():
        raise InputError("is a folder; expected a file to write to", file=path)
    temporary = _beside(path, "partial")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def written_folder(folder: Path, kind: FolderKind) -> Iterator[Path]:
    """Give a temporary folder to fill; rename it to `folder` when all went well.

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
    check_name(folder)
    target = folder.resolve()
    check_replaceable(folder, kind)
    temporary, old = _beside(target, "partial"), _beside(target, "old")
    try:
        if target.parent.is_dir():
            remove_leftovers(target.parent, target.name)
        temporary.mkdir(parents=True)
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        yield temporary
        try:
            if target.exists():
                target.rename(old)
            temporary.rename(target)
        except OSError as error:
            raise _unwritable(folder, error) from None
    finally:
        for leftover in (temporary, old):
            shutil.rmtree(leftover, ignore_errors=True)


def check_replaceable(folder: Path, kind: FolderKind) -> None:
    """Refuse a folder that holds something else than what a folder of this kind holds.

    Temporary files are not looked at: another process may be writing one.

    Raises
    ------
    InputError
        If it does, or is a file.
    """
    target = folder.resolve()
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError("is a file; expected a folder to write to", file=folder)
    names = [entry.name for entry in target.iterdir() if not TEMPORARY.fullmatch(entry.name)]
    if names and kind.marker not in names:
        reason = f"is a folder with other things in it (no {kind.marker}); give another name"
        raise InputError(reason, file=folder)
    belong = (kind.marker, *kind.files)
    for name in sorted(names):
        if not any(fnmatch(name, pattern) for pattern in belong):
            reason = f"holds {name!r}, which is not of {kind.name}; give another name"
            raise InputError(reason, file=folder)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what processes of this host that are no more have left in `folder`.

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
        if not _is_running(int(found["process"])):
            remove(folder / entry)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there and can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _beside(path: Path, suffix: str) -> Path:
    """Return a temporary name; it says who writes, for folders that several hosts share."""
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}.{suffix}")


def _host() -> str:
    return os.uname().nodename.partition(".")[0]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written: {error.strerror or error}", file=path)


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


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON."""
    with written(path) as temporary:
        temporary.write_text(json_text(value, indent=2) + "\n", encoding="utf-8")
