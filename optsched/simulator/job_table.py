"""The columns of the table of jobs, as a table of Arrow and as a frame of pandas.

pandas takes a quarter of a second to import, so a table of Arrow is made without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.machines.texts import Texts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Repeated:
    """A column of a few different texts, each stored once."""

    texts: list[str]  # the different ones, in order
    code: NDArray[np.int8]  # place of each row's text in these


@dataclass(frozen=True, eq=False)
class Optional:
    """A column of integers, some of them missing."""

    values: NDArray[np.int64]
    missing: NDArray[np.bool_]  # which rows have none


Column = Repeated | Optional | Texts | NDArray[Any] | Sequence[Any]
"""A column; texts are in a `Repeated`, a `Texts` or a sequence."""


def repeated(values: NDArray[np.object_]) -> Repeated:
    """Return a column of a few different texts."""
    texts = sorted(map(str, set(values.tolist())))
    code = np.zeros(len(values), dtype=np.int8)
    for place, text in enumerate(texts):
        code[values == text] = place
    return Repeated(texts, code)


def constant(text: str, rows: int) -> Repeated:
    """Return a column that holds one text."""
    return Repeated([text], np.zeros(rows, dtype=np.int8))


def whole(times: NDArray[Any]) -> NDArray[Any] | Optional:
    """Return times, nan where missing, as integers if all are whole."""
    if times.dtype.kind == "i":
        return times
    missing = np.isnan(times)
    filled = np.where(missing, 0.0, times)
    if not np.array_equal(filled, np.rint(filled)):
        return times
    return Optional(filled.astype(np.int64), missing)


def spread(values: NDArray[Any], rows: NDArray[np.bool_]) -> Column:
    """Return a column that has values in some rows only, shape (rows,)."""
    kind = values.dtype.kind
    fill, dtype = {"i": (0, np.int64), "O": ("", object)}.get(kind, (np.nan, np.float64))
    column = np.full(len(rows), fill, dtype)
    column[rows] = values
    return Optional(column, ~rows) if kind == "i" else column


def to_pandas(columns: Mapping[str, Column]) -> pd.DataFrame:
    """Return columns as a frame."""
    frame: pd.DataFrame = to_arrow(columns).to_pandas().copy()  # Arrow lends columns to be read
    return frame


def from_pandas(frame: pd.DataFrame) -> dict[str, Column]:
    """Return the columns of a frame that `to_pandas` has made, or that was read from a table."""
    import pandas as pd

    def convert(column: pd.Series[Any]) -> Column:
        if isinstance(column.dtype, pd.CategoricalDtype):
            return Repeated([*column.cat.categories], np.asarray(column.cat.codes, dtype=np.int8))
        if isinstance(column.dtype, pd.Int64Dtype):
            return Optional(column.fillna(0).to_numpy(np.int64), column.isna().to_numpy())
        return column.to_numpy() if column.dtype.kind in "iuf" else column.tolist()

    return {str(name): convert(column) for name, column in frame.items()}


def to_arrow(columns: Mapping[str, Column]) -> pa.Table:
    """Return columns as a table, which pandas reads with the types of `to_pandas`."""
    arrays = {name: _array(column) for name, column in columns.items()}
    return _table(arrays, [_describe(name, columns[name], arrays[name]) for name in columns])


def empty(names: Sequence[str]) -> pa.Table:
    """Return a table without rows."""
    import pyarrow as pa

    nothing = pa.Array.from_buffers(pa.null(), 0, [None])
    described = [_description(name, "empty", "object") for name in names]
    return _table(dict.fromkeys(names, nothing), described)


def _table(arrays: Mapping[str, pa.Array], described: list[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    notes = {
        "index_columns": [],
        "column_indexes": [],
        "columns": described,
        "attributes": {},
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": version("pandas"),
    }
    return pa.table(arrays).replace_schema_metadata({"pandas": json.dumps(notes)})


def _array(column: Column) -> pa.Array:
    """Return a column as an array of Arrow, made of buffers: `pyarrow.array` imports pandas."""
    import pyarrow as pa

    if isinstance(column, Repeated):
        return pa.DictionaryArray.from_arrays(_numbers(column.code), _strings(column.texts))
    if isinstance(column, Optional):
        return _numbers(column.values, column.missing)
    if isinstance(column, Texts):
        return _texts(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return _numbers(column, np.isnan(column) if column.dtype.kind == "f" else None)
    if all(isinstance(value, str) for value in column):
        return _strings(list(map(str, column)))
    return pa.array(column, from_pandas=True)


def _numbers(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    import pyarrow as pa

    valid = None
    if missing is not None and missing.any():
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def _strings(texts: Sequence[str]) -> pa.Array:
    stored = [text.encode() for text in texts]
    offset = np.cumsum([0, *map(len, stored)], dtype=np.int64)
    return _texts(Texts(np.frombuffer(b"".join(stored), np.uint8), offset))


def _texts(column: Texts) -> pa.Array:
    import pyarrow as pa

    buffers = [None, pa.py_buffer(column.offset), pa.py_buffer(column.text)]
    return pa.Array.from_buffers(pa.large_string(), len(column), buffers)


def _describe(name: str, column: Column, array: pa.Array) -> dict[str, Any]:
    """Return the metadata of a column in the form of pandas."""
    if isinstance(column, Repeated):
        more = {"num_categories": len(column.texts), "ordered": False}
        return _description(name, "categorical", str(column.code.dtype), more)
    if isinstance(column, Optional):
        return _description(name, "int64", "Int64")
    kind = {"double": "float64", "large_string": "object"}.get(str(array.type), str(array.type))
    return _description(name, kind, "str" if kind == "object" else kind)


def _description(
    name: str, kind: str, numpy_kind: str, more: dict[str, Any] | None = None
) -> dict[str, Any]:
    types = {"pandas_type": kind, "numpy_type": numpy_kind}
    return {"name": name, "field_name": name, **types, "metadata": more}
