"""Fields of a record that Slurm wrote as JSON, checked as they are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, TypeVar

from optsched.errors import InputError
from optsched.fields import Fields, Integer, Kind, Of, Parsed, WrongValueError, shown
from optsched.sites.slurm_json import UNSET, Dump

NO_VALUE = 2**32 - 2
"""The number of 32 bits that stands for no value; that for infinity is one more."""

NO_SHORT_VALUE = 32766
"""The same for counts of 16 bits."""

_Value = TypeVar("_Value")


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        if value.get("infinite") is True:
            return math.inf
        if value.get("set") is not True:
            return None
        value = value.get("number")
        if value is None:
            raise InputError("None; expected a number")
    if value is None or value in UNSET:
        return None
    if value in ("UNLIMITED", "INFINITE"):
        return math.inf
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError
    if value >= NO_VALUE:
        if value in (2**32 - 1, 2**64 - 1):
            return math.inf
        if value == NO_VALUE or 2**63 <= value <= 2**64:  # of 64 bits, or with a flag
            return None
        raise InputError(f"{value}; expected a number from 0 below 2^32")
    return float(value)


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(word for word in value if word not in UNSET)
    if value is not None and not isinstance(value, str):
        raise ValueError
    return () if value is None or value in UNSET else (value,)


_NOTHING = Fields()
_NUMBER = Parsed(_number, "a number from 0")
_WORDS = Parsed(_words, "a text")
_TEXT = Of(str, NoneType, expected="a text")
_FLAG = Of(bool, NoneType, expected="true or false")
_INTEGER = Integer(-NO_VALUE, NO_VALUE, "expected a whole number of 32 bits")


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
        return self._error(field, f": {shown(self.value(field))}; expected {expected}")

    def number(self, field: str) -> float | None:
        """Return a number from 0, infinity, or None for no value."""
        number: float | None = self._read(field, _NUMBER)
        return number

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
        return 0 if self.value(field) is None else int(self._read(field, _INTEGER))

    def flag(self, field: str) -> bool:
        """Return whether a field is true."""
        return bool(self._read(field, _FLAG))

    def text(self, field: str) -> str:
        """Return a text, empty for no value."""
        text = self._read(field, _TEXT)
        return "" if text is None or text in UNSET else str(text)

    def words(self, field: str) -> tuple[str, ...]:
        """Return the texts of a list, or one text."""
        words: tuple[str, ...] = self._read(field, _WORDS)
        return words

    def parsed(self, field: str, parse: Callable[[str], _Value]) -> _Value:
        """Return what `parse` makes of a text; its error names the field."""
        try:
            return parse(self.text(field))
        except InputError as error:
            raise self._error(field, f": {error.mistakes[0]}") from None

    def _read(self, field: str, kind: Kind) -> Any:
        try:
            return kind.read(self.value(field), _NOTHING)
        except WrongValueError as error:
            raise self._error(field, error.mistakes[0]) from None

    def _error(self, field: str, mistake: str) -> InputError:
        name = self.dump.name(self.place)
        return InputError(f"{name}{mistake}", file=self.dump.path, field=field)
