"""The fields of a data placement: a quick check that all is well, and a slow one of what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement_plan import WIDEST
from optsched.models.fields import LARGEST, FieldChecks

BACKFILLS = ("none", "holes", "conservative")
STOPS = ("full", "short")

RESIDENT = ("node", "file", "load", "loaded", "until")
"""What is told of a file in the memory of a node, in the order of the columns."""

NO_FILE = -1

DENSE = 10**6
"""Files with numbers below this are compared through a table, others by sorting."""

Ints = NDArray[np.int64]


class Fields(NamedTuple):
    """What `DataPlacement` is made of, see there."""

    available: Any
    processors: Any
    walltimes: Any
    files: Any
    loads: Any
    resident: Any = None
    reserved: Any = None
    occupied: Any = None
    priorities: Any = None
    load_weight: Any = 1
    capacity: Any = 1280
    backfill: Any = "none"
    weight: Any = 500
    threshold: Any = 100
    partial: Any = False
    stop: Any = "full"
    noticed: Any = None
    jobs: Any = None


REQUIRED = Fields._fields[:5]
OPTIONAL = Fields._fields[5:]

HEAVIEST = 10**6
"""Largest weight, and longest load in seconds: scores with them still fit into 64 bits."""

SINGLES = {
    "load_weight": (0, HEAVIEST),
    "capacity": (1, LARGEST),
    "weight": (0, HEAVIEST),
    "threshold": (0, HEAVIEST),
}
"""The single numbers, and the least and the most that each may be."""


def with_defaults(fields: Fields) -> Fields:
    """Return sound fields as read-only arrays, with those filled in that were left out."""
    nodes = len(fields.available)
    jobs = len(fields.processors)
    filled = fields._replace(
        resident=_empty() if fields.resident is None else fields.resident,
        occupied=(fields.available > 0).any(axis=1) if fields.occupied is None else fields.occupied,
        priorities=np.ones(jobs, np.int64) if fields.priorities is None else fields.priorities,
        reserved=None if _is_blank(fields.reserved) else fields.reserved,
    )
    assert len(filled.occupied) == nodes
    return Fields(*(_kept(value) if isinstance(value, np.ndarray) else value for value in filled))


def is_fine(fields: Fields) -> bool:
    """Return whether the fields are arrays of int64 and sound, so as to be kept as they are.

    Almost every problem of a simulation is, and this takes a tenth of a millisecond for thousands
    of jobs.
    """
    available = fields.available
    if not _is_table(available, 2, -LARGEST) or not 0 < available.shape[1] <= WIDEST:
        return False
    nodes, cores = available.shape
    lists = (
        (fields.processors, 1, cores),
        (fields.walltimes, 1, LARGEST),
        (fields.files, NO_FILE, LARGEST),
        (fields.loads, 0, HEAVIEST),
    )
    if not nodes or not all(_is_table(values, 1, least, most) for values, least, most in lists):
        return False
    jobs = len(fields.processors)
    if {len(values) for values, _, _ in lists} != {jobs}:
        return False
    reserved, occupied, priorities = fields.reserved, fields.occupied, fields.priorities
    if reserved is not None and not (
        _is_table(reserved, 2, 0)
        and reserved.shape == available.shape
        and not ((reserved > available) & (reserved > 0)).any()
    ):
        return False
    if occupied is not None and not (
        isinstance(occupied, np.ndarray) and occupied.dtype == bool and occupied.shape == (nodes,)
    ):
        return False
    if priorities is not None and not (_is_table(priorities, 1, 1) and len(priorities) == jobs):
        return False
    singles = all(
        type(getattr(fields, name)) is int and least <= getattr(fields, name) <= most
        for name, (least, most) in SINGLES.items()
    )
    if not singles or fields.backfill not in BACKFILLS or type(fields.partial) is not bool:
        return False
    if fields.stop not in STOPS:
        return False
    if fields.noticed is not None and not _is_hole(fields.noticed, nodes, cores):
        return False
    labels = fields.jobs
    if labels is not None and not (
        type(labels) is tuple and len(labels) == jobs and {*map(type, labels)} <= {int, str}
    ):
        return False
    resident = _empty() if fields.resident is None else fields.resident
    if not _is_table(resident, 2, 0) or resident.shape[1] != len(RESIDENT):
        return False
    node, file, _, loaded, _ = resident.T
    load = resident[:, 2]
    if len(resident) and (node.max() >= nodes or load.max() > HEAVIEST or (loaded > load).any()):
        return False
    return _are_apart(node, file) and _have_one_size(fields.files, fields.loads, resident)


def check_fields(check: FieldChecks, fields: Fields, given: Sequence[str] = REQUIRED) -> Fields:
    """Return the fields as arrays and plain values; note every mistake in them.

    Parameters
    ----------
    check : FieldChecks
        Where mistakes are noted.
    fields : Fields
        As they were given, in Python or on file.
    given : sequence of str
        The required fields that were given: others cannot be compared with.
    """
    before = len(check.mistakes)
    available = _table(check, "available", fields.available, -LARGEST)
    nodes, cores = available.shape
    if "available" in given and len(check.mistakes) == before:
        if not nodes:
            check.mistakes.append("available: no nodes; expected a list of cores for each node")
        elif not 0 < cores <= WIDEST:
            check.mistakes.append(f"available: {cores} cores a node; expected from 1 to {WIDEST}")
    sound = "available" in given and len(check.mistakes) == before
    lists = {
        "processors": check.integers("processors", fields.processors, at_least=1),
        "walltimes": check.integers("walltimes", fields.walltimes, at_least=1),
        "files": check.integers("files", _numbered(fields.files), at_least=NO_FILE),
        "loads": check.integers("loads", fields.loads, at_least=0),
    }
    _note_above(check, "loads", lists["loads"], HEAVIEST, f"{HEAVIEST} s")
    if sound:
        expected = f"the {cores} cores of a node"
        _note_above(check, "processors", lists["processors"], cores, expected)
    counted = next((name for name in REQUIRED[1:] if name in given), None)
    priorities = labels = None
    if fields.priorities is not None:
        priorities = check.integers("priorities", fields.priorities, at_least=1)
    labels = check.labels("jobs", fields.jobs)
    if counted is not None:
        others = {name: lists[name] for name in REQUIRED[1:] if name in given and name != counted}
        for name, values in (others | {"priorities": priorities, "jobs": labels}).items():
            if values is not None:
                check.same_length(name, values, counted, lists[counted])
    for name, (least, most) in SINGLES.items():
        value = getattr(fields, name)
        if type(value) is not int or not least <= value <= most:
            check.mistakes.append(f"{name}: {value!r}; expected an integer from {least} to {most}")
    if fields.backfill not in BACKFILLS:
        expected = "expected none, holes or conservative"
        check.mistakes.append(f"backfill: {fields.backfill!r}; {expected}")
    if fields.stop not in STOPS:
        check.mistakes.append(f"stop: {fields.stop!r}; expected full or short")
    if not isinstance(fields.partial, bool):
        check.mistakes.append(f"partial: {fields.partial!r}; expected true or false")
    noticed = fields.noticed
    if noticed is not None and not _is_hole(noticed, nodes, cores):
        expected = f"expected up to {cores} cores and a node from 0 to {nodes - 1}"
        check.mistakes.append(f"noticed: {noticed!r}; {expected}")
        noticed = None
    reserved = None if fields.reserved is None else _holes(check, fields, available, sound)
    occupied = None
    if fields.occupied is not None:
        occupied = _flags(check, fields.occupied, nodes if sound else None)
    resident = _resident(check, fields.resident, nodes if sound else None)
    if len(check.mistakes) == before and {"files", "loads"} <= set(given):
        _compare_sizes(check, lists["files"], lists["loads"], resident)
    return Fields(
        available=available,
        **lists,
        resident=resident,
        reserved=reserved,
        occupied=occupied,
        priorities=priorities,
        **{name: getattr(fields, name) for name in SINGLES},
        backfill=fields.backfill,
        partial=fields.partial,
        stop=fields.stop,
        noticed=None if noticed is None else tuple(noticed),
        jobs=labels,
    )


def _empty() -> Ints:
    return np.empty((0, len(RESIDENT)), dtype=np.int64)


def _is_hole(hole: Any, nodes: int, cores: int) -> bool:
    """Return whether it is a number of cores and a node."""
    return (
        isinstance(hole, list | tuple)
        and [type(number) for number in hole] == [int, int]
        and 0 <= hole[0] <= cores
        and 0 <= hole[1] < nodes
    )


def _is_blank(reserved: Ints | None) -> bool:
    return reserved is None or not reserved.any()


def _kept(array: NDArray[Any]) -> NDArray[Any]:
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def _is_table(values: Any, dimensions: int, least: int, most: int = LARGEST) -> bool:
    """Return whether it is an int64 array of so many dimensions within these bounds."""
    return (
        isinstance(values, np.ndarray)
        and values.dtype == np.int64
        and values.ndim == dimensions
        and (not values.size or bool(values.min() >= least and values.max() <= most))
    )


def _are_apart(node: Ints, file: Ints) -> bool:
    """Return whether no two entries are of the same file on the same node."""
    if len(node) < 2:
        return True
    order = np.lexsort((file, node))
    node, file = node[order], file[order]
    return not ((node[1:] == node[:-1]) & (file[1:] == file[:-1])).any()


def _have_one_size(files: Ints, loads: Ints, resident: Ints) -> bool:
    """Return whether equal files have equal loads, and a job without a file has none."""
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


def _compare_sizes(check: FieldChecks, files: Ints, loads: Ints, resident: Ints) -> None:
    first: dict[int, tuple[str, int]] = {NO_FILE: ("no file", 0)}
    wrong = []
    named = [(f"loads[{job}]", *pair) for job, pair in enumerate(zip(files, loads))]
    named += [(f"resident[{entry}].load", *row[1:3]) for entry, row in enumerate(resident)]
    for name, file, load in named:
        other, expected = first.setdefault(int(file), (name, int(load)))
        if load != expected:
            what = "has no file" if file == NO_FILE else f"file {file} has {expected} in {other}"
            wrong.append(f"{name}: {load}; expected {expected}: {what}")
    check.note("loads", wrong)


def _numbered(files: Any) -> Any:
    """Return a list of files with numbers in the place of null."""
    if isinstance(files, list | tuple):
        return [NO_FILE if file is None else file for file in files]
    return files


def _table(check: FieldChecks, name: str, values: Any, least: int) -> Ints:
    """Return a list of equally long lists as an array; note what is not such a list."""
    blank = np.zeros((0, 1), dtype=np.int64)
    expected = f"{name}: expected a list with a list of integers for each node, all of one length"
    if isinstance(values, np.ndarray):
        values = list(values) if values.ndim == 2 else None
    if not isinstance(values, list | tuple):
        check.mistakes.append(expected)
        return blank
    rows = [
        check.integers(f"{name}[{node}]", row, at_least=least) for node, row in enumerate(values)
    ]
    if len({len(row) for row in rows}) > 1:
        check.mistakes.append(expected)
        return blank
    return np.array(rows) if rows else blank


def _holes(check: FieldChecks, fields: Fields, available: Ints, sound: bool) -> Ints | None:
    before = len(check.mistakes)
    reserved = _table(check, "reserved", fields.reserved, 0)
    if not sound or len(check.mistakes) > before:
        return None
    if reserved.shape != available.shape:
        nodes, cores = available.shape
        check.mistakes.append(f"reserved: expected {cores} numbers for each of {nodes} nodes")
        return None
    late = np.argwhere((reserved > 0) & (reserved > available))
    check.note(
        "reserved",
        [
            f"reserved[{node}][{core}]: {reserved[node, core]}; expected at most "
            f"{available[node, core]}, when the core is free for good"
            for node, core in late.tolist()
        ],
    )
    return reserved


def _flags(check: FieldChecks, values: Any, nodes: int | None) -> NDArray[np.bool_] | None:
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(listed, list | tuple) or not {*map(type, listed)} <= {bool}:
        check.mistakes.append("occupied: expected a list of true and false, one for each node")
        return None
    if nodes is not None and len(listed) != nodes:
        check.mistakes.append(
            f"occupied: {len(listed)} values; expected {nodes}, one for each of available"
        )
    return np.array(listed, dtype=bool)


def _resident(check: FieldChecks, entries: Any, nodes: int | None) -> Ints:
    """Return the entries, objects on file or rows of an array, as an array."""
    if entries is None:
        return _empty()
    if isinstance(entries, np.ndarray):
        entries = entries.tolist()
    rows: list[list[int]] = []
    wrong: list[str] = []
    named = ", ".join(RESIDENT)
    if not isinstance(entries, list | tuple):
        check.mistakes.append(f"resident: expected a list of objects with {named}")
        return _empty()
    seen: set[tuple[int, int]] = set()
    for place, entry in enumerate(entries):
        row = entry
        if isinstance(entry, Mapping):
            row = [entry[name] for name in RESIDENT] if set(entry) == set(RESIDENT) else None
        if not isinstance(row, list | tuple) or len(row) != len(RESIDENT):
            wrong.append(f"resident[{place}]: expected an object with {named}")
            continue
        mistakes = [
            f"resident[{place}].{name}: {value!r}; expected an integer from 0 to {most}"
            for name, value in zip(RESIDENT, row)
            for most in [HEAVIEST if name == "load" else LARGEST]
            if type(value) is not int or not 0 <= value <= most
        ]
        if mistakes:
            wrong += mistakes
            continue
        node, file, load, loaded, _ = row
        if nodes is not None and node >= nodes:
            wrong.append(f"resident[{place}].node: {node}; expected a node from 0 to {nodes - 1}")
        if loaded > load:
            wrong.append(f"resident[{place}].loaded: {loaded}; expected at most its load, {load}")
        if (node, file) in seen:
            wrong.append(f"resident[{place}]: file {file} on node {node} has an entry already")
        seen.add((node, file))
        rows.append(list(row))
    check.note("resident", wrong)
    return np.array(rows, dtype=np.int64).reshape(-1, len(RESIDENT))


def _note_above(check: FieldChecks, name: str, values: Ints, most: int, expected: str) -> None:
    wrong = np.flatnonzero(values > most).tolist()
    check.note(name, [f"{name}[{i}]: {values[i]}; expected at most {expected}" for i in wrong])
