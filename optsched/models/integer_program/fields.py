"""Fields of an integer program: its rows, and bounds of rows that may be absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from optsched.fields import LARGEST_FIELD, Each, Fields, WrongValueError, plain

Row = Mapping[int, int]
"""A row of a program: its coefficients other than 0, by number of the variable from 0."""


def numbered(prefix: str, count: int) -> tuple[str, ...]:
    """Return the names of `count` variables or rows without names of their own."""
    return tuple(f"{prefix}{number}" for number in range(1, count + 1))


class Rows(Each):
    """The rows of a program, sparse: on file by names of variables, in Python by their numbers."""

    on_file = "list of objects: integer coefficients by name of the variable"
    in_python = "sequence of mappings from number of the variable, from 0, to coefficient"
    expected = "expected a list of rows"
    items: Mapping[str, Any] = {
        "type": "object",
        "additionalProperties": {
            "type": "integer",
            "minimum": -LARGEST_FIELD,
            "maximum": LARGEST_FIELD,
        },
    }

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        count = fields.count("coefficients")
        unsure = count is None or "variable_names" not in fields
        names = fields.get("variable_names") or numbered("x", count or 0)
        keys = names if fields.on_file else range(count or 0)
        known = {key: number for number, key in enumerate(keys)}
        expected = "one of the variable_names" if fields.on_file else f"0 to {(count or 0) - 1}"

        def read(given: Any) -> Row:
            if not isinstance(given, Mapping):
                raise WrongValueError(f"{given!r}; expected coefficients by variable")
            row, wrong = {}, []
            for variable, coefficient in given.items():
                number, amount = known.get(plain(variable)), plain(coefficient)
                if number is None and not unsure:
                    wrong.append(f": {variable!r}; expected {expected}")
                if type(amount) is not int or not 0 < abs(amount) <= LARGEST_FIELD:
                    amounts = f"an integer other than 0, at most {LARGEST_FIELD}"
                    wrong.append(f", {variable}: {coefficient!r}; expected {amounts}")
                elif number is not None:
                    row[number] = amount
            if wrong:
                raise WrongValueError(inside=wrong)
            return row

        return read


class RowBounds(Each):
    """A bound of each row, or None for no bound."""

    on_file = "list of integers or null"
    in_python = "sequence of int or None"
    like = "rows"
    items: Mapping[str, Any] = {
        "type": ["integer", "null"],
        "minimum": -LARGEST_FIELD,
        "maximum": LARGEST_FIELD,
    }

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        def read(bound: Any) -> int | None:
            if bound is None or (type(bound) is int and abs(bound) <= LARGEST_FIELD):
                return bound
            integer = f"an integer from {-LARGEST_FIELD} to {LARGEST_FIELD}"
            raise WrongValueError(f"{bound!r}; expected {integer}, or null")

        return read
