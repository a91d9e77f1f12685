"""Reader of the values of a workload spec that collects all mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from optsched.toml_table import TomlTable


class SpecTable(TomlTable):
    """Table of a workload spec.

    A method that reads a key notes a mistake in its value, and returns a valid value in its place,
    so that reading goes on. `done` raises all mistakes at once.
    """

    def whole(self, key: str, *, lowest: int = 1, expected: str = "a whole number") -> int:
        """Return a whole number of at least `lowest`; `lowest` where there is a mistake."""

        def is_valid(value: Any) -> bool:
            return type(value) is int and value >= lowest

        return int(self._value(key, is_valid, f"{expected} from {lowest}", lowest))

    def number(
        self, key: str, low: float, high: float, expected: str, *, default: float | None = None
    ) -> float:
        """Return a number from `low` to `high`; `high` where there is a mistake.

        Parameters
        ----------
        key : str
            The key.
        low, high : float
            Limits of the number.
        expected : str
            Description of a valid number, which follows "expected" in the message.
        default : float, optional
            The number if the key is missing; without a default, a missing key is a mistake.
        """

        def is_valid(value: Any) -> bool:
            known = isinstance(value, int | float) and not isinstance(value, bool)
            return known and low <= value <= high and math.isfinite(value)

        return float(self._value(key, is_valid, expected, high, default))

    def text(self, key: str) -> str:
        """Return a text; an empty one if the key is missing."""
        return str(self._value(key, lambda value: isinstance(value, str), "a text", "", ""))

    def numbers(
        self, key: str, is_valid: Callable[[list[Any]], bool], expected: str, *default: Any
    ) -> tuple[Any, ...]:
        """Return a list as a tuple; an empty one where there is a mistake.

        Parameters
        ----------
        key : str
            The key.
        is_valid : callable
            Called with the list; returns whether it is valid. The elements may be of any type.
        expected : str
            Description of a valid list, which follows "expected" in the message.
        *default : object
            The elements if the key is missing; without any, a missing key gives an empty tuple.
        """

        def is_list(value: Any) -> bool:
            return isinstance(value, list) and is_valid(value)

        return tuple(self._value(key, is_list, expected, (), default))

    def part(self, key: str, expected: str) -> SpecTable | None:
        """Return the table that `key` holds; None where there is a mistake.

        Parameters
        ----------
        key : str
            The key, which becomes part of the prefix of the keys in that table.
        expected : str
            Description of the table, which follows "expected" in the message.
        """
        table = self._value(key, lambda value: isinstance(value, Mapping), expected, None)
        return None if table is None else SpecTable(table, f"{self.place}{key}.", self.mistakes)

    def parts(self, key: str) -> list[SpecTable]:
        """Return the tables that stand under the headings ``[[key]]``."""
        value = self.table.get(key)
        if not (isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value)):
            self.note(key, f"expected at least one table, each under the heading [[{key}]]")
            return []
        return [
            SpecTable(table, f"{self.place}{key}[{number}].", self.mistakes)
            for number, table in enumerate(value, 1)
        ]

    def _value(
        self,
        key: str,
        is_valid: Callable[[Any], bool],
        expected: str,
        instead: Any,
        default: Any = None,
    ) -> Any:
        """Return the value of a key or its default; note a mistake, and return `instead`."""
        if key not in self.table and default is None:
            self.note(key, f"missing; expected {expected}")
            return instead
        value = self.table.get(key, default)
        if key in self.table and not is_valid(value):
            self.note(key, f"{value!r}; expected {expected}")
            return instead
        return value
