"""Checks of the fields of a problem, which report all mistakes at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.numbers import counted

SHOWN = 5
"""Number of wrong values of one list in a message."""

LARGEST_FIELD = 10**12
"""Largest number in a problem, so that sums of millions of numbers fit into 64 bits."""


class FieldChecks:
    """Collects the mistakes in fields; `done` raises them together.

    Parameters
    ----------
    kind : str
        The kind of problem, for messages.

    Attributes
    ----------
    mistakes : list of str
        The mistakes so far.
    unread : set of str
        Fields that could not be read, and that lists are not compared with.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.mistakes: list[str] = []
        self.unread: set[str] = set()

    def integers(self, name: str, values: Any, *, at_least: int) -> NDArray[np.int64]:
        """Return `values` as a read-only int64 array, shape (n,), and note the mistakes."""
        try:
            array = np.asarray(values)
        except ValueError:
            array = np.empty((0, 0))
        if array.ndim != 1:
            self.mistakes.append(f"{name}: expected a list of integers of at least {at_least}")
            self.unread.add(name)
            return np.empty(0, dtype=np.int64)
        if array.size == 0:
            array = array.astype(np.int64)
        if (
            array.dtype.kind not in "iu"
            or (array.size and (array.min() < at_least or array.max() > LARGEST_FIELD))
            or (array is not values and bool in map(type, values))
        ):
            wrong = [
                f"{name}[{place}]: {value!r}; expected an integer {expected}"
                for place, value in enumerate(array.tolist() if array is values else values)
                if (expected := _not_expected(value, at_least))
            ]
            self.note(name, wrong)
            return np.zeros(len(array), dtype=np.int64)
        array = array.astype(np.int64)
        array.flags.writeable = False
        return array

    def same_length(self, name: str, values: Any, other: str, others: Any) -> None:
        """Note when two lists that belong together differ in length."""
        if len(values) != len(others) and other not in self.unread:
            given = counted(len(values), "value")
            self.mistakes.append(
                f"{name}: {given}; expected {len(others)}, one for each of {other}"
            )

    def note(self, name: str, wrong: Sequence[str]) -> None:
        """Note the first few mistakes in a list, and the number of further ones."""
        self.mistakes += first_few(name, wrong)

    def done(self) -> None:
        """Raise all mistakes noted so far.

        Raises
        ------
        InputError
            If any mistake has been noted.
        """
        if self.mistakes:
            raise InputError(*self.mistakes, field=self.kind)


def first_few(name: str, wrong: Sequence[str], noun: str = "values") -> list[str]:
    """Return the first few mistakes in a list, and the number of further ones."""
    more = len(wrong) - SHOWN
    return [*wrong[:SHOWN], *([f"{name}: {more} more such {noun}"] if more > 0 else [])]


def _not_expected(value: Any, at_least: int) -> str:
    """Return the expected range of a wrong integer, an empty text if `value` is valid."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < at_least:
        return f"of at least {at_least}"
    return f"of at most {LARGEST_FIELD}" if value > LARGEST_FIELD else ""


def plain(value: Any) -> Any:
    """Return an array or integer of numpy as lists and integers of Python; others unchanged."""
    return value.tolist() if isinstance(value, np.ndarray | np.integer) else value


def plain_sequence(value: Any) -> tuple[Any, ...] | None:
    """Return a list as a tuple with integers of Python, None if the value is not a list."""
    value = plain(value)
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else None


def from_one(values: Any) -> tuple[int | None, ...] | None:
    """Return a list of numbers from 1 or null as numbers from 0 or None; None for other values."""
    if not isinstance(values, list):
        return None
    if not all(value is None or (type(value) is int and value >= 1) for value in values):
        return None
    return tuple(None if value is None else value - 1 for value in values)
