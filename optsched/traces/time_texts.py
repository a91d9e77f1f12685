"""Durations and dates that the texts of a column state."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.numbers import parse_number
from optsched.traces.text_pieces import shown

if TYPE_CHECKING:
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
            raise _mistake(text, f"{expected}{CLOCKS}", name, row, path) from None
    if plain:
        raise InputError(f"type {column.type}; expected numbers", file=path, field=name)
    return _numbers(found, missing)


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
            raise _mistake(text, EXPECTED_DATE, name, row, path) from None
    numbers = ~dated & ~missing
    if numbers.any() and dated.any():
        most, few = (dated, numbers) if dated.sum() >= numbers.sum() else (numbers, dated)
        kind = "a date" if most is dated else "seconds"
        row = int(few.argmax())
        text = texts[row].as_py()
        raise _mistake(text, f"{kind}, as in row {most.argmax() + 1}", name, row, path)
    if numbers.any():
        raise InputError(f"type {column.type}; expected numbers or dates", file=path, field=name)
    return _numbers(found, missing), bool(dated.any())


def _since_1970(text: str) -> float:
    moment = datetime.fromisoformat(f"{text[:-4]}Z" if text.endswith(" UTC") else text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _numbers(found: NDArray[np.float64], missing: NDArray[np.bool_]) -> pa.ChunkedArray:
    """Return numbers, as integers if all are whole."""
    import pyarrow as pa

    whole = bool((found == np.rint(found))[~missing].all())
    filled = np.where(missing, 0.0, found)
    return pa.chunked_array([pa.array(filled.astype(np.int64) if whole else filled, mask=missing)])


def _mistake(text: str, expected: str, name: str, row: int, path: Path | None) -> InputError:
    found = shown(text.encode(errors="replace"))
    return InputError(f"{found}; expected {expected}", file=path, field=f"{name}, row {row + 1}")
