"""Kinds of fields, of a problem, a file that a person writes or a record of Slurm.

A kind states its rule once, in `read`, which returns a valid value in its stored form and raises
`WrongValueError` for others, with the place of each mistake within the value. A `Table` reads the
values of an object by kinds, and reports the mistakes of all of them together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, time
from typing import Any, NamedTuple, Self

import numpy as np

from optsched.errors import InputError, UnknownNameError

LARGEST_FIELD = 10**12
"""Largest number in a problem, so that sums of millions of numbers fit into 64 bits."""

SHOWN = 5
"""Number of wrong values of one list in a message."""

REQUIRED: Any = object()
"""In place of the default of a key that has to be there."""


class WrongValueError(Exception):
    """Mistakes in a value, each after its path in the value: ``[3].size: -1; expected ...``."""

    def __init__(self, mistake: str = "", inside: Sequence[str] = ()) -> None:
        self.mistakes = inside or (f": {mistake}",)


class Fields(dict[str, Any]):
    """Fields of an object that have been read, by name, without those that have mistakes.

    A field may depend on fields declared before.

    `given`: the values of all fields as they are given; `on_file`: whether they come from a file,
    where jobs, rows and the like count from 1.
    """

    def __init__(self, given: Mapping[str, Any] | None = None, *, on_file: bool = False) -> None:
        self.given = {} if given is None else given
        self.on_file = on_file

    def count(self, name: str) -> int | None:
        """Return the length of a list, also of one with mistakes; None if there is no list."""
        value: Any = self[name] if name in self else self.given.get(name)
        is_list = type(value) in (tuple, list) or (type(value) is np.ndarray and value.ndim)
        return len(value) if is_list else None


class Kind(ABC):
    """Base class of the kinds of fields.

    Attributes
    ----------
    on_file, in_python : str
        Description of a value on file and in Python.
    expected : str
        Description of the valid values in messages: "expected ...".
    like : str or None
        Name of a list, declared before, with the same length.
    """

    on_file = ""
    in_python = ""
    expected = ""
    like: str | None = None

    @abstractmethod
    def read(self, value: Any, fields: Fields) -> Any:
        """Return a valid value in its stored form.

        Raises
        ------
        WrongValueError
            If there are mistakes; with all of them.
        """

    def write(self, value: Any) -> Any:
        """Return a stored value in the form of a file."""
        if isinstance(value, np.ndarray):
            return value.tolist()
        return list(value) if isinstance(value, tuple) else value

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the value on file; the default allows any value."""
        return {}

    def parts(self) -> Sequence[tuple[str, str]]:
        """Return (symbol, meaning) of the parts of a value, for the model's page."""
        return ()

    def refused(self, value: Any) -> WrongValueError:
        """Return the mistake of a value that is not as expected."""
        return WrongValueError(f"{shown(value)}; {self.expected}")


class Limit(NamedTuple):
    """Upper limit of an integer that depends on fields declared before, those in `needs`.

    `most` returns the limit from all fields read so far; the text for messages has {} for it.
    """

    needs: tuple[str, ...]
    most: Callable[[Fields], int]
    text: str

    def known(self, fields: Fields) -> int | None:
        """Return the limit, None if a field has mistakes that it depends on."""
        try:
            return self.most(fields)
        except KeyError:
            return None

    def refused(self, value: Any, most: int) -> str:
        """Return the mistake of a larger value."""
        return f"{value}; expected at most {self.text.format(most)}"


class Integer(Kind):
    """An integer from `least` to `most`, or without upper limit; described as `expected`."""

    in_python = "int"

    def __init__(
        self,
        least: int = 0,
        most: int | None = None,
        expected: str | None = None,
        limit: Limit | None = None,
    ) -> None:
        self.least, self.limit = least, limit
        self.most = math.inf if most is None else most
        self.bounds = {"minimum": least} | ({} if most is None else {"maximum": most})
        is_open = most is None or most == LARGEST_FIELD
        self.on_file = f"integer from {least}" if is_open else f"integer, {least} to {most:,}"
        to = "" if most is None else f" to {most}"
        self.expected = expected or f"expected an integer from {least}{to}"

    def read(self, value: Any, fields: Fields) -> Any:
        if type(value) is not int:
            value = plain(value)
        if type(value) is not int or not self.least <= value <= self.most:
            raise self.refused(value)
        if self.limit is not None:
            most = self.limit.known(fields)
            if most is not None and value > most:
                raise WrongValueError(self.limit.refused(value, most))
        return value

    def json_schema(self) -> dict[str, Any]:
        return {"type": "integer", **self.bounds}


class Number(Kind):
    """A finite number from `least` to `most`, stored as float; described as `expected`."""

    def __init__(self, least: float, most: float, expected: str) -> None:
        self.least, self.most, self.expected = least, most, f"expected {expected}"

    def read(self, value: Any, fields: Fields) -> Any:
        is_number = isinstance(value, int | float) and type(value) is not bool
        if not is_number or not self.least <= value <= self.most:
            raise self.refused(value)
        return float(value)


class Choice(Kind):
    """One of several texts."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices
        self.on_file = _listed([f"`{choice}`" for choice in choices])
        self.in_python = f"{{{', '.join(map(repr, choices))}}}".replace("'", '"')
        self.expected = f"expected {_listed(choices)}"

    def read(self, value: Any, fields: Fields) -> Any:
        if not isinstance(value, str) or value not in self.choices:
            raise self.refused(value)
        return value

    def json_schema(self) -> dict[str, Any]:
        return {"enum": list(self.choices)}


class Of(Kind):
    """A value of one of the types of JSON, without conversion; described as `expected`."""

    def __init__(self, *types: type[Any], expected: str, on_file: str = "") -> None:
        self.types, self.expected = types, f"expected {expected}"
        self.on_file = on_file or expected
        self.in_python = " or ".join(one.__name__ for one in reversed(types))

    def read(self, value: Any, fields: Fields) -> Any:
        if type(value) not in self.types:
            raise self.refused(value)
        return value

    def json_schema(self) -> dict[str, Any]:
        names = [_JSON[one] for one in self.types]
        return {"type": names[0] if len(names) == 1 else names}


_JSON: dict[type[Any], str] = {bool: "boolean", int: "integer", str: "string"}


def flag() -> Of:
    """Return the kind of a truth value."""
    return Of(bool, expected="true or false")


class Parsed(Kind):
    """A value that a function converts, and refuses by an error; described as `expected`."""

    def __init__(self, convert: Callable[[Any], Any], expected: str) -> None:
        self.convert, self.expected = convert, f"expected {expected}"

    def read(self, value: Any, fields: Fields) -> Any:
        try:
            return self.convert(value)
        except InputError as error:
            raise WrongValueError(error.mistakes[0]) from None
        except (TypeError, ValueError):
            raise self.refused(value) from None


class Each(Kind):
    """Base class of lists whose values are read one by one, by `reader`."""

    items: Mapping[str, Any] = {}  # JSON Schema of a value of the list

    def __init__(self, like: str | None = None, on_file: str = "") -> None:
        self.like = like or self.like
        self.on_file = on_file or self.on_file
        self.expected = self.expected or f"expected a {self.on_file}"

    @abstractmethod
    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        """Return the function that reads a value of the list, with the errors of `read`."""

    def read(self, value: Any, fields: Fields) -> Any:
        values = plain_sequence(value)
        if values is None:
            raise WrongValueError(self.expected)
        read, stored = self.reader(fields), []
        wrong: list[str] = []
        for place, one in enumerate(values):
            try:
                stored.append(read(one))
            except WrongValueError as error:
                wrong += [f"[{place}]{mistake}" for mistake in error.mistakes]
        if wrong:
            raise WrongValueError(inside=first_few("", wrong))
        return tuple(stored)

    def write(self, value: Any) -> Any:
        return [list(one) if isinstance(one, tuple) else one for one in value]

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": dict(self.items)}


class Table:
    """The values of an object, read by kinds, and the mistakes found so far.

    `table`: the object: keys with their values. Anything else counts as an object without keys.
    `place`: prefix of the keys in messages, ``classes[1].`` for instance. `mistakes`: list that the
    mistakes are added to; a new one by default.
    """

    def __init__(self, table: Any, place: str = "", mistakes: list[str] | None = None) -> None:
        self.table: Mapping[str, Any] = table if isinstance(table, Mapping) else {}
        self.place = place
        self.mistakes: list[str] = [] if mistakes is None else mistakes
        self.fields = Fields(self.table, on_file=True)

    def known(self, keys: Iterable[str]) -> None:
        """Note every key that is not among `keys`."""
        keys = list(keys)
        for key in self.table:
            if key not in keys:
                self.note(key, str(UnknownNameError("key", key, keys)))

    def note(self, key: str, mistake: str) -> None:
        """Note a mistake in the value of `key`."""
        self.mistakes.append(f"{self.place}{key}: {mistake}")

    def read(self, key: str, kind: Kind, default: Any = REQUIRED, instead: Any = None) -> Any:
        """Return the value of a key in its stored form, the default or, if wrong, `instead`."""
        if key not in self.table:
            if default is REQUIRED:
                self.note(key, f"missing; {kind.expected}")
                return instead
            return default
        try:
            self.fields[key] = value = kind.read(self.table[key], self.fields)
        except WrongValueError as error:
            found = (f"{self.place}{key}{mistake}" for mistake in error.mistakes)
            self.mistakes += [mistake.removeprefix(": ") for mistake in found]
            return instead
        return value

    def part(self, key: str, expected: str = "a table") -> Self | None:
        """Return the object that a key holds; None where there is a mistake."""
        table = self.read(key, Of(dict, expected=expected))
        return None if table is None else type(self)(table, f"{self.place}{key}.", self.mistakes)

    def parts(self, key: str, *, least: int = 0) -> list[Self]:
        """Return the `least` or more objects in the list of a key, from 1 in messages."""
        value = self.table.get(key, [])
        is_list = isinstance(value, list) and all(isinstance(one, Mapping) for one in value)
        if not is_list or len(value) < least:
            tables = "at least one table" if least else "tables"
            self.note(key, f"expected {tables}, each under the heading [[{key}]]")
            return []
        return [
            type(self)(one, f"{self.place}{key}[{number}].", self.mistakes)
            for number, one in enumerate(value, 1)
        ]

    def done(self, field: str | None = None) -> None:
        """Report the mistakes noted so far, in the object called `field`."""
        if self.mistakes:
            raise InputError(*self.mistakes, field=field)


_PLAIN = {bool, dict, float, int, list, str, tuple, type(None)}


def first_few(name: str, wrong: Sequence[str], noun: str = "values") -> list[str]:
    """Return the first few mistakes in a list, and the number of further ones."""
    more = len(wrong) - SHOWN
    return [*wrong[:SHOWN], *([f"{name}: {more} more such {noun}"] if more > 0 else [])]


def plain(value: Any) -> Any:
    """Return an array or integer of numpy as lists and integers of Python; others unchanged."""
    return value.tolist() if isinstance(value, np.ndarray | np.integer) else value


def plain_sequence(value: Any) -> tuple[Any, ...] | None:
    """Return a list as a tuple with integers of Python, None if the value is not a list."""
    if type(value) not in (list, tuple):
        value = plain(value)
        if not isinstance(value, list | tuple):
            return None
    return tuple(value) if {*map(type, value)} <= _PLAIN else tuple(map(plain, value))


def shown(value: Any) -> str:
    """Return a value for a message, its beginning if it is long."""
    text = value.isoformat() if isinstance(value, date | time) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _listed(words: Sequence[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
