"""Fields of a record that Slurm wrote as JSON, checked as they are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from optsched.errors import InputError
from optsched.sites.slurm_json import UNSET, Dump

NO_VALUE = 2**32 - 2
"""The number of 32 bits that stands for no value; that for infinity is one more."""

NO_SHORT_VALUE = 32766
"""The same for counts of 16 bits."""

_Value = TypeVar("_Value")


class RecordFields:
    """A record of a dump, whose fields are checked as they are taken.

    A field of an object within the record is named with a dot: ``time.start``.
    """

    def __init__(self, dump: Dump, place: int) -> None:
        self.dump, self.place = dump, place
        self.fields = dump.records[place]

    def value(self, field: str) -> Any:
        """Return a field as it is, None if it is not there."""
        value: Any = self.fields
        for name in field.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def wrong(self, field: str, expected: str) -> InputError:
        """Return the error of a field that has another form than `expected`."""
        shown = repr(self.value(field))
        shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
        name = self.dump.name(self.place)
        return InputError(f"{name}: {shown}; expected {expected}", file=self.dump.path, field=field)

    def number(self, field: str) -> float | None:
        """Return a number from 0, infinity, or None for no value."""
        value = self.value(field)
        if isinstance(value, Mapping):
            if value.get("infinite") is True:
                return math.inf
            if value.get("set") is not True:
                return None
            value = value.get("number")
            if value is None:
                raise self.wrong(field, "a number")
        if value is None or value in UNSET:
            return None
        if value in ("UNLIMITED", "INFINITE"):
            return math.inf
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise self.wrong(field, "a number from 0")
        if value >= NO_VALUE:
            if value in (2**32 - 1, 2**64 - 1):
                return math.inf
            if value == NO_VALUE or 2**63 <= value <= 2**64:  # of 64 bits, or with a flag
                return None
            raise self.wrong(field, "a number from 0 below 2^32")
        return float(value)

    def count(self, field: str, *, short: bool = False) -> int:
        """Return a whole number, with 0 for no value and for no limit."""
        number = self.number(field)
        if number is None or number == math.inf or (short and number >= NO_SHORT_VALUE):
            return 0
        if number != int(number):
            raise self.wrong(field, "a whole number from 0")
        return int(number)

    def instant(self, field: str) -> int | None:
        """Return a time in seconds since 1970, None for 0."""
        return self.count(field) or None

    def integer(self, field: str) -> int:
        """Return a whole number that may be negative."""
        value = self.value(field)
        if value is not None and (type(value) is not int or abs(value) > NO_VALUE):
            raise self.wrong(field, "a whole number of 32 bits")
        return value or 0

    def flag(self, field: str) -> bool:
        """Return whether a field is true."""
        value = self.value(field)
        if value is not None and type(value) is not bool:
            raise self.wrong(field, "true or false")
        return bool(value)

    def text(self, field: str) -> str:
        """Return a text, empty for no value."""
        value = self.value(field)
        if value is not None and not isinstance(value, str):
            raise self.wrong(field, "a text")
        return "" if value is None or value in UNSET else value

    def words(self, field: str) -> tuple[str, ...]:
        """Return the texts of a list, or one text."""
        value = self.value(field)
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return tuple(word for word in value if word not in UNSET)
        text = self.text(field)
        return (text,) if text else ()

    def parsed(self, field: str, parse: Callable[[str], _Value]) -> _Value:
        """Return what `parse` makes of a text; its error names the field."""
        try:
            return parse(self.text(field))
        except InputError as error:
            name = self.dump.name(self.place)
            text = f"{name}: {error.mistakes[0]}"
            raise InputError(text, file=self.dump.path, field=field) from None
