"""Fields of an integer program: its rows, and bounds of rows that may be absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optsched.models.fields import LARGEST_FIELD, plain
from optsched.models.schema import DOUBTFUL, Fields, Kind, Reading

Row = Mapping[int, int]
"""A row of a program: its coefficients other than 0, by number of the variable from 0."""


def numbered(prefix: str, count: int) -> tuple[str, ...]:
    """Return the names of `count` variables or rows without names of their own."""
    return tuple(f"{prefix}{number}" for number in range(1, count + 1))


class Rows(Kind):
    """The rows of a program, sparse: on file by names of variables, in Python by their numbers."""

    on_file = "list of objects: integer coefficients by name of the variable"
    in_python = "sequence of mappings from number of the variable, from 0, to coefficient"

    def accept(self, value: Any, fields: Fields) -> Any:
        return DOUBTFUL  # each coefficient is checked

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        if not isinstance(value, list | tuple):
            reading.wrong(name, "expected a list of rows")
            return self.blank
        count = len(reading.fields["coefficients"])
        names = reading.fields["variable_names"] or numbered("x", count)
        known = {
            key: number for number, key in enumerate(names if reading.on_file else range(count))
        }
        expected = "one of the variable_names" if reading.on_file else f"0 to {count - 1}"
        unsure = {"coefficients", "variable_names"} & reading.unread
        rows, wrong = [], []
        for place, given in enumerate(value):
            if not isinstance(given, Mapping):
                wrong.append(f"{name}[{place}]: {given!r}; expected coefficients by variable")
                continue
            row = {}
            for variable, coefficient in given.items():
                number, amount = known.get(plain(variable)), plain(coefficient)
                if number is None and not unsure:
                    wrong.append(f"{name}[{place}]: {variable!r}; expected {expected}")
                if type(amount) is not int or not 0 < abs(amount) <= LARGEST_FIELD:
                    amounts = f"an integer other than 0, at most {LARGEST_FIELD}"
                    wrong.append(
                        f"{name}[{place}], {variable}: {coefficient!r}; expected {amounts}"
                    )
                elif number is not None:
                    row[number] = amount
            rows.append(row)
        reading.note(name, wrong)
        if wrong:
            reading.unread.add(name)
        return tuple(rows)

    def json_schema(self) -> dict[str, Any]:
        amounts = {"type": "integer", "minimum": -LARGEST_FIELD, "maximum": LARGEST_FIELD}
        return {"type": "array", "items": {"type": "object", "additionalProperties": amounts}}


class RowBounds(Kind):
    """A bound of each row, or None for no bound; described as `on_file`."""

    on_file = "list of integers or null"
    in_python = "sequence of int or None"
    like = "rows"

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) not in (list, tuple) or not {*map(type, value)} <= {int, type(None)}:
            return DOUBTFUL
        if len(value) != len(fields[self.like]):
            return DOUBTFUL
        return tuple(value) if all(map(_is_bound, value)) else DOUBTFUL

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        bounds = plain(value)
        if not isinstance(bounds, list | tuple):
            reading.wrong(name, "expected a list of integers or null")
            return self.blank
        bounds = tuple(map(plain, bounds))
        expected = f"expected an integer from {-LARGEST_FIELD} to {LARGEST_FIELD}, or null"
        wrong = [
            f"{name}[{place}]: {bound!r}; {expected}"
            for place, bound in enumerate(bounds)
            if not _is_bound(bound)
        ]
        reading.note(name, wrong)
        return tuple(bound if _is_bound(bound) else None for bound in bounds)

    def json_schema(self) -> dict[str, Any]:
        limits = {"minimum": -LARGEST_FIELD, "maximum": LARGEST_FIELD}
        return {"type": "array", "items": {"type": ["integer", "null"], **limits}}


def _is_bound(value: Any) -> bool:
    return value is None or (type(value) is int and abs(value) <= LARGEST_FIELD)
