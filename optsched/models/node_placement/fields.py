"""Kinds of fields of a node placement: shares of devices, and groups of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from optsched.fields import Each, Fields, WrongValueError

WHOLE = 1000
"""A whole device, in thousandths.

Functions with ``@kernel`` hold it, so that their cache covers this file.
"""


class Devices(Each):
    """For each value of `like`, the free thousandths of each device."""

    in_python = "sequence of sequences of int"
    on_file = f"list of lists of integers, 0 to {WHOLE}"
    items: Mapping[str, Any] = {
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": WHOLE},
    }

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        def read(row: Any) -> tuple[int, ...]:
            shares = row if isinstance(row, list | tuple) else [None]
            if not all(type(share) is int and 0 <= share <= WHOLE for share in shares):
                raise WrongValueError(f"{row!r}; expected a list of integers from 0 to {WHOLE}")
            return tuple(shares)

        return read


class GroupRows(Each):
    """For each value of `like`, a row with the group of each value of `of`, a text."""

    in_python = "sequence of sequences of str"
    items: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}

    def __init__(self, of: str, like: str) -> None:
        super().__init__(like, f"list of lists of texts, one for each of `{like}`")
        self.of = of

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        length = fields.count(self.of)

        def read(row: Any) -> tuple[str, ...]:
            groups = row if isinstance(row, list | tuple) else [None]
            if not all(isinstance(text, str) for text in groups):
                raise WrongValueError("expected a list of texts")
            if length is not None and len(groups) != length:
                raise WrongValueError(
                    f"{len(row)} groups; expected {length}, one for each of {self.of}"
                )
            return tuple(groups)

        return read
