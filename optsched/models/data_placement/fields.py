"""Kinds of fields of a data placement: cores of nodes, files of jobs, resident files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement.solution import WIDEST
from optsched.models.fields import LARGEST_FIELD, first_few
from optsched.models.read_only import read_only
from optsched.models.schema import DOUBTFUL, Fields, Integers, Kind, Reading, is_table

RESIDENT = ("node", "file", "load", "loaded", "until")
"""Columns of the table of resident files."""

NO_FILE = -1

DENSE = 10**6
"""Number of a file up to which a lookup table is used; beyond it, files are sorted."""

HEAVIEST = 10**6
"""Largest weight, and longest load in seconds, so that scores fit into 64 bits."""

Ints = NDArray[np.int64]

NO_RESIDENTS = np.empty((0, len(RESIDENT)), dtype=np.int64)
NO_RESIDENTS.flags.writeable = False


class Cores(Kind):
    """A number for each core of each node."""

    on_file = "list of a list of integers for each node"
    in_python = "array_like of int, shape (nodes, cores)"
    blank = np.zeros((0, 1), dtype=np.int64)
    least = -LARGEST_FIELD

    def accept(self, value: Any, fields: Fields) -> Any:
        valid = is_table(value, 2, self.least) and len(value) and 0 < value.shape[1] <= WIDEST
        return read_only(value) if valid else DOUBTFUL

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        before = len(reading.mistakes)
        table = self._table(name, value, reading)
        nodes, cores = table.shape
        if len(reading.mistakes) == before and not nodes:
            reading.wrong(name, "no nodes; expected a list of cores for each node")
        elif len(reading.mistakes) == before and not 0 < cores <= WIDEST:
            reading.wrong(name, f"{cores} cores a node; expected from 1 to {WIDEST}")
        if len(reading.mistakes) > before:
            reading.unread.add(name)
        return read_only(table)

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": self.least, "maximum": LARGEST_FIELD}
        return {"type": "array", "items": {"type": "array", "items": number, "maxItems": WIDEST}}

    def _table(self, name: str, values: Any, reading: Reading) -> Ints:
        """Return a list of lists of equal length as an array, and note the mistakes."""
        if isinstance(values, np.ndarray):
            values = list(values) if values.ndim == 2 else None
        rows = []
        if isinstance(values, list | tuple):
            rows = [
                reading.integers(f"{name}[{node}]", row, at_least=self.least)
                for node, row in enumerate(values)
            ]
        if not isinstance(values, list | tuple) or len({len(row) for row in rows}) > 1:
            expected = "expected a list with a list of integers for each node, all of one length"
            reading.wrong(name, expected)
            return self.blank
        return np.array(rows) if rows else self.blank


class Holes(Cores):
    """The end of the hole before a reservation on each core; None if there are no holes."""

    least = 0

    def accept(self, value: Any, fields: Fields) -> Any:
        available = fields["available"]
        if not is_table(value, 2, 0) or value.shape != available.shape:
            return DOUBTFUL
        if ((value > available) & (value > 0)).any():
            return DOUBTFUL
        return read_only(value) if value.any() else None

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        before = len(reading.mistakes)
        reserved, available = self._table(name, value, reading), reading.fields["available"]
        if "available" in reading.unread or len(reading.mistakes) > before:
            return None
        if reserved.shape != available.shape:
            nodes, cores = available.shape
            reading.wrong(name, f"expected {cores} numbers for each of {nodes} nodes")
            return None
        late = np.argwhere((reserved > 0) & (reserved > available))
        reading.note(
            name,
            [
                f"{name}[{node}][{core}]: {reserved[node, core]}; expected at most "
                f"{available[node, core]}, when the core is free for good"
                for node, core in late.tolist()
            ],
        )
        return read_only(reserved) if reserved.any() else None


class JobFiles(Integers):
    """Numbers of files; `NO_FILE`, null on file, for a job without one."""

    def __init__(self, like: str) -> None:
        super().__init__(NO_FILE, like=like)
        self.on_file = "list of integers from 0 or null"

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        if isinstance(value, list | tuple):
            value = [NO_FILE if file is None else file for file in value]
        return super().read(name, value, reading)

    def write(self, value: Any) -> Any:
        return [None if file == NO_FILE else file for file in value.tolist()]

    def json_schema(self) -> dict[str, Any]:
        schema = super().json_schema()
        return schema | {"items": {"anyOf": [schema["items"], {"type": "null"}]}}


class NodeFlags(Kind):
    """A truth value for each node."""

    on_file = "list of true and false"
    in_python = "array_like of bool, shape (nodes,)"

    def accept(self, value: Any, fields: Fields) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype != bool:
            return DOUBTFUL
        return read_only(value) if value.shape == fields["available"].shape[:1] else DOUBTFUL

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        listed = value.tolist() if isinstance(value, np.ndarray) else value
        if not isinstance(listed, list | tuple) or not {*map(type, listed)} <= {bool}:
            reading.wrong(name, "expected a list of true and false, one for each node")
            return None
        reading.same_length(name, listed, "available", reading.fields["available"])
        return read_only(np.array(listed, dtype=bool))

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "boolean"}}


class WidestHole(Kind):
    """The number of cores of the widest hole, and its node."""

    on_file = "cores and node"
    in_python = "(int, int)"

    def accept(self, value: Any, fields: Fields) -> Any:
        if not isinstance(value, list | tuple) or [*map(type, value)] != [int, int]:
            return DOUBTFUL
        nodes, cores = fields["available"].shape
        return tuple(value) if 0 <= value[0] <= cores and 0 <= value[1] < nodes else DOUBTFUL

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        hole = self.accept(value, reading.fields)
        if hole is DOUBTFUL and "available" not in reading.unread:
            nodes, cores = reading.fields["available"].shape
            expected = f"expected up to {cores} cores and a node from 0 to {nodes - 1}"
            reading.wrong(name, f"{value!r}; {expected}")
        return None if hole is DOUBTFUL else hole

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": 0}
        return {"type": "array", "items": number, "minItems": 2, "maxItems": 2}


class Residents(Kind):
    """Resident files of nodes: a table with the columns of `RESIDENT`, objects on file."""

    on_file = "list of objects"
    in_python = "array_like of int, shape (entries, 5)"
    blank = NO_RESIDENTS

    def accept(self, value: Any, fields: Fields) -> Any:
        if not is_table(value, 2, 0) or value.shape[1] != len(RESIDENT):
            return DOUBTFUL
        node, file, load, loaded, _ = value.T
        if len(value) and (
            node.max() >= len(fields["available"]) or load.max() > HEAVIEST or (loaded > load).any()
        ):
            return DOUBTFUL
        return read_only(value) if _are_distinct(node, file) else DOUBTFUL

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        named = ", ".join(RESIDENT)
        entries = value.tolist() if isinstance(value, np.ndarray) else value
        if not isinstance(entries, list | tuple):
            reading.wrong(name, f"expected a list of objects with {named}")
            return self.blank
        nodes = None if "available" in reading.unread else len(reading.fields["available"])
        rows: list[list[int]] = []
        wrong: list[str] = []
        seen: set[tuple[int, int]] = set()
        for place, entry in enumerate(entries):
            row = entry
            if isinstance(entry, Mapping):
                row = [entry[name] for name in RESIDENT] if set(entry) == set(RESIDENT) else None
            if not isinstance(row, list | tuple) or len(row) != len(RESIDENT):
                wrong.append(f"{name}[{place}]: expected an object with {named}")
                continue
            mistakes = [
                f"{name}[{place}].{column}: {number!r}; expected an integer from 0 to {most}"
                for column, number in zip(RESIDENT, row)
                for most in [_most(column)]
                if type(number) is not int or not 0 <= number <= most
            ]
            if mistakes:
                wrong += mistakes
                continue
            node, file, load, loaded, _ = row
            if nodes is not None and node >= nodes:
                expected = f"expected a node from 0 to {nodes - 1}"
                wrong.append(f"{name}[{place}].node: {node}; {expected}")
            if loaded > load:
                expected = f"expected at most its load, {load}"
                wrong.append(f"{name}[{place}].loaded: {loaded}; {expected}")
            if (node, file) in seen:
                taken = f"file {file} on node {node} has an entry already"
                wrong.append(f"{name}[{place}]: {taken}")
            seen.add((node, file))
            rows.append(list(row))
        reading.note(name, wrong)
        return read_only(np.array(rows, dtype=np.int64).reshape(-1, len(RESIDENT)))

    def write(self, value: Any) -> Any:
        return [dict(zip(RESIDENT, row)) for row in value.tolist()]

    def json_schema(self) -> dict[str, Any]:
        numbers: dict[str, Any] = {
            name: {"type": "integer", "minimum": 0, "maximum": _most(name)} for name in RESIDENT
        }
        entry = {"type": "object", "properties": numbers, "required": [*RESIDENT]}
        columns = {"prefixItems": [*numbers.values()], "minItems": 5, "maxItems": 5}
        row = {"type": "array"} | columns
        return {
            "type": "array",
            "items": {"anyOf": [entry | {"additionalProperties": False}, row]},
        }

    def parts(self) -> Sequence[tuple[str, str]]:
        return (
            ("n_e, f_e", "`node`, and `file`; one entry for a file of a node"),
            ("", "`load`: seconds to load the whole file"),
            ("g_e", "`loaded`: seconds from now until it is complete; 0 if it is"),
            (
                "u_e",
                "`until`: last second to which running jobs keep it; 0: only jobs that start now "
                "find it",
            ),
        )


def wrong_sizes(files: Ints, loads: Ints, resident: Ints) -> list[str]:
    """Return a mistake for each load that differs from that of the same file, or lacks a file."""
    if _have_one_size(files, loads, resident):
        return []
    first: dict[int, tuple[str, int]] = {NO_FILE: ("no file", 0)}
    wrong = []
    named = [(f"loads[{job}]", *pair) for job, pair in enumerate(zip(files, loads))]
    named += [(f"resident[{entry}].load", *row[1:3]) for entry, row in enumerate(resident)]
    for name, file, load in named:
        other, expected = first.setdefault(int(file), (name, int(load)))
        if load != expected:
            what = "has no file" if file == NO_FILE else f"file {file} has {expected} in {other}"
            wrong.append(f"{name}: {load}; expected {expected}: {what}")
    return first_few("loads", wrong)


def _most(column: str) -> int:
    return HEAVIEST if column == "load" else LARGEST_FIELD


def _are_distinct(node: Ints, file: Ints) -> bool:
    """Return whether the pairs of node and file are distinct."""
    if len(node) < 2:
        return True
    order = np.lexsort((file, node))
    node, file = node[order], file[order]
    return not ((node[1:] == node[:-1]) & (file[1:] == file[:-1])).any()


def _have_one_size(files: Ints, loads: Ints, resident: Ints) -> bool:
    """Return whether equal files have equal loads, and jobs without a file load for 0 s."""
    all_files = np.concatenate((files, resident[:, 1]))
    all_loads = np.concatenate((loads, resident[:, 2]))
    if not len(all_files):
        return True
    if all_files.max() < DENSE:
        load_of = np.empty(all_files.max() + 2, dtype=np.int64)
        load_of[all_files] = all_loads
        load_of[NO_FILE] = 0
        return np.array_equal(load_of[all_files], all_loads)
    _, first, which = np.unique(all_files, return_index=True, return_inverse=True)
    return np.array_equal(all_loads[first][which], all_loads) and not loads[files == NO_FILE].any()
