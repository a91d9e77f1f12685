"""Kinds of fields of an Ousterhout matrix: sets of columns, and numbers of rows or columns."""

from __future__ import annotations

import re
from typing import Any

from optsched.column_sets import ColumnSet, column_set, interval_text
from optsched.models.fields import plain_sequence
from optsched.models.schema import DOUBTFUL, Fields, Kind, Reading

WIDEST = 10**6
"""Most columns, and most rows, of a matrix; a mask has a bit for each column."""

INTERVAL = r"[0-9]{1,12}(-[0-9]{1,12})?"
"""Pattern of a column, or of the first and the last column of an interval."""

COLUMNS = re.compile(f"{INTERVAL}( {INTERVAL})*")


class ColumnSets(Kind):
    """Sets of columns: bit masks in Python, intervals on file."""

    on_file = 'list of column sets such as `"0-3 7"`'
    in_python = "sequence of int, bit masks: bit c stands for column c"

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) not in (list, tuple) or not {*map(type, value)} <= {int}:
            return DOUBTFUL
        if value and not (min(value) > 0 and max(value).bit_length() <= fields["columns"]):
            return DOUBTFUL
        return tuple(value)

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        columns, sets = reading.fields["columns"], plain_sequence(value)
        if sets is None:
            example = " such as '0-3 7'" if reading.on_file else ""
            reading.wrong(name, f"expected a list of column sets{example}")
            return self.blank
        masks, expected = sets, f"expected a mask of some of the {columns} columns"
        if reading.on_file:
            expected = f"expected a column set such as '0-3 7' within 0-{columns - 1}"
            masks = tuple(columns_on_file(s, columns) if isinstance(s, str) else None for s in sets)
        wrong = [
            f"{name}[{place}]: {repr(given) if reading.on_file else _shown(given)}; {expected}"
            for place, (given, mask) in enumerate(zip(sets, masks))
            if type(mask) is not int or mask <= 0 or mask.bit_length() > columns
        ]
        reading.note(name, wrong)
        return masks

    def write(self, value: Any) -> Any:
        return [interval_text(mask) for mask in value]

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "pattern": f"^{COLUMNS.pattern}$"}}


class Numbers(Kind):
    """A list of numbers of rows, or of sizes, each a `noun` in messages; on file they count from 1.

    In Python they count from `least`; the field `within` has the largest number.
    """

    def __init__(self, noun: str, least: int, within: str, like: str | None = None) -> None:
        self.noun, self.least, self.within, self.like = noun, least, within, like
        self.shift = 1 - least
        self.on_file = f"list of integers, 1 to `{within}`"
        self.in_python = f"sequence of int, from {least}"

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) not in (list, tuple) or not {*map(type, value)} <= {int}:
            return DOUBTFUL
        if value and not (
            self.least <= min(value) and max(value) <= fields[self.within] - self.shift
        ):
            return DOUBTFUL
        if self.like is not None and len(value) != len(fields[self.like]):
            return DOUBTFUL
        return tuple(value)

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        shift = self.shift * reading.on_file
        least, most = self.least + shift, reading.fields[self.within] - self.shift + shift
        numbers = plain_sequence(value)
        if numbers is None:
            reading.wrong(name, f"expected a list of integers from {least} to {most}")
            return self.blank
        sound = [type(number) is int and least <= number <= most for number in numbers]
        wrong = [
            f"{name}[{place}]: {number!r}; expected a {self.noun} from {least} to {most}"
            for place, (number, fine) in enumerate(zip(numbers, sound))
            if not fine
        ]
        reading.note(name, wrong)
        return tuple(n - shift if fine else self.least for n, fine in zip(numbers, sound))

    def write(self, value: Any) -> Any:
        return [number + self.shift for number in value]

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": WIDEST}}


def columns_on_file(text: str, columns: int) -> ColumnSet | None:
    """Return the columns of a text such as ``0-3 7``, None if the text is not of that form.

    Columns and intervals are ascending, disjoint, and separated by one blank each.
    """
    if COLUMNS.fullmatch(text) is None:
        return None
    runs: list[tuple[int, int]] = []
    end = 0
    for part in text.split(" "):
        first, _, last = part.partition("-")
        start, stop = int(first), int(last or first) + 1
        if not end <= start < stop <= columns:
            return None
        runs.append((start, stop))
        end = stop
    return column_set(runs)


def _shown(mask: Any) -> str:
    return f"columns {interval_text(mask)}" if type(mask) is int and mask > 0 else repr(mask)
