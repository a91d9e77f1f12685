"""The kinds of fields that say what claims hold of which nodes, and what they take elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from optsched.models.fields import LARGEST_FIELD, plain_sequence
from optsched.models.schema import DOUBTFUL, Fields, Kind, Reading


class AmountRows(Kind):
    """For each value of `like`, rows of a number and an amount of each of `of`."""

    in_python = "sequence of sequences of (int, ...)"
    needs: frozenset[str]
    number = ""

    def __init__(self, of: str, like: str) -> None:
        self.of = of
        self.claims = self.like = like
        self.needs = frozenset((of,))

    @abstractmethod
    def limits(self, fields: Fields) -> tuple[int, int]:
        """Return the least and the greatest number in front of a row."""

    @abstractmethod
    def mistake(self, rows: Sequence[Sequence[int]]) -> str:
        """Return the mistake in rows that are correct each on its own; empty if there is none."""

    def accept(self, value: Any, fields: Fields) -> Any:
        claims = plain_sequence(value)
        if claims is None or len(claims) != len(fields[self.claims]):
            return DOUBTFUL
        if any(self._mistake(rows, fields) for rows in claims):
            return DOUBTFUL
        return tuple(tuple(map(tuple, rows)) for rows in claims)

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        claims = plain_sequence(value)
        if claims is None:
            reading.wrong(name, f"expected a {self.on_file}")
            return self.blank
        if self.needs & reading.unread:
            reading.unread.add(name)
            return self.blank
        wrong = [
            f"{name}[{place}]: {mistake}"
            for place, rows in enumerate(claims)
            if (mistake := self._mistake(rows, reading.fields))
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

    def _mistake(self, rows: Any, fields: Fields) -> str:
        """Return the mistake in the rows of a claim, an empty text if there is none."""
        if not isinstance(rows, list | tuple):
            return f"{rows!r}; expected a list of rows"
        columns = len(fields[self.of])
        for row in rows:
            if mistake := self._row_mistake(row, columns, *self.limits(fields)):
                return f"{row!r}; expected {mistake}"
        return self.mistake(rows)

    def _row_mistake(self, row: Any, columns: int, least: int, most: int) -> str:
        """Return the expected form of a wrong row, an empty text for a valid one."""
        numbers: Sequence[Any] = row if isinstance(row, list | tuple) else ()
        if len(numbers) != 1 + columns or not {*map(type, numbers)} <= {int}:
            return f"a {self.number} and {columns} amounts"
        if not least <= numbers[0] <= most:
            return f"a {self.number} from {least} to {most}"
        if min(numbers) < 0 or max(numbers) > LARGEST_FIELD:
            return f"amounts from 0 to {LARGEST_FIELD}"
        return ""


class Holdings(AmountRows):
    """For each value of `like`, rows of a node of `nodes`, from 0, and an amount of each of `of`.

    No node is in two rows of a value.
    """

    number = "node"

    def __init__(self, nodes: str, of: str, like: str) -> None:
        super().__init__(of, like)
        self.nodes = nodes
        self.needs |= {nodes}
        self.on_file = (
            f"list of lists of `[node, amount, ...]`: nodes from 0, an amount for each of `{of}`"
        )

    def limits(self, fields: Fields) -> tuple[int, int]:
        return 0, len(fields[self.nodes]) - 1

    def mistake(self, rows: Sequence[Sequence[int]]) -> str:
        alike = len({row[0] for row in rows}) < len(rows)
        return "expected each node at most once" if alike else ""


class Chunks(AmountRows):
    """For each value of `like`, rows of a number of chunks and what each needs of each of `of`."""

    number = "number of chunks"

    def __init__(self, of: str, like: str) -> None:
        super().__init__(of, like)
        self.on_file = (
            f"list of lists of `[chunks, amount, ...]`: a number from 1, an amount for each of "
            f"`{of}`"
        )

    def limits(self, fields: Fields) -> tuple[int, int]:
        return 1, LARGEST_FIELD

    def mistake(self, rows: Sequence[Sequence[int]]) -> str:
        return ""
