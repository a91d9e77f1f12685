"""Kinds of fields that several models have: lists of integers, labels and texts, and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.fields import LARGEST_FIELD as LARGEST_FIELD
from optsched.fields import (
    Each,
    Fields,
    Kind,
    Limit,
    Of,
    Table,
    WrongValueError,
    first_few,
    plain,
    plain_sequence,
)
from optsched.models.read_only import read_only
from optsched.numbers import counted

HEAD = 16
"""Number of elements up to which Python is faster than numpy."""


class Integers(Kind):
    """A list of integers from `least`, stored as a read-only int64 array or as a tuple."""

    def __init__(
        self,
        least: int,
        *,
        like: str | None = None,
        limit: Limit | None = None,
        as_tuple: bool = False,
    ) -> None:
        self.least, self.like, self.limit, self.as_tuple = least, like, limit, as_tuple
        self.on_file = f"list of integers from {least}"
        self.in_python = "sequence of int" if as_tuple else "array_like of int"
        self.expected = f"expected a list of integers of at least {least}"

    def read(self, value: Any, fields: Fields) -> Any:
        array = read_only(value) if is_table(value, 1, self.least) else self._array(value)
        if self.limit is not None:
            most = self.limit.known(fields)
            if most is not None and len(array) and array.max() > most:
                above = np.flatnonzero(array > most).tolist()
                wrong = [f"[{i}]: {self.limit.refused(array[i], most)}" for i in above]
                raise WrongValueError(inside=first_few("", wrong))
        return tuple(array.tolist()) if self.as_tuple else array

    def _array(self, value: Any) -> NDArray[np.int64]:
        sound = type(value) in (list, tuple) and {*map(type, value)} <= {int}
        if sound and (not value or (min(value) >= self.least and max(value) <= LARGEST_FIELD)):
            return _frozen(np.array(value, np.int64))
        try:
            array = np.asarray(value)
        except ValueError:  # lists of different lengths
            array = np.empty((0, 0))
        if array.ndim != 1:
            raise WrongValueError(self.expected)
        wrong = [
            f"[{place}]: {one!r}; expected an integer {expected}"
            for place, one in enumerate(array.tolist() if array is value else value)
            if (expected := _not_expected(one, self.least))
        ]
        if wrong or (array.size and array.dtype.kind not in "iu"):
            raise WrongValueError(self.expected, inside=first_few("", wrong))
        return _frozen(array.astype(np.int64))

    def json_schema(self) -> dict[str, Any]:
        most = LARGEST_FIELD
        if self.limit is not None and not self.limit.needs:
            most = self.limit.most(Fields())
        item = {"type": "integer", "minimum": self.least, "maximum": most}
        return {"type": "array", "items": item}


class Numbers(Each):
    """Numbers of rows, jobs or nodes, or sizes, each a `noun`; distinct ones are kept in order.

    Parameters
    ----------
    noun : str
        Name of such a number in messages.
    least, first : int
        The smallest number in Python and on file.
    of : str, optional
        The list that is numbered; each number counts once, and they are stored in order.
    within : str, optional
        The field with the largest number on file, in place of `of`.
    largest : int, optional
        Upper limit of that field.
    like : str, optional
        Name of a list, declared before, with the same length.
    distinct : bool
        Whether a number that is there again is a mistake.
    """

    def __init__(
        self,
        noun: str,
        least: int = 0,
        first: int = 1,
        *,
        of: str = "",
        within: str = "",
        largest: int = LARGEST_FIELD,
        like: str | None = None,
        distinct: bool = False,
    ) -> None:
        self.noun, self.least, self.first, self.of, self.within = noun, least, first, of, within
        self.largest, self.distinct = largest, distinct
        numbers = f"{'distinct ' if distinct else ''}numbers of {noun}s, from {first}"
        super().__init__(like, f"list of {numbers if of else f'integers, {first} to `{within}`'}")
        self.in_python = f"sequence of int, from {least}"
        self.items = {"type": "integer", "minimum": first} | (
            {"maximum": largest} if within else {}
        )

    def read(self, value: Any, fields: Fields) -> Any:
        least, most = self._limits(fields)
        if type(value) in (list, tuple) and {*map(type, value)} <= {int} and not self.of:
            shift = self.least - least
            if not value or (min(value) >= least and max(value) <= most):
                return tuple(number + shift for number in value) if shift else tuple(value)
        if self.within and plain_sequence(value) is None:
            raise WrongValueError(f"expected a list of integers from {least} to {most}")
        numbers: tuple[int, ...] = super().read(value, fields)
        first: dict[int, int] = {}
        again = [place for place, n in enumerate(numbers) if first.setdefault(n, place) != place]
        if self.distinct and again:
            every = f"again; expected every {self.noun} once"
            wrong = [f"[{i}]: {numbers[i] - self.least + least} {every}" for i in again]
            raise WrongValueError(inside=first_few("", wrong))
        return tuple(sorted(first)) if self.of else numbers

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        least, most = self._limits(fields)
        to = "" if most == LARGEST_FIELD else f" to {most}"

        def read(number: Any) -> int:
            if type(number) is not int or not least <= number <= most:
                raise WrongValueError(f"{number!r}; expected a {self.noun} from {least}{to}")
            return number - least + self.least

        return read

    def _limits(self, fields: Fields) -> tuple[int, int]:
        """Return the smallest and the largest number where the value comes from."""
        least = self.first if fields.on_file else self.least
        if self.within:
            most = fields.get(self.within, self.largest) - self.first + least
        else:
            count = fields.count(self.of)
            most = LARGEST_FIELD if count is None else count - 1 + least
        return least, most

    def write(self, value: Any) -> Any:
        return [number - self.least + self.first for number in value]

    def json_schema(self) -> dict[str, Any]:
        return super().json_schema() | ({"uniqueItems": True} if self.distinct else {})


class Texts(Kind):
    """Distinct texts, or some of several choices; with `like`, one for each value of a list."""

    in_python = "sequence of str"

    def __init__(self, *choices: str, like: str | None = None) -> None:
        self.choices, self.like = choices, like
        listed = ", ".join(f"`{choice}`" for choice in choices)
        one_of = f", each one of {listed}" if choices else ""
        self.on_file = f"list of {'' if like else 'distinct '}texts{one_of}"
        self.expected = f"expected a {self.on_file}".replace("`", "")

    def read(self, value: Any, fields: Fields) -> Any:
        texts = plain_sequence(value)
        if texts is None or (not self.choices and not {*map(type, texts)} <= {str}):
            raise WrongValueError(self.expected) if self.choices else self.refused(value)
        wrong = [
            f"[{place}]: {text!r}; expected one of {', '.join(self.choices)}"
            for place, text in enumerate(texts)
            if self.choices and not (isinstance(text, str) and text in self.choices)
        ]
        if not wrong and self.like is None and len({*texts}) < len(texts):
            wrong = [f": {list(texts)}; expected each text at most once"]
        if wrong:
            raise WrongValueError(inside=first_few("", wrong))
        return texts

    def json_schema(self) -> dict[str, Any]:
        item = {"enum": list(self.choices)} if self.choices else {"type": "string"}
        schema = {"type": "array", "items": item}
        return schema if self.like else schema | {"uniqueItems": True}


def label(expected: str = "a text or an integer") -> Of:
    """Return the kind of a label."""
    return Of(int, str, expected=expected, on_file="text or integer")


class Labels(Kind):
    """A label, text or integer, for each value of another list; with `as_text`, all as texts."""

    on_file = "list of texts or integers"
    in_python = "sequence"

    def __init__(self, like: str, *, as_text: bool = False) -> None:
        self.like, self.as_text = like, as_text

    def read(self, value: Any, fields: Fields) -> Any:
        labels = plain_sequence(value)
        if labels is None or not {*map(type, labels)} <= {int, str}:
            raise WrongValueError("expected a list of labels, texts or integers")
        return tuple(map(str, labels)) if self.as_text else labels

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": ["integer", "string"]}}


class LabelSets(Each):
    """For each value of `like`, a list of labels in the field `of`, or None for all of them."""

    in_python = "sequence of sequence of str, or None"
    items: Mapping[str, Any] = {
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]
    }

    def __init__(self, of: str, like: str) -> None:
        super().__init__(like, f"list of lists of texts in `{of}`, or null")
        self.of = of

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        known = {*(fields[self.of] or ())} if self.of in fields else None

        def read(row: Any) -> Any:
            if row is None:
                return None
            if not isinstance(row, list | tuple) or not all(isinstance(text, str) for text in row):
                raise WrongValueError(f"{row!r}; expected a list of texts, or null")
            for text in row:
                if known is not None and text not in known:
                    raise WrongValueError(f"{text!r}; expected a text in {self.of}")
            return tuple(row)

        return read


class Amounts(Kind):
    """A row of integers from 0 for each value of `like`, with a column for each value of `of`.

    Without `like` the number of rows is free.
    """

    def __init__(self, of: str, *, like: str | None = None) -> None:
        self.of, self.like = of, like
        self.on_file = f"list of lists of integers from 0, one for each of `{of}`"
        self.in_python = f"array_like of int, shape ({like or 'rows'}, {of})"
        self.expected = f"expected a {self.on_file}"

    def read(self, value: Any, fields: Fields) -> Any:
        columns = fields.count(self.of)
        if is_table(value, 2, 0) and value.shape[1] == columns:
            return read_only(value)
        rows = plain_sequence(value)
        if rows is None:
            raise WrongValueError(self.expected)
        wrong = [
            f"[{place}]{mistake}"
            for place, row in enumerate(rows)
            for mistake in self._mistakes(row, columns)
        ]
        if wrong:
            raise WrongValueError(inside=first_few("", wrong))
        width = len(rows[0]) if columns is None and rows else columns or 0
        return read_only(np.array(rows, dtype=np.int64).reshape(len(rows), width))

    def _mistakes(self, row: Any, columns: int | None) -> list[str]:
        if not isinstance(row, list | tuple):
            return [f": {row!r}; expected a list of integers from 0"]
        if columns is not None and len(row) != columns:
            values = counted(len(row), "value")
            return [f": {values}; expected {columns}, one for each of {self.of}"]
        return [
            f"[{place}]: {amount!r}; expected an integer from 0 to {LARGEST_FIELD}"
            for place, amount in enumerate(map(plain, row))
            if type(amount) is not int or not 0 <= amount <= LARGEST_FIELD
        ][:1]

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": 0, "maximum": LARGEST_FIELD}
        return {"type": "array", "items": {"type": "array", "items": number}}


class FieldChecks(Table):
    """Collects the mistakes in fields of a `kind` of problem; `done` raises them together."""

    def __init__(self, kind: str) -> None:
        super().__init__({})
        self.kind = kind

    def integers(self, name: str, values: Any, *, at_least: int) -> NDArray[np.int64]:
        """Return `values` as a read-only int64 array, shape (n,), and note the mistakes."""
        self.table = {name: values}
        array: NDArray[np.int64] = self.read(name, Integers(at_least), instead=np.empty(0, int))
        return array

    def done(self, field: str | None = None) -> None:
        """Raise all mistakes noted so far.

        Raises
        ------
        InputError
            If any mistake has been noted.
        """
        super().done(field or self.kind)


def same_length(name: str, fields: Fields, other: str) -> list[str]:
    """Return the mistake of two lists that belong together and differ in length."""
    given, wanted = fields.count(name), fields.count(other)
    if given is None or wanted is None or given == wanted:
        return []
    return [f"{name}: {counted(given, 'value')}; expected {wanted}, one for each of {other}"]


def from_one(values: Any) -> tuple[int | None, ...] | None:
    """Return a list of numbers from 1 or null as numbers from 0 or None; None for other values."""
    if not isinstance(values, list):
        return None
    if not all(value is None or (type(value) is int and value >= 1) for value in values):
        return None
    return tuple(None if value is None else value - 1 for value in values)


def is_table(value: Any, dimensions: int, least: int, most: int = LARGEST_FIELD) -> bool:
    """Return whether a value is an int64 array with given dimensions and bounds."""
    if type(value) is not np.ndarray or value.dtype != _INT64 or value.ndim != dimensions:
        return False
    if dimensions == 1 and len(value) <= HEAD:
        numbers = value.tolist()
        return not numbers or (min(numbers) >= least and max(numbers) <= most)
    return not value.size or bool(value.min() >= least and value.max() <= most)


_INT64 = np.dtype(np.int64)


def _frozen(array: NDArray[np.int64]) -> NDArray[np.int64]:
    array.flags.writeable = False
    return array


def _not_expected(value: Any, at_least: int) -> str:
    """Return the expected range of a wrong integer, an empty text if `value` is valid."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < at_least:
        return f"of at least {at_least}"
    return f"of at most {LARGEST_FIELD}" if value > LARGEST_FIELD else ""
