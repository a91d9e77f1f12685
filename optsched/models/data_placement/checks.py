"""What is wrong with the fields of a data placement: the slow check, that names every mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement.fields import (
    BACKFILLS,
    HEAVIEST,
    KEPT,
    NO_FILE,
    REQUIRED,
    RESIDENT,
    SINGLES,
    STOPS,
    Fields,
    is_hole,
    no_residents,
)
from optsched.models.data_placement.solution import WIDEST
from optsched.models.fields import LARGEST, FieldChecks

Ints = NDArray[np.int64]


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
    if fields.kept not in KEPT:
        check.mistakes.append(f"kept: {fields.kept!r}; expected users or next")
    if not isinstance(fields.partial, bool):
        check.mistakes.append(f"partial: {fields.partial!r}; expected true or false")
    noticed = fields.noticed
    if noticed is not None and not is_hole(noticed, nodes, cores):
        expected = f"expected up to {cores} cores and a node from 0 to {nodes - 1}"
        check.mistakes.append(f"noticed: {noticed!r}; {expected}")
        noticed = None
    reserved = None if fields.reserved is None else _holes(check, fields, available, sound)
    occupied, started = (
        None if values is None else _flags(check, name, values, nodes if sound else None)
        for name, values in (("occupied", fields.occupied), ("started", fields.started))
    )
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
        kept=fields.kept,
        started=started,
        jobs=labels,
    )


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


def _flags(
    check: FieldChecks, name: str, values: Any, nodes: int | None
) -> NDArray[np.bool_] | None:
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    if not isinstance(listed, list | tuple) or not {*map(type, listed)} <= {bool}:
        check.mistakes.append(f"{name}: expected a list of true and false, one for each node")
        return None
    if nodes is not None and len(listed) != nodes:
        check.mistakes.append(
            f"{name}: {len(listed)} values; expected {nodes}, one for each of available"
        )
    return np.array(listed, dtype=bool)


def _resident(check: FieldChecks, entries: Any, nodes: int | None) -> Ints:
    """Return the entries, objects on file or rows of an array, as an array."""
    if entries is None:
        return no_residents()
    if isinstance(entries, np.ndarray):
        entries = entries.tolist()
    rows: list[list[int]] = []
    wrong: list[str] = []
    named = ", ".join(RESIDENT)
    if not isinstance(entries, list | tuple):
        check.mistakes.append(f"resident: expected a list of objects with {named}")
        return no_residents()
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
