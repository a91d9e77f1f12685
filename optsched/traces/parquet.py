"""Traces as Parquet: a typed column for each field of a trace that is known.

File format: ``docs/formats/parquet.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optsched.binary_files import read_bytes, write_bytes
from optsched.errors import InputError
from optsched.registry import readers
from optsched.traces.formats import TraceFormat, known_columns, stem
from optsched.traces.header import Header
from optsched.traces.swf import FIELDS, invalid, unusual
from optsched.traces.text_pieces import shown
from optsched.traces.trace import COLUMNS, UNKNOWN, Trace

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"PAR1"

MOST = 2**34
"""Most bytes of a file, which is read as a whole: 16 GiB."""

REQUIRED = ("job_id", "submit", "runtime", "processors")

_FIELDS = {field.column: field for field in FIELDS}
_FIELDS["stated_time"] = _FIELDS["requested_time"]
_HIGHEST = np.iinfo(np.int64).max
_TRUTHS = {b"true": True, b"false": False}


def read_parquet(path: str | Path) -> Trace:
    """Read a raw trace from a Parquet file, plain or gzipped.

    Columns have the names of those of `Trace.frame`; ``job_id``, ``submit``, ``runtime`` and
    ``processors`` are required. Further columns of numbers become annotations. A missing value is
    unknown.

    Raises
    ------
    InputError
        If the file cannot be read, is not of the format, has no job, or has a wrong value; names
        the column and the row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    data, sha256 = read_bytes(path, MOST)
    with _undamaged(path):
        file = pq.ParquetFile(pa.BufferReader(data))
        schema, metadata = file.schema_arrow, file.metadata.metadata or {}
    names = _names(schema, path)
    columns: dict[str, Any] = {}
    for name in names:
        with _undamaged(path):
            column = file.read(columns=[name]).column(name)
        columns[name] = _texts(column, path) if name == "label" else _numbers(name, column, path)
    if not len(columns["job_id"]):
        raise InputError("no jobs; expected one in each row", file=path)
    label = columns.pop("label", None)
    annotations = {name: columns.pop(name) for name in names if name not in (*COLUMNS, "label")}
    known = {name: column for name, column in columns.items() if (column != UNKNOWN).any()}
    unknown = np.broadcast_to(np.int64(UNKNOWN), len(columns["job_id"]))
    columns = dict.fromkeys((*REQUIRED, "requested_time"), unknown) | known
    others = [name for name in schema.names if name not in names]
    return Trace(
        **columns,
        name=stem(path),
        path=path,
        sha256=sha256,
        header=_header(metadata, path),
        oddities=unusual(columns)
        | {f"columns that are not read ({', '.join(others)})": len(others)},
        label=label,
        annotations=annotations,
        limits_hold=_limits_hold(metadata, path),
    )


def write_parquet(trace: Trace, path: str | Path) -> None:
    """Write a trace as Parquet, with all its annotations; gzipped if the name ends in ``.gz``.

    Columns that are unknown for all jobs are left out. A further line of the header records the
    cleaning of a cleaned trace.

    Raises
    ------
    InputError
        If a number is not valid in the format, or the file cannot be written.
    """
    write_bytes(path, _encode(trace, Path(path)))


def _encode(trace: Trace, path: Path) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = dict.fromkeys((*REQUIRED, *known_columns(trace)))
    columns = {name: getattr(trace, name) for name in COLUMNS if name in names}
    columns |= dict(trace.annotations)
    for name, column in columns.items():
        _check(name, column, None, path)
    if trace.label is not None:
        columns["label"] = trace.label
    header = trace.header
    if trace.cleaning is not None:
        header = header.noted(trace.cleaning.note(len(trace)))
    metadata = {"limits_hold": str(trace.limits_hold).lower()}
    if header.lines:
        metadata["header"] = "\n".join(header.comments(path))
    content = BytesIO()
    table = pa.table(columns).replace_schema_metadata(metadata)
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


@readers.register("parquet")
class ParquetTrace(TraceFormat):
    """Traces as Parquet."""

    suffixes = (".parquet",)
    read = staticmethod(read_parquet)
    encode = staticmethod(_encode)
    any_annotation = True

    @staticmethod
    def recognizes(first_bytes: bytes, path: Path) -> bool:
        """Return whether the file begins as Parquet."""
        return first_bytes.startswith(MAGIC)


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Turn errors of Arrow in the context into input errors, except for a lack of memory."""
    import pyarrow as pa

    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        raise InputError("damaged; expected a Parquet file", file=path) from None


def _names(schema: pa.Schema, path: Path) -> list[str]:
    """Return the columns to read; refuse a file without one that is required."""
    import pyarrow as pa

    repeated = [name for name in schema.names if schema.names.count(name) > 1]
    if repeated:
        raise InputError("more than one column with this name", file=path, field=repeated[0])
    missing = [name for name in REQUIRED if name not in schema.names]
    if missing:
        expected = f"expected at least {', '.join(REQUIRED)}"
        raise InputError(f"no column {', '.join(missing)}; {expected}", file=path)
    names = []
    for column in schema:
        name, kind = column.name, column.type
        integer, decimal = pa.types.is_integer(kind), pa.types.is_floating(kind)
        expected = "numbers"
        if name == "label":
            read, expected = pa.types.is_string(kind) or pa.types.is_large_string(kind), "texts"
        elif name in _FIELDS and not _FIELDS[name].decimals:
            read, expected = integer, "integers"
        else:
            read = integer or decimal
        if read and name.isidentifier():
            names.append(name)
        elif name in (*COLUMNS, "label"):
            raise InputError(f"type {kind}; expected {expected}", file=path, field=name)
    return names


def _numbers(name: str, column: pa.ChunkedArray, path: Path) -> NDArray[Any]:
    """Return the valid numbers of a column, -1 where a value is missing."""
    missing = None
    if column.null_count:
        missing = column.is_null().to_numpy()
        column = column.fill_null(0)
    numbers: NDArray[Any] = column.to_numpy()
    _check(name, numbers, missing, path)
    numbers = numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64, copy=False)
    return numbers if missing is None else np.where(missing, UNKNOWN, numbers)


def _check(name: str, column: NDArray[Any], missing: NDArray[np.bool_] | None, path: Path) -> None:
    """Refuse a column with a value that is not valid, or that is missing but has to be known."""
    field = _FIELDS.get(name)
    if field is not None:
        wrong, expected = invalid(field, column), field.expected
    elif column.dtype.kind == "f":
        wrong, expected = ~np.isfinite(column), "a finite number"
    else:
        wrong, expected = column > _HIGHEST, "an integer below 2^63"
    if missing is not None:
        wrong = missing if name == "job_id" else wrong & ~missing
    if wrong.any():
        row = int(wrong.argmax())
        value = "missing" if missing is not None and missing[row] else column[row]
        raise InputError(f"{value}; expected {expected}", file=path, field=f"{name}, row {row + 1}")


def _texts(column: pa.ChunkedArray, path: Path) -> NDArray[np.str_]:
    if column.null_count:
        row = int(column.is_null().to_numpy().argmax())
        raise InputError("missing; expected a text", file=path, field=f"label, row {row + 1}")
    return np.array(column.to_pylist(), dtype=np.str_)


def _header(metadata: Mapping[bytes, bytes], path: Path) -> Header:
    try:
        lines = metadata[b"header"].decode().split("\n") if b"header" in metadata else []
    except UnicodeDecodeError:
        raise InputError("not UTF-8", file=path, field="metadata header") from None
    header = Header.from_comments(lines)
    try:
        header.check_numbers(range(1, 1 + len(header.lines)))
    except InputError as error:
        field = f"metadata header, {error.field}"
        raise InputError(*error.mistakes, file=path, field=field) from None
    return header


def _limits_hold(metadata: Mapping[bytes, bytes], path: Path) -> bool:
    stated = metadata.get(b"limits_hold", b"false")
    if stated not in _TRUTHS:
        expected = "expected true or false"
        raise InputError(f"{shown(stated)}; {expected}", file=path, field="metadata limits_hold")
    return _TRUTHS[stated]
