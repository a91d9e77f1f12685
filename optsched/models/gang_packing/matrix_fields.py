"""The kind of field of an Ousterhout matrix: sets of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from optsched.column_sets import ColumnSet, column_set, interval_text
from optsched.fields import Each, Fields, WrongValueError

WIDEST = 10**6
"""Most columns, and most rows, of a matrix; a mask has a bit for each column."""

INTERVAL = r"[0-9]{1,12}(-[0-9]{1,12})?"
"""Pattern of a column, or of the first and the last column of an interval."""

COLUMNS = re.compile(f"{INTERVAL}( {INTERVAL})*")


class ColumnSets(Each):
    """Sets of columns: bit masks in Python, intervals on file."""

    on_file = 'list of column sets such as `"0-3 7"`'
    in_python = "sequence of int, bit masks: bit c stands for column c"
    expected = "expected a list of column sets such as '0-3 7'"
    items: Mapping[str, Any] = {"type": "string", "pattern": f"^{COLUMNS.pattern}$"}

    def read(self, value: Any, fields: Fields) -> Any:
        if type(value) in (list, tuple) and {*map(type, value)} <= {int} and not fields.on_file:
            columns = fields.get("columns", WIDEST)
            if not value or (min(value) > 0 and max(value).bit_length() <= columns):
                return tuple(value)
        return super().read(value, fields)

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        columns = fields.get("columns", WIDEST)

        def of_text(text: Any) -> ColumnSet:
            columns_of = columns_on_file(text, columns) if isinstance(text, str) else None
            if not columns_of:
                within = f"within 0-{columns - 1}"
                raise WrongValueError(f"{text!r}; expected a column set such as '0-3 7' {within}")
            return columns_of

        def of_mask(mask: Any) -> ColumnSet:
            if type(mask) is not int or mask <= 0 or mask.bit_length() > columns:
                raise WrongValueError(
                    f"{_shown(mask)}; expected a mask of some of the {columns} columns"
                )
            return mask

        return of_text if fields.on_file else of_mask

    def write(self, value: Any) -> Any:
        return [interval_text(mask) for mask in value]


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
