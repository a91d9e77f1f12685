"""Reader of the values of a workload spec that collects all mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optsched.fields import REQUIRED, Integer, Number, Of, Parsed, Table


class SpecTable(Table):
    """Table of a workload spec.

    A method that reads a key notes a mistake in its value, and returns a valid value in its place,
    so that reading goes on. `done` raises all mistakes at once.
    """

    def whole(self, key: str, *, lowest: int = 1, expected: str = "a whole number") -> int:
        """Return a whole number of at least `lowest`; `lowest` where there is a mistake."""
        kind = Integer(lowest, expected=f"expected {expected} from {lowest}")
        return int(self.read(key, kind, instead=lowest))

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
        absent = REQUIRED if default is None else default
        return float(self.read(key, Number(low, high, expected), absent, high))

    def text(self, key: str) -> str:
        """Return a text; an empty one if the key is missing."""
        return str(self.read(key, Of(str, expected="a text"), "", ""))

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

        def checked(value: Any) -> tuple[Any, ...]:
            if not (isinstance(value, list) and is_valid(value)):
                raise ValueError
            return tuple(value)

        found: tuple[Any, ...] = self.read(key, Parsed(checked, expected), default, ())
        return found

    def parts(self, key: str, *, least: int = 1) -> list[SpecTable]:
        """Return the tables that stand under the headings ``[[key]]``, at least one."""
        return super().parts(key, least=least)
