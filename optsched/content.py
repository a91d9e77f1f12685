"""Location of the content that users open and edit: model pages, profiles, studies, traces.

The name of the reference snapshot ``models/window-mkp/weighted-20x8.json`` is
``window-mkp/weighted-20x8``, and ``weighted-20x8`` alone, as no other model has one of that name.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from optsched.errors import InputError, no_such_file
from optsched.files import check_name

_PACKAGED = Path(__file__).parent / "_data"
_CHECKOUT = Path(__file__).parents[1]


def bundled(kind: str) -> Path:
    """Return the folder of bundled content, in a wheel or in the root of the repository."""
    return (_PACKAGED if _PACKAGED.is_dir() else _CHECKOUT) / kind


@cache
def bundled_sites() -> dict[str, Path]:
    """Return the bundled sites by name: files, and folders with captured output of Slurm."""
    paths = sorted(bundled("sites").iterdir())
    return {path.stem: path for path in paths if path.suffix == ".toml" or path.is_dir()}


SCHEMA_FILE = "schema.json"
"""Name of the JSON Schema in a folder of snapshots."""


@cache
def reference_snapshots() -> dict[str, Path]:
    """Return the files of the reference snapshots by name, ``MODEL/NAME``."""
    files = sorted(bundled("models").glob("*/*.json"))
    return {f"{f.parent.name}/{f.stem}": f for f in files if f.name != SCHEMA_FILE}


def of_model(model: str) -> list[str]:
    """Return the names of the reference snapshots of a model; none if there is no such model."""
    return [name for name in reference_snapshots() if name.startswith(f"{model}/")]


def find_snapshot(path_or_name: str | Path) -> Path:
    """Return the file of a path or, if there is none, of a reference snapshot's name."""
    check_name(path_or_name)
    path, known = Path(path_or_name), reference_snapshots()
    if os.path.lexists(path):
        return path
    found = [name for name in known if str(path) in (name, name.partition("/")[2])]
    if len(found) > 1:
        raise InputError(f"the name of several; expected {' or '.join(found)}", file=path)
    if own := of_model(str(path)):
        expected = f"expected one of its snapshots: {', '.join(own)}"
        raise InputError(f"a model; {expected}; or `optsched compare {path}`", file=path)
    if not found:
        unnamed = "" if path.suffix else ", and no name in `optsched list snapshots`"
        what = f"no such file{unnamed}"
        raise no_such_file(path, {part for name in known for part in name.split("/")}, what)
    return known[found[0]]
