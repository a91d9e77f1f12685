"""Frozen records with arrays, which are read-only and compared by value, and counted notes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.errors import InputError
from optsched.numbers import counted
from optsched.sites.host_lists import host_list

Ints: TypeAlias = NDArray[np.int64]


class Record:
    """Base of dataclasses that are equal if all their fields are, arrays included."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


def whole_numbers(values: ArrayLike, name: str, low: int, high: int, dimensions: int = 1) -> Ints:
    """Return a read-only copy of whole numbers from `low` to `high`."""
    try:
        array = np.array(values)
    except (ValueError, OverflowError):  # lists of several lengths
        array = np.array("")
    if not array.size and array.ndim == dimensions:
        array = array.astype(np.int64)
    if array.ndim != dimensions or array.dtype.kind not in "iu":
        form = "a table" if dimensions == 2 else "a list"
        raise InputError(f"expected {form} of whole numbers", field=name)
    if array.size and not (low <= array.min() and array.max() <= high):
        value = array[(array < low) | (array > high)].flat[0]
        raise InputError(f"{value:,}; expected a whole number from {low:,} to {high:,}", field=name)
    array = array.astype(np.int64)
    array.flags.writeable = False
    return array


def repeated(names: Iterable[str]) -> str | None:
    """Return the first name that is there twice, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    return bool(one == other)


LONGEST_LIST = 60
"""Most characters of a list of names in a note."""


class Notes:
    """What a reader left out or changed, with the number of nodes or other things concerned."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}

    def add(self, what: str) -> None:
        """Note something that concerns everything."""
        self._names[what, ""] = []

    def count(self, names: Iterable[str], what: str, noun: str = "node") -> None:
        """Note what was done to some nodes, or to other things of a noun; nothing for none."""
        if names := list(names):
            self._names.setdefault((what, noun), []).extend(names)

    @property
    def texts(self) -> tuple[str, ...]:
        """The notes, a line each."""
        return tuple(_text(what, noun, names) for (what, noun), names in self._names.items())


def _text(what: str, noun: str, names: list[str]) -> str:
    if not names:
        return what
    listed = host_list(names)
    if len(listed) > LONGEST_LIST:
        listed = f"{names[0]} first"
    return f"{counted(len(names), noun)} ({listed}): {what}"
