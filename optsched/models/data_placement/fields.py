"""Plans of a data placement, and the kinds of its fields: cores, files of jobs, resident files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.arrays import Ints
from optsched.fields import LARGEST_FIELD, Fields, Kind, WrongValueError, first_few, plain
from optsched.models.fields import Integers, Records, is_table, read_only

LEFT_OUT = -1
"""The node of a job that is not in the plan."""

WIDEST = 62
"""Most cores of a node, so that sets of cores fit into the bits of an int64."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Nodes, cores and starts of the jobs of a queue.

    Parameters
    ----------
    node : int64 array, shape (jobs,)
        The node of each job, from 0; -1 for a job that is left out.
    start : int64 array, shape (jobs,)
        Seconds from the decision to the start of each job; 0 for a job that is left out.
    cores : int64 array, shape (jobs,)
        Cores of each job as a bit mask, bit c for core c of its node; 0 for a job that is left out.
    """

    node: Ints
    start: Ints
    cores: Ints

    def __post_init__(self) -> None:
        for name in ("node", "start", "cores"):
            array = np.asarray(getattr(self, name), dtype=np.int64).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Plan) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[bytes, bytes, bytes]:
        return self.node.tobytes(), self.start.tobytes(), self.cores.tobytes()

    def __repr__(self) -> str:
        return f"<Plan {np.count_nonzero(self.node != LEFT_OUT)} of {len(self.node)} jobs>"

    @property
    def rows(self) -> Ints:
        """Node, start and cores, shape (3, jobs)."""
        return np.array([self.node, self.start, self.cores])


RESIDENT = ("node", "file", "load", "loaded", "until")
"""Columns of the table of resident files."""

NO_FILE = -1

DENSE = 10**6
"""Number of a file up to which a lookup table is used; beyond it, files are sorted."""

HEAVIEST = 10**6
"""Largest weight, and longest load in seconds, so that scores fit into 64 bits."""


NO_RESIDENTS = np.empty((0, len(RESIDENT)), dtype=np.int64)
NO_RESIDENTS.flags.writeable = False


class Cores(Kind):
    """A number for each core of each node."""

    on_file = "list of a list of integers for each node"
    in_python = "array_like of int, shape (nodes, cores)"
    expected = "expected a list with a list of integers for each node, all of one length"
    row = Integers(-LARGEST_FIELD)

    def read(self, value: Any, fields: Fields) -> Any:
        if not is_table(value, 2, self.row.least):
            value = self._table(value, fields)
        nodes, cores = value.shape
        if not nodes:
            raise WrongValueError("no nodes; expected a list of cores for each node")
        if not 0 < cores <= WIDEST:
            raise WrongValueError(f"{cores} cores a node; expected from 1 to {WIDEST}")
        return read_only(value)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.row.json_schema() | {"maxItems": WIDEST}}

    def _table(self, values: Any, fields: Fields) -> Ints:
        """Return a list of lists of equal length as an array."""
        if isinstance(values, np.ndarray):
            values = list(values) if values.ndim == 2 else None
        if not isinstance(values, list | tuple):
            raise WrongValueError(self.expected)
        rows, wrong = [], []
        for node, row in enumerate(values):
            try:
                rows.append(self.row.read(row, fields))
            except WrongValueError as error:
                wrong += [f"[{node}]{mistake}" for mistake in error.mistakes]
        if not wrong and len({len(row) for row in rows}) > 1:
            raise WrongValueError(self.expected)
        if wrong:
            raise WrongValueError(inside=wrong)
        return np.array(rows, np.int64).reshape(len(rows), -1 if rows else 1)


class Holes(Cores):
    """The end of the hole before a reservation on each core; None if there are no holes."""

    row = Integers(0)

    def read(self, value: Any, fields: Fields) -> Any:
        reserved = value if is_table(value, 2, 0) else self._table(value, fields)
        available = fields.get("available", reserved)
        if reserved.shape != available.shape:
            nodes, cores = available.shape
            raise WrongValueError(f"expected {cores} numbers for each of {nodes} nodes")
        late = (reserved > available) & (reserved > 0)
        if late.any():
            wrong = [
                f"[{node}][{core}]: {reserved[node, core]}; expected at most "
                f"{available[node, core]}, when the core is free for good"
                for node, core in np.argwhere(late).tolist()
            ]
            raise WrongValueError(inside=first_few("", wrong))
        return read_only(reserved) if reserved.any() else None


class JobFiles(Integers):
    """Numbers of files; `NO_FILE`, null on file, for a job without one."""

    def __init__(self, like: str) -> None:
        super().__init__(NO_FILE, like=like)
        self.on_file = "list of integers from 0 or null"

    def read(self, value: Any, fields: Fields) -> Any:
        if isinstance(value, list | tuple):
            value = [NO_FILE if file is None else file for file in value]
        return super().read(value, fields)

    def write(self, value: Any) -> Any:
        return [None if file == NO_FILE else file for file in value.tolist()]

    def json_schema(self) -> dict[str, Any]:
        schema = super().json_schema()
        return schema | {"items": {"anyOf": [schema["items"], {"type": "null"}]}}


class NodeFlags(Kind):
    """A truth value for each node."""

    on_file = "list of true and false"
    in_python = "array_like of bool, shape (nodes,)"
    expected = "expected a list of true and false, one for each node"
    like = "available"

    def read(self, value: Any, fields: Fields) -> Any:
        if isinstance(value, np.ndarray) and value.dtype == bool and value.ndim == 1:
            return read_only(value)
        flags = plain(value)
        if not isinstance(flags, list | tuple) or not {*map(type, flags)} <= {bool}:
            raise WrongValueError(self.expected)
        return read_only(np.array(flags, dtype=bool))

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "boolean"}}


class WidestHole(Kind):
    """The number of cores of the widest hole, and its node."""

    on_file = "cores and node"
    in_python = "(int, int)"

    def read(self, value: Any, fields: Fields) -> Any:
        nodes, cores = LARGEST_FIELD, WIDEST
        if "available" in fields:
            nodes, cores = fields["available"].shape
        sound = isinstance(value, list | tuple) and [*map(type, value)] == [int, int]
        if not sound or not (0 <= value[0] <= cores and 0 <= value[1] < nodes):
            expected = f"expected up to {cores} cores and a node from 0 to {nodes - 1}"
            raise WrongValueError(f"{value!r}; {expected}")
        return tuple(value)

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": 0}
        return {"type": "array", "items": number, "minItems": 2, "maxItems": 2}


class Residents(Records):
    """Resident files of nodes: a table with the columns of `RESIDENT`, objects on file."""

    in_python = "array_like of int, shape (entries, 5)"
    columns: Mapping[str, tuple[int, int]] = {
        name: (0, HEAVIEST if name == "load" else LARGEST_FIELD) for name in RESIDENT
    }

    def is_sound(self, value: Any, fields: Fields) -> bool:
        nodes = fields.count("available")
        if not is_table(value, 2, 0) or value.shape[1] != len(RESIDENT) or nodes is None:
            return False
        if not len(value):
            return True
        node, file, load, loaded, _ = value.T
        if node.max() >= nodes or load.max() > HEAVIEST or (loaded > load).any():
            return False
        order = np.lexsort((file, node))
        pairs = value[order, :2]  # a file of a node has one entry
        return not (pairs[1:] == pairs[:-1]).all(axis=1).any()

    def joint(self, row: Sequence[int], fields: Fields, seen: set[Any]) -> Iterable[str]:
        nodes = fields.count("available")
        node, file, load, loaded, _ = row
        if nodes is not None and node >= nodes:
            yield f".node: {node}; expected a node from 0 to {nodes - 1}"
        if loaded > load:
            yield f".loaded: {loaded}; expected at most its load, {load}"
        if (node, file) in seen:
            yield f": file {file} on node {node} has an entry already"
        seen.add((node, file))

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
