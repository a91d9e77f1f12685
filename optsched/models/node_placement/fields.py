"""Kinds of fields of a node placement: shares of devices, and groups of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from optsched.errors import UnknownNameError
from optsched.fields import (
    LARGEST_FIELD,
    Each,
    Fields,
    Kind,
    WrongValueError,
    first_few,
    plain_sequence,
)  # fmt: skip

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


class RuleColumns(Kind):
    """Columns that rules read: of jobs, of nodes, and of running jobs with their nodes."""

    on_file = "object of `jobs`, `nodes`, `running`: for each an object of lists"
    in_python = "mapping of str to mapping of str to sequence"
    expected = "expected objects of lists: jobs, nodes, running"

    def read(self, value: Any, fields: Fields) -> Any:
        parts = value.values() if isinstance(value, Mapping) else [None]
        if not all(isinstance(of, Mapping) for of in parts):
            raise self.refused(value)
        running = value.get("running", {})
        on = plain_sequence(running.get("nodes", ())) or ()
        nodes = fields.count("free") or 0
        known = {"jobs": fields.count("chunks"), "nodes": nodes, "running": len(on)}
        wrong = [] if not running or "nodes" in running else [".running: expected nodes"]
        for job, given in enumerate(on):
            at = plain_sequence(given)
            if not at or not all(type(n) is int and 0 <= n < nodes for n in at):
                expected = f"expected nodes from 0 to {nodes - 1}"
                wrong.append(f".running.nodes[{job}]: {given!r}; {expected}")
        stored: dict[str, dict[str, Any]] = {}
        for of, columns in value.items():
            if of not in known:
                wrong.append(f": {UnknownNameError('part', of, known)}")
                continue
            stored[of] = {}
            for column, values in columns.items():
                row = plain_sequence(values)
                if row is None or len(row) != known[of]:
                    wrong.append(f".{of}.{column}: expected a list of {known[of]} values")
                elif (of, column) == ("running", "nodes"):
                    stored[of][column] = tuple(map(plain_sequence, row))
                elif not all(type(one) is str or _is_amount(one) for one in row):
                    wrong.append(f".{of}.{column}: expected texts or integers up to 10^12")
                else:
                    stored[of][column] = row
        if wrong:
            raise WrongValueError(inside=first_few("", wrong))
        return stored

    def write(self, value: Any) -> Any:
        return {
            of: {name: [*map(super(RuleColumns, self).write, one)] for name, one in columns.items()}
            for of, columns in value.items()
        }

    def json_schema(self) -> dict[str, Any]:
        columns = {"type": "object", "additionalProperties": {"type": "array"}}
        parts = dict.fromkeys(("jobs", "nodes", "running"), columns)
        return {"type": "object", "properties": parts}


def _is_amount(value: Any) -> bool:
    return type(value) is int and abs(value) <= LARGEST_FIELD
