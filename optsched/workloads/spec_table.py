"""Reader of the values of a workload spec that collects all mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from optsched.errors import InputError, UnknownNameError

_MISSING = object()


class SpecTable:
    """Table of a workload spec, and the mistakes found so far in the whole file.

    The place is the prefix of the keys in messages, ``classes[1].`` for instance.
    """

    def __init__(
        self, table: Mapping[str, Any], place: str = "", mistakes: list[str] | None = None
    ) -> None:
        self.table = table
        self.place = place
        self.mistakes: list[str] = [] if mistakes is None else mistakes

    def known(self, keys: Iterable[str]) -> None:
        """Note every key that is not among `keys`."""
        keys = list(keys)
        for key in self.table:
            if key not in keys:
                self.note(key, str(UnknownNameError("key", key, keys)))

    def note(self, key: str, mistake: str) -> None:
        """Note a mistake in the value of `key`."""
        self.mistakes.append(f"{self.place}{key}: {mistake}")

    def whole(self, key: str, *, lowest: int = 1, expected: str = "a whole number") -> int:
        """Return a whole number of at least `lowest`; `lowest` where there is a mistake."""
        wanted = f"{expected} from {lowest}"
        value = self._value(key, None, wanted)
        if value is _MISSING:
            return lowest
        if type(value) is not int or value < lowest:
            self.note(key, f"{value!r}; expected {wanted}")
            return lowest
        return value

    def number(
        self, key: str, low: float, high: float, expected: str, *, default: float | None = None
    ) -> float:
        """Return a number from `low` to `high`; `high` where there is a mistake."""
        value = self._value(key, default, expected)
        if value is _MISSING:
            return high
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if not (known and low <= value <= high and math.isfinite(value)):
            self.note(key, f"{value!r}; expected {expected}")
            return high
        return float(value)

    def text(self, key: str) -> str:
        """Return a text; an empty one if the key is missing."""
        value = self.table.get(key, "")
        if not isinstance(value, str):
            self.note(key, f"{value!r}; expected a text")
            return ""
        return value

    def part(self, key: str, expected: str) -> SpecTable | None:
        """Return the table that `key` holds; None where there is a mistake."""
        value = self._value(key, None, expected)
        if value is _MISSING:
            return None
        if not isinstance(value, Mapping):
            self.note(key, f"{value!r}; expected {expected}")
            return None
        return SpecTable(value, f"{self.place}{key}.", self.mistakes)

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

    def done(self) -> None:
        """Raise an `InputError` with all mistakes noted so far, if there are any."""
        if self.mistakes:
            raise InputError(*self.mistakes)

    def _value(self, key: str, default: Any, expected: str) -> Any:
        if key in self.table:
            return self.table[key]
        if default is not None:
            return default
        self.note(key, f"missing; expected {expected}")
        return _MISSING
