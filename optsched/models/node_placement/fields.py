"""Kinds of fields of a node placement: tables of resources, shares of devices, sets of nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optsched.errors import UnknownNameError
from optsched.models.fields import LARGEST_FIELD, plain, plain_sequence
from optsched.models.read_only import read_only
from optsched.models.schema import DOUBTFUL, Fields, Kind, Reading, is_table
from optsched.numbers import counted

WHOLE = 1000
"""A whole device, in thousandths.

Functions with ``@kernel`` hold it, so that their cache covers this file.
"""


class Names(Kind):
    """Distinct texts."""

    on_file = "list of distinct texts"
    in_python = "sequence of str"
    expected = "expected a list of distinct texts"

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) not in (list, tuple) or not {*map(type, value)} <= {str}:
            return DOUBTFUL
        return tuple(value) if len({*value}) == len(value) else DOUBTFUL

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


class Amounts(Kind):
    """A row of integers from 0 for each value of `like`, with a column for each value of `of`.

    Without `like` the number of rows is free.
    """

    def __init__(self, of: str, *, like: str | None = None) -> None:
        self.of, self.like = of, like
        self.on_file = f"list of lists of integers from 0, one for each of `{of}`"
        self.in_python = f"array_like of int, shape ({like or 'rows'}, {of})"
        self.blank = np.empty((0, 0), np.int64)

    def accept(self, value: Any, fields: Fields) -> Any:
        if not is_table(value, 2, 0) or value.shape[1] != len(fields[self.of]):
            return DOUBTFUL
        if self.like is not None and len(value) != len(fields[self.like]):
            return DOUBTFUL
        return read_only(value)

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        rows = plain_sequence(value)
        if rows is None:
            reading.wrong(name, f"expected a {self.on_file}")
            return self.blank
        columns = None if self.of in reading.unread else len(reading.fields[self.of])
        wrong = [
            f"{name}[{place}]{mistake}"
            for place, row in enumerate(rows)
            for mistake in _row_mistakes(row, columns, self.of)
        ]
        if wrong or columns is None:
            reading.note(name, wrong)
            reading.unread.add(name)
            return self.blank
        return read_only(np.array(rows, dtype=np.int64).reshape(len(rows), columns))

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": 0, "maximum": LARGEST_FIELD}
        return {"type": "array", "items": {"type": "array", "items": number}}


class _Rows(Kind):
    """For each value of `like`, a list, or None where that may be."""

    like: str

    @abstractmethod
    def check(self, fields: Fields, unread: set[str]) -> Callable[[Any], str]:
        """Return the function of a row that returns its mistake, an empty text for none."""

    def accept(self, value: Any, fields: Fields) -> Any:
        rows = plain_sequence(value)
        if rows is None or len(rows) != len(fields[self.like]):
            return DOUBTFUL
        return DOUBTFUL if any(map(self.check(fields, set()), rows)) else _stored(rows)

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        rows = plain_sequence(value)
        if rows is None:
            reading.wrong(name, f"expected a {self.on_file}")
            return self.blank
        check = self.check(reading.fields, reading.unread)
        wrong = [
            f"{name}[{place}]{mistake}" for place, row in enumerate(rows) if (mistake := check(row))
        ]
        if wrong:
            reading.note(name, wrong)
            reading.unread.add(name)
            return self.blank
        return _stored(rows)

    def write(self, value: Any) -> Any:
        return [None if row is None else list(row) for row in value]


def _stored(rows: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(None if row is None else tuple(row) for row in rows)


class Devices(_Rows):
    """For each value of `like`, the free thousandths of each device."""

    in_python = "sequence of sequences of int"

    def __init__(self, like: str) -> None:
        self.like = like
        self.on_file = f"list of lists of integers, 0 to {WHOLE}"

    def check(self, fields: Fields, unread: set[str]) -> Callable[[Any], str]:
        return _devices_mistake

    def json_schema(self) -> dict[str, Any]:
        share = {"type": "integer", "minimum": 0, "maximum": WHOLE}
        return {"type": "array", "items": {"type": "array", "items": share}}


class LabelSets(_Rows):
    """For each value of `like`, a list of labels in the field `of`, or None for all of them."""

    in_python = "sequence of sequence of str, or None"

    def __init__(self, of: str, like: str) -> None:
        self.of, self.like = of, like
        self.on_file = f"list of lists of texts in `{of}`, or null"

    def check(self, fields: Fields, unread: set[str]) -> Callable[[Any], str]:
        if self.of in unread:
            return lambda row: ""
        known = {*(fields[self.of] or ())}
        return lambda row: _labels_mistake(row, known, self.of)

    def json_schema(self) -> dict[str, Any]:
        texts = {"type": "array", "items": {"type": "string"}}
        return {"type": "array", "items": {"anyOf": [texts, {"type": "null"}]}}


class GroupRows(_Rows):
    """For each value of `like`, a row with the group of each value of `of`, a text."""

    in_python = "sequence of sequences of str"

    def __init__(self, of: str, like: str) -> None:
        self.of, self.like = of, like
        self.on_file = f"list of lists of texts, one for each of `{like}`"

    def check(self, fields: Fields, unread: set[str]) -> Callable[[Any], str]:
        length = None if self.of in unread else len(fields[self.of])
        return lambda row: _groups_mistake(row, length, self.of)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}


class Choices(Kind):
    """One of several texts for each value of `like`; without `like`, a list of distinct ones."""

    def __init__(self, *choices: str, like: str | None = None) -> None:
        self.choices, self.like = choices, like
        listed = ", ".join(f"`{choice}`" for choice in choices)
        self.on_file = f"list of {'' if like else 'distinct '}texts, each one of {listed}"
        self.in_python = "sequence of str"
        self.expected = f"expected one of {', '.join(choices)}"

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) not in (list, tuple) or not all(_is_in(v, self.choices) for v in value):
            return DOUBTFUL
        if self.like is None and len({*value}) < len(value):
            return DOUBTFUL
        if self.like is not None and len(value) != len(fields[self.like]):
            return DOUBTFUL
        return tuple(value)

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        given = plain_sequence(value)
        if given is None:
            reading.wrong(name, f"expected a list of texts, each one of {', '.join(self.choices)}")
            return self.blank
        wrong = [
            f"{name}[{place}]: {text!r}; {self.expected}"
            for place, text in enumerate(given)
            if not _is_in(text, self.choices)
        ]
        if not wrong and self.like is None and len({*given}) < len(given):
            wrong = [f"{name}: {list(given)}; expected each text at most once"]
        reading.note(name, wrong)
        return given

    def json_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "array", "items": {"enum": list(self.choices)}}
        return schema if self.like else schema | {"uniqueItems": True}


class NodeNumbers(Kind):
    """Numbers of rows of the field `of`, from 0; distinct, in ascending order."""

    on_file = "list of numbers of nodes, from 0"
    in_python = "sequence of int"

    def __init__(self, of: str) -> None:
        self.of = of

    def accept(self, value: Any, fields: Fields) -> Any:
        if type(value) not in (list, tuple) or not {*map(type, value)} <= {int}:
            return DOUBTFUL
        if value and not (min(value) >= 0 and max(value) < len(fields[self.of])):
            return DOUBTFUL
        return tuple(sorted({*value}))

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        given = plain_sequence(value)
        if given is None or not {*map(type, given)} <= {int}:
            reading.wrong(name, f"expected a {self.on_file}")
            return self.blank
        most, known = LARGEST_FIELD, ""
        if self.of not in reading.unread:
            most = len(reading.fields[self.of]) - 1
            known = f" to {most}"
        wrong = [
            f"{name}[{place}]: {node}; expected a node from 0{known}"
            for place, node in enumerate(given)
            if not 0 <= node <= most
        ]
        reading.note(name, wrong)
        return tuple(sorted({*given}))

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer", "minimum": 0}}


class RuleColumns(Kind):
    """Columns that rules read: of jobs, of nodes, and of running jobs with their nodes."""

    on_file = "object of `jobs`, `nodes`, `running`: for each an object of lists"
    in_python = "mapping of str to mapping of str to sequence"
    expected = "expected objects of lists: jobs, nodes, running"

    def accept(self, value: Any, fields: Fields) -> Any:
        return DOUBTFUL  # each column is checked

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        if not isinstance(value, Mapping) or not all(
            isinstance(of, Mapping) for of in value.values()
        ):
            reading.wrong(name, self.expected)
            return None
        lengths = {"jobs": "chunks", "nodes": "free"}
        known = {of: len(reading.fields[one]) for of, one in lengths.items()}
        running = value.get("running", {})
        on = plain_sequence(running.get("nodes", ()))
        known["running"] = 0 if on is None else len(on)
        wrong = [] if not running or "nodes" in running else [f"{name}.running: expected nodes"]
        for job, nodes in enumerate(on or ()):
            at = plain_sequence(nodes)
            if not at or not all(type(n) is int and 0 <= n < known["nodes"] for n in at):
                expected = f"expected nodes from 0 to {known['nodes'] - 1}"
                wrong.append(f"{name}.running.nodes[{job}]: {nodes!r}; {expected}")
        stored: dict[str, dict[str, Any]] = {}
        for of, columns in value.items():
            if of not in known:
                wrong.append(f"{name}: {UnknownNameError('part', of, known)}")
                continue
            stored[of] = {}
            for column, values in columns.items():
                given = plain_sequence(values)
                if given is None or len(given) != known[of]:
                    wrong.append(f"{name}.{of}.{column}: expected a list of {known[of]} values")
                elif (of, column) == ("running", "nodes"):
                    stored[of][column] = tuple(map(plain_sequence, given))
                elif not all(type(one) is str or _is_amount(one) for one in given):
                    wrong.append(f"{name}.{of}.{column}: expected texts or integers up to 10^12")
                else:
                    stored[of][column] = given
        reading.note(name, wrong)
        return stored

    def write(self, value: Any) -> Any:
        return {
            of: {name: [*map(_listed, values)] for name, values in columns.items()}
            for of, columns in value.items()
        }

    def json_schema(self) -> dict[str, Any]:
        columns = {"type": "object", "additionalProperties": {"type": "array"}}
        return {
            "type": "object",
            "properties": dict.fromkeys(("jobs", "nodes", "running"), columns),
        }


def _is_amount(value: Any) -> bool:
    return type(value) is int and abs(value) <= LARGEST_FIELD


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _is_in(text: Any, choices: Sequence[str]) -> bool:
    return isinstance(text, str) and text in choices


def _row_mistakes(row: Any, columns: int | None, of: str) -> list[str]:
    """Return the mistake in a row of amounts, if there is one."""
    if not isinstance(row, list | tuple):
        return [f": {row!r}; expected a list of integers from 0"]
    if columns is not None and len(row) != columns:
        return [f": {counted(len(row), 'value')}; expected {columns}, one for each of {of}"]
    return [
        f"[{place}]: {amount!r}; expected an integer from 0 to {LARGEST_FIELD}"
        for place, amount in enumerate(map(plain, row))
        if type(amount) is not int or not 0 <= amount <= LARGEST_FIELD
    ][:1]


def _devices_mistake(row: Any) -> str:
    """Return the mistake in the shares of devices of a node, an empty text if there is none."""
    if isinstance(row, list | tuple) and all(
        type(share) is int and 0 <= share <= WHOLE for share in row
    ):
        return ""
    return f": {row!r}; expected a list of integers from 0 to {WHOLE}"


def _labels_mistake(row: Any, known: set[Any], of: str) -> str:
    """Return the mistake in a list of labels, an empty text if there is none."""
    if row is None:
        return ""
    if not isinstance(row, list | tuple) or not all(isinstance(text, str) for text in row):
        return f": {row!r}; expected a list of texts, or null"
    for text in row:
        if text not in known:
            return f": {text!r}; expected a text in {of}"
    return ""


def _groups_mistake(row: Any, length: int | None, like: str) -> str:
    """Return the mistake in a row of groups, an empty text if there is none."""
    if not isinstance(row, list | tuple) or not all(isinstance(text, str) for text in row):
        return ": expected a list of texts"
    if length is not None and len(row) != length:
        return f": {len(row)} groups; expected {length}, one for each of {like}"
    return ""
