"""Catalogue of public traces: descriptions, places of publication, and local files.

File format: ``docs/formats/catalogue.md``.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from optsched.content import bundled
from optsched.errors import InputError, UnknownNameError
from optsched.files import check_output, make_folder, opened, unwritable, written
from optsched.text_files import read_toml
from optsched.traces.formats import without_gz
from optsched.traces.trace import Header

VARIABLE = "OPTSCHED_TRACES"
"""Environment variable that lists the folders of traces, separated as in ``PATH``."""

_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A published trace; the fields besides its name are those of the file format."""

    name: str  # name of the trace
    title: str
    processors: int  # number of processors, as the header of the trace states it
    nodes: int  # number of nodes, 0 if the header does not state it
    jobs: int  # number of job lines in the file, before cleaning
    file: str  # name of the file, as published
    sha256: str  # SHA-256 of the decompressed text, so that any compression of the file verifies
    page: str  # URL of the page that describes the trace
    url: str  # URL of the file
    acknowledge: str  # people whom the publisher asks to acknowledge
    citation: str  # citation, as the publisher states it
    terms: str  # terms of use, as the publisher states them


@cache
def entries() -> tuple[Entry, ...]:
    """Return the entries of the bundled catalogue, ``traces/catalogue.toml``, in its order."""
    return read_catalogue(bundled("traces") / "catalogue.toml")


def read_catalogue(path: Path) -> tuple[Entry, ...]:
    """Read a catalogue: a table ``[trace.<name>]`` per trace, and ``[default]`` for all traces."""
    table = read_toml(path)
    default, named = table.pop("default", {}), table.pop("trace", {})
    tables = [default, named, *(named.values() if isinstance(named, dict) else ())]
    if table or not all(isinstance(part, dict) for part in tables):
        raise InputError("expected the tables [default] and [trace.<name>] alone", file=path)
    kinds = {field.name: field.type for field in fields(Entry)}
    traces = [{"name": name} | default | entry for name, entry in named.items()]
    mistakes: list[str] = []
    for entry in traces:
        name = entry["name"]
        mistakes += [f"{name}.{key}: unknown field" for key in entry if key not in kinds]
        mistakes += [
            f"{name}.{key}: expected {'an integer' if kind == 'int' else 'a text'}"
            for key, kind in kinds.items()
            if type(entry.get(key)).__name__ != kind
        ]
    if mistakes:
        raise InputError(*mistakes, file=path)
    return tuple(Entry(**entry) for entry in traces)


def find(name: str) -> Entry:
    """Return the entry with a name or file name, or the only entry whose name begins with it.

    Case does not matter.
    """
    wanted = name.lower()
    found = [entry for entry in entries() if wanted in (entry.name.lower(), entry.file.lower())]
    if wanted and not found:
        found = [entry for entry in entries() if entry.name.lower().startswith(wanted)]
    if not found:
        raise UnknownNameError("trace", name, [entry.name for entry in entries()])
    if len(found) > 1:
        names = ", ".join(entry.name for entry in found)
        raise InputError(f"several traces have names that begin with {name!r}: {names}")
    return found[0]


def folders() -> list[Path]:
    """Return the folders that ``OPTSCHED_TRACES`` names."""
    return [Path(folder) for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]


def search(entry: Entry, folder: str | Path | None = None) -> Path | None:
    """Return the file of `entry` in `folder` or in one of `folders`, gzipped or not, unverified."""
    files = [place / entry.file for place in _searched(folder)]
    paths = (path for file in files for path in (file, without_gz(file)))
    return next((path for path in paths if path.is_file()), None)


def locate(entry: Entry, folder: str | Path | None = None) -> Path:
    """Return the file of `entry` in `folder` or in one of `folders`, gzipped or not, verified."""
    path = search(entry, folder)
    if path is not None:
        verify(entry, path)
        return path
    searched = _searched(folder)
    where = f"not in {', '.join(map(str, searched))}" if searched else f"{VARIABLE} names no folder"
    fetch = f"`optsched trace download {entry.name}` fetches it"
    raise InputError(f"no file {entry.file} ({where}); {fetch}")


def find_log(file: str, folders: Sequence[Path]) -> Path:
    """Find a sample that comes with optsched, or a log in the first folder that has it."""
    for folder in (bundled("traces"), *folders):
        if (folder / file).is_file():
            return (folder / file).resolve()
    looked = f"not in {', '.join(map(str, folders))}" if folders else "no folder is named"
    expected = f"expected --traces, or {VARIABLE}, to name the folder of the public logs"
    raise InputError(f"{looked}; {expected}", file=file)


def _searched(folder: str | Path | None) -> list[Path]:
    return [*([] if folder is None else [Path(folder)]), *folders()]


def verify(entry: Entry, path: str | Path) -> None:
    """Check that a file holds the published text, however it is compressed."""
    text = hashlib.sha256()
    with opened(path) as content:
        while piece := content.read():
            text.update(piece)
    sha256 = text.hexdigest()
    if sha256 != entry.sha256:
        found = f"the SHA-256 of its text is {sha256}, expected {entry.sha256}"
        raise InputError(f"not {entry.name} as published: {found}", file=path)


def download(trace: str | Entry, folder: str | Path) -> Path:
    """Fetch the file of a trace into `folder`, unless a verified copy is there already.

    Nothing is written, not even the folder, before the fetched file is verified.
    """
    from http.client import HTTPException
    from urllib.request import urlopen

    entry = find(trace) if isinstance(trace, str) else trace
    path = Path(folder) / entry.file
    if path.is_file():
        verify(entry, path)
        return path
    if path.parent.is_dir():
        check_output(path)
    try:
        with urlopen(entry.url, timeout=_TIMEOUT) as response:
            fetched = response.read()
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        found = f"could not be fetched: {reason}; the trace is described at {entry.page}"
        raise InputError(found, file=entry.url) from None
    with tempfile.TemporaryDirectory() as temporary_folder:
        copy = Path(temporary_folder) / entry.file
        copy.write_bytes(fetched)
        try:
            verify(entry, copy)
        except InputError as error:
            raise error.within(entry.url) from None
    try:
        make_folder(path.parent)
    except OSError as error:
        raise unwritable(path.parent, error) from None
    with written(path) as stream:
        stream.write(fetched)
    return path


@cache
def samples() -> dict[str, Path]:
    """Return the files of the sample traces by name."""
    return {file.stem: file for file in sorted((bundled("traces") / "samples").iterdir())}


def size_of(sample: Path) -> tuple[int, int | None]:
    """Return the jobs and the processors of a sample; no kernel has to be compiled for that."""
    lines = sample.read_text().splitlines()
    comments = [line[1:] for line in lines if line.startswith(";")]
    return len(lines) - len(comments), Header.from_comments(comments).max_procs
