"""The kinds of fields that say what claims hold of which nodes, and what they take elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from optsched.fields import LARGEST_FIELD, Each, Fields, WrongValueError


class AmountRows(Each):
    """For each value of `like`, rows of a number, and an amount of each of `of`.

    The number is a node of `nodes`, from 0, and no node is in two rows of a value; without `nodes`
    it is a number of chunks, from 1.
    """

    in_python = "sequence of sequences of (int, ...)"
    items: Mapping[str, Any] = {
        "type": "array",
        "items": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": LARGEST_FIELD},
            "minItems": 1,
        },
    }

    def __init__(self, of: str, like: str, nodes: str = "") -> None:
        self.of, self.nodes = of, nodes
        row, numbers = ("node", "nodes from 0") if nodes else ("chunks", "a number from 1")
        amounts = f"an amount for each of `{of}`"
        super().__init__(like, f"list of lists of `[{row}, amount, ...]`: {numbers}, {amounts}")

    def reader(self, fields: Fields) -> Callable[[Any], Any]:
        columns, nodes = fields.count(self.of), fields.count(self.nodes)
        number = "node" if self.nodes else "number of chunks"
        least = 0 if self.nodes else 1
        most = LARGEST_FIELD if nodes is None else nodes - 1

        def mistake(row: Any) -> str:
            if not isinstance(row, list | tuple) or {*map(type, row)} != {int}:
                columns_too = "amounts" if columns is None else f"{columns} amounts"
                return f"a {number} and {columns_too}"
            if columns is not None and len(row) != 1 + columns:
                return f"a {number} and {columns} amounts"
            if not least <= row[0] <= most:
                return f"a {number} from {least} to {most}"
            if min(row) < 0 or max(row) > LARGEST_FIELD:
                return f"amounts from 0 to {LARGEST_FIELD}"
            return ""

        def read(rows: Any) -> tuple[Any, ...]:
            if not isinstance(rows, list | tuple):
                raise WrongValueError(f"{rows!r}; expected a list of rows")
            for row in rows:
                if wrong := mistake(row):
                    raise WrongValueError(f"{row!r}; expected {wrong}")
            if self.nodes and len({row[0] for row in rows}) < len(rows):
                raise WrongValueError("expected each node at most once")
            return tuple(map(tuple, rows))

        return read

    def write(self, value: Any) -> Any:
        return [[list(row) for row in rows] for rows in value]
