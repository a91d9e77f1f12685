"""The kind of field that says what claims hold of which nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optsched.models.fields import LARGEST_FIELD, plain_sequence
from optsched.models.schema import DOUBTFUL, Fields, Kind, Reading


class Holdings(Kind):
    """For each value of `like`, rows of a node of `nodes`, from 0, and an amount of each of `of`.

    No node is in two rows of a value.
    """

    in_python = "sequence of sequences of (int, ...)"

    def __init__(self, nodes: str, of: str, like: str) -> None:
        self.nodes, self.of = nodes, of
        self.claims = self.like = like
        self.on_file = (
            f"list of lists of `[node, amount, ...]`: nodes from 0, an amount for each of `{of}`"
        )

    def accept(self, value: Any, fields: Fields) -> Any:
        claims = plain_sequence(value)
        if claims is None or len(claims) != len(fields[self.claims]):
            return DOUBTFUL
        nodes, columns = len(fields[self.nodes]), len(fields[self.of])
        if any(_mistake(rows, nodes, columns) for rows in claims):
            return DOUBTFUL
        return tuple(tuple(map(tuple, rows)) for rows in claims)

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        claims = plain_sequence(value)
        if claims is None:
            reading.wrong(name, f"expected a {self.on_file}")
            return self.blank
        if {self.nodes, self.of} & reading.unread:
            reading.unread.add(name)
            return self.blank
        nodes, columns = len(reading.fields[self.nodes]), len(reading.fields[self.of])
        wrong = [
            f"{name}[{place}]: {mistake}"
            for place, rows in enumerate(claims)
            if (mistake := _mistake(rows, nodes, columns))
        ]
        if wrong:
            reading.note(name, wrong)
            reading.unread.add(name)
            return self.blank
        return tuple(tuple(map(tuple, rows)) for rows in claims)

    def write(self, value: Any) -> Any:
        return [[list(row) for row in rows] for rows in value]

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": 0, "maximum": LARGEST_FIELD}
        row = {"type": "array", "items": number, "minItems": 1}
        return {"type": "array", "items": {"type": "array", "items": row}}


def _mistake(rows: Any, nodes: int, columns: int) -> str:
    """Return the mistake in the rows of a claim, an empty text if there is none."""
    if not isinstance(rows, list | tuple):
        return f"{rows!r}; expected a list of rows"
    for row in rows:
        if mistake := _row_mistake(row, nodes, columns):
            return f"{row!r}; expected {mistake}"
    if len({row[0] for row in rows}) < len(rows):
        return "expected each node at most once"
    return ""


def _row_mistake(row: Any, nodes: int, columns: int) -> str:
    """Return what was expected of a row, an empty text if it is so."""
    numbers: Sequence[Any] = row if isinstance(row, list | tuple) else ()
    if len(numbers) != 1 + columns or not {*map(type, numbers)} <= {int}:
        return f"a node and {columns} amounts"
    if not 0 <= numbers[0] < nodes:
        return f"a node from 0 to {nodes - 1}"
    if min(numbers) < 0 or max(numbers) > LARGEST_FIELD:
        return f"amounts from 0 to {LARGEST_FIELD}"
    return ""
