"""Traces as Parquet and as CSV: a typed column for each field of a trace that is known.

File formats: ``docs/formats/parquet.md`` and ``docs/formats/csv.md``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.files import read_bytes
from optsched.registry import readers
from optsched.traces import formats
from optsched.traces.requests import TEXTS
from optsched.traces.tables import DURATIONS, parsed_csv, table_of, trace_of
from optsched.traces.trace import COLUMNS, Header, Trace

if TYPE_CHECKING:
    import pyarrow as pa


MAGIC = b"PAR1"

MOST_JOBS = 2**26  # most jobs of a file: some kilobytes can stand for any number of equal ones

_TRUTHS = {b"true": True, b"false": False}


def read_parquet(path: str | Path, columns: Mapping[str, str] | None = None) -> Trace:
    """Read a raw trace from a Parquet file, plain or gzipped; `columns` as in `read_trace`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    data, sha256 = read_bytes(path, formats.MOST)
    with _undamaged(path):
        file = pq.ParquetFile(pa.BufferReader(data))
        schema, metadata = file.schema_arrow, file.metadata.metadata or {}
    if file.metadata.num_rows > MOST_JOBS:
        raise InputError(f"has more than {MOST_JOBS:,} jobs", file=path)

    def column(name: str) -> pa.ChunkedArray:
        with _undamaged(path):
            return file.read(columns=[name]).column(name)

    return trace_of(
        schema,
        column,
        columns or {},
        name=formats.stem(path),
        path=path,
        sha256=sha256,
        header=_header(metadata, path),
        limits_hold=_limits_hold(metadata, path),
    )


def _encode_parquet(trace: Trace, path: Path) -> bytes:
    import pyarrow.parquet as pq

    header = trace.header
    if trace.cleaning is not None:
        header = header.noted(trace.cleaning.note(len(trace)))
    metadata = {"limits_hold": str(trace.limits_hold).lower()}
    if header.lines:
        metadata["header"] = "\n".join(header.comments(path))
    content = BytesIO()
    table = table_of(trace, path).replace_schema_metadata(metadata)
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


@readers.register("parquet")
class ParquetTrace(formats.TableFormat):
    """Traces as Parquet."""

    suffixes = (".parquet",)
    read = staticmethod(read_parquet)
    encode = staticmethod(_encode_parquet)

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
        wrong = f"{formats.shown(stated)}; expected true or false"
        raise InputError(wrong, file=path, field="metadata limits_hold")
    return _TRUTHS[stated]


def read_csv(path: str | Path, columns: Mapping[str, str] | None = None) -> Trace:
    """Read a raw trace from a CSV file, plain or gzipped; `columns` as in `read_trace`."""
    path = Path(path)
    data, sha256 = read_bytes(path, formats.MOST)
    data = data.removeprefix(formats.BYTE_ORDER_MARK)
    formats.check_utf8(data, path, "CSV")
    table = _table(data, columns or {}, path)
    return trace_of(
        table.schema, table.column, columns or {}, name=formats.stem(path), path=path, sha256=sha256
    )


def _encode_csv(trace: Trace, path: Path) -> bytes:
    import pyarrow.csv as pc

    if trace.limits_hold and (trace.runtime > trace.requested_time).any():
        expected = "which CSV cannot say; expected a Parquet file"
        raise InputError(f"jobs end at their requested time, {expected}", file=path)
    table = table_of(trace, path)
    content = BytesIO()
    content.write(f"{','.join(table.column_names)}\n".encode())
    pc.write_csv(table, content, pc.WriteOptions(include_header=False))
    formats.say_left_out(trace, "this format", set(table.column_names) | set(COLUMNS))
    return content.getvalue()


@readers.register("csv")
class CsvTrace(formats.TableFormat):
    """Traces as CSV."""

    suffixes = (".csv",)
    read = staticmethod(read_csv)
    encode = staticmethod(_encode_csv)

    @staticmethod
    def recognizes(first_bytes: bytes, path: Path) -> bool:
        """Return whether the first line names a submit time and other columns."""
        first = first_bytes.removeprefix(formats.BYTE_ORDER_MARK).split(b"\n", 1)[0]
        names = [name.strip(b' "\r') for name in first.split(b",")]
        return len(names) > 1 and b"submit" in names


def _table(data: bytes, columns: Mapping[str, str], path: Path) -> pa.Table:
    """Return the table of a text, with the types that its values have."""
    import pyarrow as pa

    first = data.split(b"\n", 1)[0]
    if not first.strip():
        raise InputError("no line of column names; expected one", file=path, line=1)
    if data.count(b'"') % 2:
        raise InputError('a quotation mark " is not closed', file=path)
    try:
        names = next(csv.reader([first.decode().rstrip("\r")]))
    except csv.Error:
        raise InputError("not text; expected names of columns", file=path, line=1) from None
    if blank := [place for place, name in enumerate(names, start=1) if not name.strip()]:
        raise InputError("no name; expected one", file=path, line=1, field=f"column {blank[0]}")
    if len(names) == 1 and (found := [one for one in ";\t|" if one in names[0]]):
        mistake = f"names separated by {found[0]!r}; expected commas"
        raise InputError(mistake, file=path, line=1)
    targets = dict(zip(names, names)) | {source: target for target, source in columns.items()}
    texts = [name for name in names if targets[name] in (*TEXTS, "label")]
    durations = [name for name in names if targets[name] in DURATIONS]

    def wrong_row(row: Any) -> InputError:
        mistake = f"{row.actual_columns} columns; expected {row.expected_columns}, as in line 1"
        return InputError(mistake, file=path, field=f"row {row.number - 1}")

    def read(texts: list[str]) -> pa.Table:
        types = {"column_types": dict.fromkeys(texts, pa.string())}
        return parsed_csv(data, "CSV", path, wrong_row, {"newlines_in_values": True}, types)

    table = read(texts)
    # of HH:MM:SS alone, which was read as times of day
    clocks = [one for one in durations if pa.types.is_time(table.schema.field(one).type)]
    return read([*texts, *clocks]) if clocks else table
