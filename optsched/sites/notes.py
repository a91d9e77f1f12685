"""Notes on what a reader leaves out or changes, counted."""

from __future__ import annotations

from collections.abc import Iterable

from optsched.numbers import counted
from optsched.sites.host_lists import host_list

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
