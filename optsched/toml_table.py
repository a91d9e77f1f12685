"""Tables of a TOML file: their mistakes, all reported at once, and changes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from optsched.errors import InputError, UnknownNameError


class TomlTable:
    """Table of a file, and the mistakes found so far in the whole file.

    Parameters
    ----------
    table : mapping
        The table as TOML gives it.
    place : str
        Prefix of the keys in messages, ``classes[1].`` for instance.
    mistakes : list of str, optional
        List that the mistakes are added to; a new one by default.
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

    def done(self) -> None:
        """Report the mistakes noted so far.

        Raises
        ------
        InputError
            If there are any; with all of them.
        """
        if self.mistakes:
            raise InputError(*self.mistakes)


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with changes, which go into its tables."""
    found = dict(table)
    for key, value in changes.items():
        inner = found.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        found[key] = merged(inner, value) if both else value  # type: ignore[arg-type]
    return found
