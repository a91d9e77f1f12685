"""Reading of the files in run and comparison folders, including old and damaged ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.binary_files import read_bytes
from optsched.errors import InputError
from optsched.fields import Of, Table
from optsched.text_files import parse_json

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Expected = Mapping[str, type | tuple[type, ...]]
"""Required fields of an object, with their types."""

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
    """Return the JSON object of a file with the expected fields; further fields are allowed."""
    data, _ = read_bytes(path)
    try:
        fields = parse_json(data)
    except InputError as error:
        raise InputError(*error.mistakes, file=path, line=error.line) from None
    return checked(fields, expected, path)


def checked(fields: Any, expected: Expected, path: Path, place: str = "") -> dict[str, Any]:
    """Check that a value of a JSON file is an object with the expected fields, and return it.

    Messages name the file and the place in it.
    """
    if not isinstance(fields, dict):
        raise InputError("not an object; expected one", file=path, field=place or None)
    table = Table(fields, f"{place} ".lstrip())
    for name, types in expected.items():
        types = types if isinstance(types, tuple) else (types,)
        table.read(name, Of(*types, expected=" or ".join(NAMES[one] for one in types)))
    if table.mistakes:
        raise InputError(*table.mistakes, file=path)
    return fields


def read_frame(path: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return columns of a parquet file as the given types; ``float64`` for numbers with gaps."""
    frame: pd.DataFrame = read_table(path, columns).to_pandas()
    try:
        return frame.astype(dict(columns))
    except (TypeError, ValueError):
        raise InputError("a column has values of another type", file=path) from None


def read_columns(
    path: Path, columns: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> dict[str, NDArray[Any]]:
    """Return columns of a parquet file as arrays of the given types, without importing pandas.

    The types are ``float64`` for numbers with gaps, which become nan, ``int64`` for others, and
    ``str`` for texts, as an array of objects. Those of `optional` columns may be missing.
    """
    table, arrays = read_table(path, columns, optional or ()), {}
    kinds = {**columns, **(optional or {})}
    try:
        for name in table.column_names:
            arrays[name] = _as_numpy(table[name], kinds[name])
            table = table.drop_columns(name)  # never two copies of many columns
        return arrays
    except (TypeError, ValueError):
        raise InputError("a column has values of another type", file=path) from None


def read_table(path: Path, columns: Iterable[str], optional: Iterable[str] | None = ()) -> pa.Table:
    """Return columns of a parquet file, with those of `optional` ones that it has; None for all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError("No such file", file=path)
    try:
        file = pq.ParquetFile(path)  # `read_table` imports pandas
        held = file.schema_arrow.names
        wanted = held if optional is None else [*columns, *optional]
        table = file.read([name for name in wanted if name in held])
        table.validate(full=True)  # texts may be no UTF-8
    except (pa.ArrowException, OSError, ValueError) as error:  # its metadata are JSON
        reason = getattr(error, "strerror", None) or "damaged; expected a Parquet file"
        raise InputError(reason, file=path) from None
    missing = [name for name in columns if name not in held]
    if missing:
        raise InputError(*(f"{name}: no such column" for name in missing), file=path)
    return table


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line of a file."""
    data, _ = read_bytes(path)
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            yield checked(parse_json(line), {}, path, f"line {number}")
        except InputError as error:
            raise InputError(*error.mistakes, file=path, line=number) from None


def _as_numpy(column: pa.ChunkedArray, kind: str) -> NDArray[Any]:
    array = column.combine_chunks()
    return _texts(array) if kind == "str" else _numbers(array, kind)


def _texts(array: pa.Array) -> NDArray[Any]:
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    texts = np.array([*array.dictionary.to_pylist(), None], dtype=object)
    code = np.nan_to_num(_numbers(array.indices, "float64"), nan=-1)
    return np.asarray(texts[code.astype(np.int64)])


def _numbers(array: pa.Array, kind: str) -> NDArray[Any]:
    """Return numbers of Arrow, made from their buffers: `to_numpy` of Arrow imports pandas."""
    import pyarrow as pa

    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        raise TypeError
    present, stored = array.buffers()
    held = pa.Array.from_buffers(array.type, len(array), [None, stored], offset=array.offset)
    numbers = np.from_dlpack(held).astype(kind, copy=False)
    if not array.null_count:
        return numbers
    if kind != "float64":
        raise ValueError
    bits = np.unpackbits(np.frombuffer(present, np.uint8), bitorder="little")
    return np.where(bits[array.offset :][: len(array)], numbers, np.nan)


def read_pictures(folder: Path, order: Sequence[str]) -> dict[str, str]:
    """Return the SVG pictures of a folder by name: those of `order` first, then all others."""
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
