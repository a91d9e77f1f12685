"""Traces from tables with named columns: Parquet, CSV, a DataFrame.

Pages: ``docs/formats/parquet.md`` and ``docs/formats/csv.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Floats, Ints
from optsched.errors import InputError, brief
from optsched.numbers import LARGEST, parse_number
from optsched.traces.formats import known_columns, shown
from optsched.traces.requests import QUANTITIES, SECONDS, TEXT_OF, TEXTS, numbered
from optsched.traces.swf import FIELDS, Field, invalid, unusual
from optsched.traces.trace import AMOUNTS, COLUMNS, UNKNOWN, Header, Trace

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


CLOCKS = ", or HH:MM:SS or D-HH:MM:SS"
EXPECTED_DATE = "seconds, or a date such as 2026-01-31 08:00:00"

_CLOCK = (
    r"^(?:(?P<days>\d{1,6})(?:-| days?,? ))?(?P<hours>\d{1,8}):(?P<minutes>[0-5]\d)"
    r":(?P<seconds>[0-5]\d(?:\.\d{1,9})?)$"
)


def known_texts(column: pa.ChunkedArray) -> pa.Array:
    """Return the texts of a column, null where they say that a value is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    unknown = pa.array(pyarrow.csv.ConvertOptions().null_values, column.type)
    texts = pc.if_else(pc.is_in(column, unknown), None, column)
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def read_durations(
    name: str, column: pa.ChunkedArray, expected: str, path: Path | None
) -> pa.ChunkedArray:
    """Return the seconds of durations such as ``1-02:00:00``, and of numbers beside them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = known_texts(column)
    days, hours, minutes, seconds = (
        pc.if_else(pc.equal(part, ""), "0", part).cast(pa.float64()).to_numpy(zero_copy_only=False)
        for part in pc.extract_regex(texts, _CLOCK).flatten()
    )
    found = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    found[(days > 0) & (hours >= 24)] = np.nan
    missing = texts.is_null().to_numpy(zero_copy_only=False)
    plain = bool((np.isnan(found) | missing).all() and not missing.all())
    for row in np.flatnonzero(np.isnan(found) & ~missing).tolist():
        text = texts[row].as_py()
        try:
            found[row] = parse_number(text)
        except ValueError:
            raise _wrong(shown(text), f"{expected}{CLOCKS}", name, row, path) from None
    if plain:
        raise InputError(f"type {column.type}; expected numbers", file=path, field=name)
    return _chunked(found, missing)


def read_dates(
    name: str, column: pa.ChunkedArray, path: Path | None
) -> tuple[pa.ChunkedArray, bool]:
    """Return the seconds of dates since 1970, or of numbers; and whether they are dates.

    Forms of dates may be mixed; those without a zone are of UTC, and those without a time of
    midnight.
    """
    texts = known_texts(column)
    missing = texts.is_null().to_numpy(zero_copy_only=False)
    found = np.zeros(len(texts))
    dated = np.zeros(len(texts), dtype=bool)
    for row, text in enumerate(texts.to_pylist()):
        if text is None:
            continue
        try:
            found[row] = parse_number(text.strip())
            missing[row] = found[row] == -1
            continue
        except ValueError:
            pass
        try:
            found[row], dated[row] = _since_1970(text.strip()), True
        except ValueError:
            raise _wrong(shown(text), EXPECTED_DATE, name, row, path) from None
    numbers = ~dated & ~missing
    if numbers.any() and dated.any():
        most, few = (dated, numbers) if dated.sum() >= numbers.sum() else (numbers, dated)
        kind = "a date" if most is dated else "seconds"
        row = int(few.argmax())
        text = shown(texts[row].as_py())
        raise _wrong(text, f"{kind}, as in row {most.argmax() + 1}", name, row, path)
    if numbers.any():
        raise InputError(f"type {column.type}; expected numbers or dates", file=path, field=name)
    return _chunked(found, missing), bool(dated.any())


def _since_1970(text: str) -> float:
    moment = datetime.fromisoformat(f"{text[:-4]}Z" if text.endswith(" UTC") else text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _chunked(found: Floats, missing: Flags) -> pa.ChunkedArray:
    """Return numbers, as integers if all are whole."""
    import pyarrow as pa

    whole = bool((found == np.rint(found))[~missing].all())
    filled = np.where(missing, 0.0, found)
    return pa.chunked_array([pa.array(filled.astype(np.int64) if whole else filled, mask=missing)])


def _wrong(value: object, expected: str, name: str, row: int, path: Path | None) -> InputError:
    return InputError(f"{value}; expected {expected}", file=path, field=f"{name}, row {row + 1}")


REQUIRED = ("submit", "runtime", "processors")

MOMENTS = ("start", "end")
"""Columns of a table that give the wait and the run time, where these are unknown."""

_FIELDS = {field.column: field for field in FIELDS}
_FIELDS["stated_time"] = _FIELDS["requested_time"]
_FIELDS |= {name: Field(name, name, decimals=True) for name in MOMENTS}
_FIELDS |= {
    name: Field(name, name, decimals=quantity.unit == SECONDS)
    for name, quantity in QUANTITIES.items()
}
_INSTANTS = ("submit", *MOMENTS, "begin", "eligible")
_TEXTS = {"label", *TEXTS}

DURATIONS = {name for name, one in _FIELDS.items() if one.decimals} - {*_INSTANTS, *AMOUNTS}
"""Columns of durations, which texts may state as ``HH:MM:SS`` or ``D-HH:MM:SS``."""

_HIGHEST = np.iinfo(np.int64).max


def trace_from_frame(frame: pd.DataFrame, *, name: str = "trace", **columns: str) -> Trace:
    """Return the raw trace of a DataFrame with one row per job.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns as in a trace file: ``submit``, ``runtime`` (or ``start`` and ``end``) and
        ``processors`` are required. Times are numbers in seconds, or dates and durations, of pandas
        or as texts: ``2026-01-31 08:00:00``, ``HH:MM:SS`` or ``D-HH:MM:SS``.
        Further columns of numbers become annotations, further ones of texts `Trace.texts`.
    name : str
        Name of the trace.
    **columns : str
        Name in the frame of a column that has another name there, ``submit="submit_time"``.

    Returns
    -------
    Trace
        The raw trace; columns that are not read are counted in `Trace.oddities`.

    Raises
    ------
    InputError
        If a column is missing or has a wrong value; names the column and the row, from 1.

    Examples
    --------
    >>> import pandas as pd
    >>> jobs = pd.DataFrame({"at": [0, 5], "runtime": [60, 9], "processors": [4, 1]})
    >>> trace_from_frame(jobs, submit="at").submit.tolist()
    [0, 5]
    """
    import pyarrow as pa

    if not is_frame(frame):
        raise InputError(f"{brief(frame)}; expected a DataFrame of pandas", field="frame")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason, field = " ".join(map(str, error.args)), "frame"
        for column, values in frame.items():
            kinds = sorted({type(value).__name__ for value in values})
            if f"column {column} " in reason and len(kinds) > 1:
                reason, field = f"holds values of {' and '.join(kinds)}", str(column)
        raise InputError(f"{reason}; expected one type in each column", field=field) from None
    return trace_of(table.schema, table.column, columns, name=name)


def is_frame(given: object) -> TypeGuard[pd.DataFrame]:
    """Return whether an argument is a DataFrame of pandas, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(given, pandas.DataFrame)


def trace_of(
    schema: pa.Schema,
    read: Callable[[str], pa.ChunkedArray],
    columns: Mapping[str, str],
    *,
    name: str,
    path: Path | None = None,
    sha256: str | None = None,
    header: Header | None = None,
    limits_hold: bool = False,
) -> Trace:
    """Return the raw trace of a table, from its schema and a function that reads a column.

    `columns` names the columns of the table that have another name there. The other arguments are
    fields of the trace.
    """
    table = _Table(schema, read, columns, path)
    found = {one: table.column(one) for one in table.sources}
    if not len(next(iter(found.values()))):
        raise InputError("no jobs; expected one in each row", file=path)
    header = Header() if header is None else header
    if table.dated:
        origin = table.origin(found)
        for one in table.dated:
            known = found[one] != UNKNOWN
            found[one] = np.where(known, found[one] - origin, UNKNOWN)
        header = Header((("UnixStartTime", str(origin)), *header.lines))
    oddities = _add_times(found, path)
    if "job_id" not in found:
        found["job_id"] = np.arange(1, 1 + len(found["submit"]))
        oddities["jobs numbered in the order of the rows"] = len(found["job_id"])
    texts = {one: found.pop(one) for one in table.texts if one != "label"}
    for column, text in TEXT_OF.items():
        if column not in found and text in texts:
            found[column] = numbered(texts[text])
    label = found.pop("label", None)
    annotations = {one: found.pop(one) for one in [*found] if one not in COLUMNS}
    oddities = unusual(found) | oddities
    oddities[f"columns that are not read ({', '.join(table.others)})"] = len(table.others)
    unknown = np.broadcast_to(np.int64(UNKNOWN), len(found["job_id"]))
    known_ones = {one: column for one, column in found.items() if (column != UNKNOWN).any()}
    required = dict.fromkeys(("job_id", *REQUIRED, "requested_time"), unknown)
    return Trace(
        **required | known_ones,
        name=name,
        path=path,
        sha256=sha256,
        header=header,
        oddities=oddities,
        label=None if label is None else label.astype(np.str_),
        annotations=annotations,
        texts=texts,
        limits_hold=limits_hold,
    )


def table_of(trace: Trace, path: Path) -> pa.Table:
    """Return the table of a trace: its known columns, annotations and texts."""
    import pyarrow as pa

    # without numbers of their own, texts would be numbered by the reader
    numbers = (number for number, text in TEXT_OF.items() if text in trace.texts)
    names = dict.fromkeys(("job_id", *REQUIRED, *known_columns(trace), *numbers))
    columns = {name: getattr(trace, name) for name in COLUMNS if name in names}
    columns |= dict(trace.annotations)
    for name, column in columns.items():
        _check(name, column, None, path)
    arrays = {name: pa.array(column) for name, column in columns.items()}
    texts = dict(trace.texts) if trace.label is None else {**trace.texts, "label": trace.label}
    for name, text in texts.items():
        try:
            arrays[name] = pa.array(text.tolist(), pa.string())
        except (pa.ArrowException, UnicodeEncodeError):
            raise InputError("a text that is not UTF-8", file=path, field=name) from None
    return pa.table(arrays)


class _Table:
    """Columns of a table by their names in a trace."""

    def __init__(
        self,
        schema: pa.Schema,
        read: Callable[[str], pa.ChunkedArray],
        columns: Mapping[str, str],
        path: Path | None,
    ) -> None:
        self.dated: list[str] = []
        self.others: list[str] = []
        self.texts: list[str] = []
        self._read = read
        self._path = path
        repeated = [name for name in schema.names if schema.names.count(name) > 1]
        if repeated:
            wrong = "more than one column with this name"
            raise InputError(wrong, file=path, field=shortened(repeated[0]))
        self._types = {name: schema.field(name).type for name in schema.names}
        self.sources = self._named(columns)
        missing = [name for name in REQUIRED if name not in self.sources]
        if "end" in self.sources and {"start", "wait"} & self.sources.keys():
            missing = [name for name in missing if name != "runtime"]
        if missing:
            absent = ", ".join(missing).replace("runtime", "runtime (or start and end)")
            has = ", ".join(map(shortened, schema.names)) or "none"
            pairs = [f"{name}=NAME" for name in missing]
            renamed = f"optsched trace convert --columns {','.join(pairs)}"
            if path is None:
                renamed = f"optsched.trace_from_frame(frame, {', '.join(pairs)})"
            expected = f"the table has {has}; {renamed} takes columns of other names"
            raise InputError(f"no column {absent}; {expected}", file=path)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column: numbers, -1 where unknown, or texts."""
        column = self._read(self.sources[name])
        if name in self.texts:
            return _texts(name, column, self._path)
        column = _plain(column)
        if name in _INSTANTS and _is_text(column.type):
            column, dated = read_dates(name, column, self._path)
            if dated:
                self.dated.append(name)
        return _numbers(name, column, self._path, dated=name in self.dated)

    def origin(self, found: Mapping[str, NDArray[Any]]) -> int:
        """Return the seconds since 1970 from which dates count: those of the first submission."""
        for name in _INSTANTS:
            if name in found and name not in self.dated and (found[name] != UNKNOWN).any():
                expected = f"expected dates, as in {self.dated[0]}"
                raise InputError(f"numbers; {expected}", file=self._path, field=name)
        submit = found["submit"]
        known = submit[submit != UNKNOWN]
        return int(known.min()) if len(known) else 0

    def _named(self, columns: Mapping[str, str]) -> dict[str, str]:
        """Return the column of the table for each name in the trace; note those not read."""
        for name, source in columns.items():
            if source not in self._types:
                has = f"the table has {', '.join(map(shortened, self._types))}"
                raise InputError(f"no column {source!r}; {has}", file=self._path, field=name)
            if not name.isidentifier():
                raise InputError(f"{name!r}; expected a word", file=self._path, field="columns")
        mapped = set(columns.values())
        own = {name: name for name in self._types if name not in mapped and name not in columns}
        self.others += [name for name in self._types if name in columns and name not in mapped]
        sources: dict[str, str] = {}
        for name, source in (own | dict(columns)).items():
            if (kept := self._name(name, source)) is None:
                self.others.append(source)
            elif kept in sources:
                expected = f"is {sources[kept]} too; expected one column"
                raise InputError(expected, file=self._path, field=kept)
            else:
                sources[kept] = source
        # in the order of the table, in which the first mistake is reported
        places = {name: place for place, name in enumerate(self._types)}
        self.others.sort(key=places.__getitem__)
        return dict(sorted(sources.items(), key=lambda item: places[item[1]]))

    def _name(self, name: str, source: str) -> str | None:
        """Return the name in the trace of a column; None for one that is not read."""
        import pyarrow as pa

        kind = self._types[source]
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        is_text = _is_text(kind)
        if is_text and name in TEXT_OF:
            name = TEXT_OF[name]
        if is_text and (name in _TEXTS or (name not in _FIELDS and name.isidentifier())):
            self.texts.append(name)
            return name
        if pa.types.is_null(kind):
            return name if name in _FIELDS else None
        read = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        read = read or (name not in COLUMNS and pa.types.is_boolean(kind))
        if name in _INSTANTS and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            self.dated.append(name)
            read = True
        field = _FIELDS.get(name)
        read = read or (name in DURATIONS and pa.types.is_duration(kind))
        read = read or (name in {*DURATIONS, *_INSTANTS} and is_text)
        if name in _TEXTS:
            raise InputError(f"type {kind}; expected texts", file=self._path, field=name)
        if read and name.isidentifier():
            return name
        if field is None:
            return None
        self._refuse(name, source, field)
        plural = "numbers" if field.decimals else "integers"
        raise InputError(f"type {kind}; expected {plural}", file=self._path, field=name)

    def _refuse(self, name: str, source: str, field: Field) -> None:
        """Refuse the first value of a column of texts, times or dates that is no number."""
        column = _plain(self._read(source))
        expected = EXPECTED_DATE if name in _INSTANTS else field.expected
        if name in DURATIONS:
            expected = f"{expected}{CLOCKS}"
        values = known_texts(column) if _is_text(column.type) else column
        for row, value in enumerate(values.to_pylist()):
            try:
                parse_number("0" if value is None else str(value))
            except ValueError:
                raise _wrong(shown(str(value)), expected, name, row, self._path) from None


def shortened(name: str, most: int = 40) -> str:
    """Return the name of a column for a message."""
    return name if len(name) <= most else f"{name[:most]}..."


def _add_times(found: dict[str, NDArray[Any]], path: Path | None) -> dict[str, int]:
    """Add the wait and the run time from start and end, where these give them; count oddities."""
    oddities: dict[str, int] = {}
    unknown = np.full(len(found["submit"]), UNKNOWN)
    start, wait = found.get("start"), found.get("wait")
    if start is None and wait is not None:
        known = (found["submit"] != UNKNOWN) & (wait != UNKNOWN)
        start = np.where(known, found["submit"] + wait, UNKNOWN)
    if "end" in found and start is not None and (found.get("runtime", unknown) == UNKNOWN).all():
        end = found.pop("end")
        known = (start != UNKNOWN) & (end != UNKNOWN)
        wrong = known & (end < start)
        if wrong.any():
            row = int(wrong.argmax())
            raise _wrong(end[row], "an end at the start or later", "end", row, path)
        found["runtime"] = np.where(known, end - start, UNKNOWN)
    if start is not None and wait is None:
        found["wait"], early = waits(found["submit"], found.pop("start"))
        oddities["jobs that started before they were submitted, whose wait is unknown"] = early
    return oddities


def waits(submit: NDArray[Any], start: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return the time from submission to start, -1 where unknown, and the number below 0."""
    known = (submit != UNKNOWN) & (start != UNKNOWN)
    early = known & (start < submit)
    return np.where(known & ~early, start - submit, UNKNOWN), int(early.sum())


def parsed_csv(
    data: bytes,
    form: str,  # what the text should be, for messages
    path: Path,
    # Returns the error of a row of another number of values than the first one
    wrong_row: Callable[[Any], InputError],
    parse: Mapping[str, Any],  # options of `pyarrow.csv.ParseOptions`
    convert: Mapping[str, Any],  # options of `pyarrow.csv.ConvertOptions`
) -> pa.Table:
    """Return the table of a text whose first line has the names of the columns."""
    import pyarrow as pa
    import pyarrow.csv as pc

    wrong: list[Any] = []

    def refuse(row: Any) -> str:
        wrong.append(row)
        return "error"

    try:
        return pc.read_csv(
            BytesIO(data),
            pc.ReadOptions(use_threads=False),  # one thread, so that a wrong row has a number
            pc.ParseOptions(invalid_row_handler=refuse, **parse),
            pc.ConvertOptions(**convert),
        )
    except pa.ArrowInvalid as error:
        if wrong:
            raise wrong_row(wrong[0]) from None
        reason = shortened(str(error).splitlines()[0], 120)
        raise InputError(f"not {form}: {reason}", file=path) from None


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _numbers(name: str, column: pa.ChunkedArray, path: Path | None, *, dated: bool) -> NDArray[Any]:
    """Return the valid numbers of a column, -1 where a value is missing."""
    import pyarrow as pa

    missing = None
    if pa.types.is_null(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        column = _seconds(column)
    if _is_text(column.type):
        column = read_durations(name, column, _FIELDS[name].expected, path)
    if column.null_count:
        missing = column.is_null().to_numpy()
        column = column.fill_null(0)
    numbers: NDArray[Any] = column.to_numpy()
    if dated and (early := numbers < 0).any():
        row = int(early.argmax())
        date = str(np.datetime64(int(numbers[row]), "s")).replace("T", " ")
        raise _wrong(date, "a date from 1970 on", name, row, path)
    field = _FIELDS.get(name)
    if field is not None and not field.decimals and numbers.dtype.kind == "f":
        numbers = _whole(name, numbers, missing, path)
    _check(name, numbers, missing, path)
    numbers = numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64, copy=False)
    return numbers if missing is None else np.where(missing, UNKNOWN, numbers)


def _seconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return dates or durations in seconds, as integers if all are whole."""
    import pyarrow as pa
    import pyarrow.compute as pc

    units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
    counts = column.cast(pa.int64())
    whole = pc.divide(counts, units)
    if pc.all(pc.equal(pc.multiply(whole, units), counts)).as_py() in (True, None):
        return whole
    return pc.divide(counts.cast(pa.float64(), safe=False), float(units))


def _whole(name: str, numbers: NDArray[Any], missing: Flags | None, path: Path | None) -> Ints:
    """Return numbers of a floating type as integers; refuse one that is not whole."""
    # nan and infinity are not whole either
    wrong = ~(np.abs(numbers) <= LARGEST) | (numbers != np.rint(numbers))
    if missing is not None:
        wrong &= ~missing
    if wrong.any():
        row = int(wrong.argmax())
        is_large = np.isfinite(numbers[row]) and numbers[row] > LARGEST
        expected = "an integer of at most 2^53" if is_large else _FIELDS[name].expected
        raise _wrong(numbers[row], expected, name, row, path)
    return numbers.astype(np.int64)


def _check(name: str, column: NDArray[Any], missing: Flags | None, path: Path | None) -> None:
    """Refuse a column with a value that is not valid, or that is missing but has to be known."""
    field, quantity = _FIELDS.get(name), QUANTITIES.get(name)
    if field is not None:
        wrong, expected = invalid(field, column), field.expected
        if quantity is not None and quantity.highest is not None:
            wrong = wrong | (column > quantity.highest)
            expected = f"an integer from 0 to {quantity.highest}, or -1 for unknown"
    elif column.dtype.kind == "f":
        wrong, expected = ~np.isfinite(column), "a finite number"
    else:
        wrong, expected = column > _HIGHEST, "an integer below 2^63"
    if missing is not None:
        wrong = missing if name == "job_id" else wrong & ~missing
    if wrong.any():
        row = int(wrong.argmax())
        value = "missing" if missing is not None and missing[row] else column[row]
        raise _wrong(value, expected, name, row, path)


def _texts(name: str, column: pa.ChunkedArray, path: Path | None) -> NDArray[np.object_]:
    """Return the texts of a column, each different one stored once; empty where missing."""
    column = _plain(column)
    if column.null_count:
        if name == "label":
            row = int(column.is_null().to_numpy().argmax())
            raise InputError("missing; expected a text", file=path, field=f"label, row {row + 1}")
        column = column.fill_null("")
    return shared_texts(column.to_pylist())


def shared_texts(texts: Sequence[str]) -> NDArray[np.object_]:
    """Return an array of texts in which equal texts are one object."""
    once: dict[str, str] = {}
    array = np.empty(len(texts), dtype=object)
    array[:] = [once.setdefault(text, text) for text in texts]
    return array
