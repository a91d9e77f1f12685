"""Output that is never half-written: a temporary name first, then a rename."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optsched.errors import InputError


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Give a temporary path to write a file to; rename it to `path` when all went well.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def written_folder(folder: Path, *, marker: str) -> Iterator[Path]:
    """Give a temporary folder to fill; rename it to `folder` when all went well.

    Entered before long work, it refuses a folder that cannot be written before the work is lost.

    Parameters
    ----------
    folder : path
        Where the result goes. One that is there already is replaced if it holds the file `marker`,
        which every folder of this kind does, or is empty.
    marker : str
        Name of a file that tells a folder of this kind.

    Raises
    ------
    InputError
        If `folder` holds something else, or cannot be written.
    """
    _check(folder, marker)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if folder.exists():
            old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
            folder.rename(old)
            temporary.rename(folder)
            shutil.rmtree(old)
        else:
            temporary.rename(folder)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=folder) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check(folder: Path, marker: str) -> None:
    if folder.exists():
        if not folder.is_dir():
            raise InputError("is a file; expected a folder to write to", file=folder)
        if any(folder.iterdir()) and not (folder / marker).exists():
            raise InputError(
                f"is a folder with other things in it (no {marker}); give another name",
                file=folder,
            )


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON."""
    with written(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
