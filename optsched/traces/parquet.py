"""Traces as Parquet: a typed column for each field of a trace that is known.

File format: ``docs/formats/parquet.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.binary_files import read_bytes, write_bytes
from optsched.errors import InputError
from optsched.registry import readers
from optsched.traces.formats import TableFormat, stem
from optsched.traces.header import Header
from optsched.traces.tables import table_of, trace_of
from optsched.traces.text_pieces import shown
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"PAR1"

MOST = 2**34
"""Most bytes of a file, which is read as a whole: 16 GiB."""

MOST_JOBS = 2**26
"""Most jobs of a file: some kilobytes can stand for any number of equal ones."""

_TRUTHS = {b"true": True, b"false": False}


def read_parquet(path: str | Path, columns: Mapping[str, str] | None = None) -> Trace:
    """Read a raw trace from a Parquet file, plain or gzipped.

    Columns have the names of those of `Trace.frame`; ``submit``, ``runtime`` (or ``start`` and
    ``end``) and ``processors`` are required. Further columns of numbers become annotations, and
    further ones of texts `Trace.texts`. A missing value is unknown.

    `columns`: name in the file of each column that has another name there.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(path)
    data, sha256 = read_bytes(path, MOST)
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
        name=stem(path),
        path=path,
        sha256=sha256,
        header=_header(metadata, path),
        limits_hold=_limits_hold(metadata, path),
    )


def write_parquet(trace: Trace, path: str | Path) -> None:
    """Write a trace as Parquet, with annotations and texts; gzipped if the name ends in ``.gz``.

    Columns that are unknown for all jobs are left out. A further line of the header records the
    cleaning of a cleaned trace.
    """
    write_bytes(path, _encode(trace, Path(path)))


def _encode(trace: Trace, path: Path) -> bytes:
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
class ParquetTrace(TableFormat):
    """Traces as Parquet."""

    suffixes = (".parquet",)
    read = staticmethod(read_parquet)
    encode = staticmethod(_encode)

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
        expected = "expected true or false"
        raise InputError(f"{shown(stated)}; {expected}", file=path, field="metadata limits_hold")
    return _TRUTHS[stated]
