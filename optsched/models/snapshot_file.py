"""Snapshots on file. File format: ``docs/formats/snapshot.md``."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

from optsched.errors import InputError
from optsched.files import written
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.window_mkp_text import read_window_mkp_text

SEPARATORS = re.compile(r"[\[,\s]*")
"""What stands before an element of a JSON list."""


def read_snapshot(path: str | Path) -> Snapshot:
    """Read a snapshot (``.json``, ``.json.gz``), or a literature instance (``.txt``).

    Raises
    ------
    InputError
        If the file cannot be read, is not JSON, or holds mistakes; all of them at once.
    """
    path = Path(path)
    if path.suffix == ".txt":
        return read_window_mkp_text(path)
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as stream:
            text = stream.read()
        fields = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", file=path, line=error.lineno) from None
    except UnicodeDecodeError:
        raise InputError("not text; expected JSON", file=path) from None
    except EOFError:
        raise InputError("the gzip file ends before its end", file=path) from None
    except zlib.error:
        raise InputError("the gzip file is damaged", file=path) from None
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from None
    except InputError as error:
        raise error.within(path) from None
    try:
        return Snapshot.from_json(fields)
    except InputError as error:
        mistakes = [_with_line(mistake, text) for mistake in error.mistakes]
        raise InputError(*mistakes, file=path, field=error.field) from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(*(f"{name}: given more than once" for name in twice))
    return fields


def _with_line(mistake: str, text: str) -> str:
    """Put the line in front of a mistake that begins with a field, or with a place in its list."""
    named = re.match(r"(\w+)(?:\[(\d+)\])?: ", mistake)
    key = named and re.search(rf'"{named[1]}"\s*:\s*', text)
    if not named or not key:
        return mistake
    place = key.start()
    if named[2]:
        decode, end = json.JSONDecoder().raw_decode, key.end()
        for _ in range(int(named[2]) + 1):
            gap = SEPARATORS.match(text, end)
            place = gap.end() if gap else end
            _, end = decode(text, place)
    return f"line {text.count(chr(10), 0, place) + 1}, {mistake}"


def load_snapshot(path: str | Path) -> Problem[Any]:
    """Read the problem of a snapshot; see `read_snapshot`."""
    return read_snapshot(path).problem


def save_snapshot(snapshot: Snapshot | Problem[Any], path: str | Path) -> None:
    """Write a snapshot or a bare problem; under a temporary name first, then renamed."""
    path = Path(path)
    if isinstance(snapshot, Problem):
        snapshot = Snapshot(snapshot)
    data = (json.dumps(snapshot.to_json(), indent=1) + "\n").encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    with written(path) as temporary:
        temporary.write_bytes(data)
