"""Reading what runs and comparisons left in their folders, old and damaged ones too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.stored import read_bytes
from optsched.text_files import parse_json

if TYPE_CHECKING:
    import pandas as pd

Expected = Mapping[str, type | tuple[type, ...]]
NAMES: dict[type, str] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "an integer",
    list: "a list",
    str: "a text",
    type(None): "null",
}


def read_object(path: Path, expected: Expected) -> dict[str, Any]:
    """Return the JSON object of a file.

    Parameters
    ----------
    path : path
        The file.
    expected : mapping
        The fields it must have, and of which types they may be. Others may be there.

    Raises
    ------
    InputError
        If it cannot be read, or a field is missing or of another type.
    """
    data, _ = read_bytes(path)
    try:
        fields = parse_json(data)
    except InputError as error:
        raise InputError(*error.mistakes, file=path, line=error.line) from None
    return checked(fields, expected, path)


def checked(fields: Any, expected: Expected, path: Path, place: str = "") -> dict[str, Any]:
    """Return an object of a JSON file, if it is one and has the fields expected.

    Parameters
    ----------
    fields : object
        What was read.
    expected : mapping
        As for `read_object`.
    path : path
        The file, for messages.
    place : str
        Where in the file, for messages.

    Raises
    ------
    InputError
        If it has not.
    """
    if not isinstance(fields, dict):
        raise InputError("not an object; expected one", file=path, field=place or None)
    mistakes = []
    for name, kinds in expected.items():
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        wanted = " or ".join(NAMES[kind] for kind in kinds)
        field = f"{place} {name}".lstrip()
        if name not in fields:
            mistakes.append(f"{field}: missing; expected {wanted}")
        elif type(fields[name]) not in kinds:
            mistakes.append(f"{field}: {fields[name]!r:.40}; expected {wanted}")
    if mistakes:
        raise InputError(*mistakes, file=path)
    return fields


def read_frame(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return columns of a parquet file.

    Parameters
    ----------
    path : path
        The file.
    columns : mapping of str to str
        The columns and the types they are read as. Numbers that may be missing are ``float64``.

    Raises
    ------
    InputError
        If it cannot be read, or a column is missing or of another type.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError("No such file", file=path)
    try:
        held = pq.read_schema(path).names
        missing = [name for name in columns if name not in held]
        known = [name for name in columns if name in held]
        frame: pd.DataFrame = pq.read_table(path, columns=known).to_pandas()
    except (pa.ArrowException, OSError, ValueError) as error:  # its metadata are JSON
        reason = getattr(error, "strerror", None) or "damaged; expected a Parquet file"
        raise InputError(reason, file=path) from None
    if missing:
        raise InputError(*(f"{name}: no such column" for name in missing), file=path)
    try:
        return frame.astype(dict(columns))
    except (TypeError, ValueError):
        raise InputError("a column holds something else than its kind", file=path) from None


def read_pictures(folder: Path, order: Sequence[str]) -> dict[str, str]:
    """Return the SVG pictures of a folder by name: those of `order` first, then all others.

    Raises
    ------
    InputError
        If one cannot be read, or has no end.
    """
    found = {path.stem: path for path in sorted(folder.glob("*.svg"))}
    names = [name for name in order if name in found] + [n for n in found if n not in order]
    pictures = {}
    for name in names:
        data, _ = read_bytes(found[name])
        try:
            pictures[name] = data.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError("not text; expected SVG", file=found[name]) from None
        if not pictures[name].rstrip().endswith("</svg>"):
            raise InputError("damaged; expected SVG to its end", file=found[name])
    return pictures
