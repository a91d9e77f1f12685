"""What running jobs and reservations hold of nodes whose processors share resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import LARGEST, FieldChecks, first_few, is_whole
from optsched.models.read_only import kept, once
from optsched.models.schema import DOUBTFUL, Fields, Kind, Reading

HELD = ("node", "processes", "start", "end")
"""What is told of a holding before its demand, in the order of the columns."""

MOST_NODES = 10**6

WIDEST = 64
"""Most processors of a node."""

NO_PENALTY = 1000
"""The penalty factor of a job that loses nothing, in thousandths."""

COUNTABLE = 2**62
"""Penalties of everybody, in units, stay below this, so that sums fit into 64 bits."""

Ints = NDArray[np.int64]


class Holdings(Kind):
    """Holdings on some of the `nodes`, a table with a demand for each of `capacity`."""

    on_file = "list of objects"
    in_python = "array_like of int, shape (holdings, 4 + resources)"

    def accept(self, value: Any, fields: Fields) -> Any:
        sound = are_sound(value, fields["nodes"], len(fields["capacity"]))
        return kept(value) if sound else DOUBTFUL

    def read(self, name: str, value: Any, reading: Reading) -> Any:
        fields, unread = reading.fields, reading.unread
        nodes = None if "nodes" in unread else fields["nodes"]
        return holdings(
            reading, value, nodes, None if "capacity" in unread else len(fields["capacity"])
        )

    def write(self, value: Any) -> Any:
        return as_objects(value)

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": 0, "maximum": LARGEST}
        fields: dict[str, Any] = dict.fromkeys(HELD, number)
        fields["processes"] = number | {"minimum": 1}
        fields["demand"] = {"type": "array", "items": number}
        entry = {"type": "object", "properties": fields, "required": [*fields]}
        row = {"type": "array", "items": number, "minItems": len(HELD)}
        return {
            "type": "array",
            "items": {"anyOf": [entry | {"additionalProperties": False}, row]},
        }

    def parts(self) -> Sequence[tuple[str, str]]:
        return (
            ("n_h, m_h", "`node`, from 0, and `processes`, from 1"),
            (
                "s_h, e_h",
                "`start` and `end` in seconds from now; 0 and the estimated end for running jobs",
            ),
            ("D_hr", "`demand` of one of its processes of each resource"),
        )


def default_names(count: int) -> tuple[str, ...]:
    """Return the names of so many resources that were not named."""
    return ("bandwidth",) if count == 1 else tuple(f"resource-{r + 1}" for r in range(count))


def as_objects(held: Ints) -> list[dict[str, Any]]:
    """Return holdings, shape (holdings, 4 + resources), as they are written to snapshots."""
    return [dict(zip(HELD, row)) | {"demand": row[len(HELD) :]} for row in held.tolist()]


@once
def are_sound(held: Any, nodes: int, resources: int) -> bool:
    """Return whether holdings are an array of int64, each of them without a mistake."""
    if not isinstance(held, np.ndarray) or held.dtype != np.int64 or held.ndim != 2:
        return False
    if held.shape[1] != len(HELD) + resources:
        return False
    if len(held):
        node, processes, start, end = held.T[:4]
        if held.min() < 0 or held.max() > LARGEST or node.max() >= nodes:
            return False
        if not processes.min() or (start >= end).any():
            return False
    return True


@once
def crowded(held: Ints, processors: int) -> Ints:
    """Return the holdings at whose start more processes than processors are on their node."""
    rows = np.arange(len(held))
    # only where the processes of all times together are too many can those of one time be
    total = np.bincount(held[:, 0], weights=held[:, 1])
    if total.max(initial=0) <= processors:
        return rows[:0]
    rows = rows[total[held[:, 0]] > processors]
    node, processes, start, end = held[rows].T[:4]
    # the times of all nodes on one line; on each node all that starts also ends
    line = 2 * node * (end.max() + 1)
    events = np.concatenate((line + 2 * end, line + 2 * start + 1))
    order = events.argsort()
    active = np.concatenate((-processes, processes))[order].cumsum()
    over = order[(active > processors) & (order >= len(rows))]
    return rows[np.sort(over) - len(rows)]


def crowds(held: Ints, processors: int) -> list[str]:
    """Return the mistakes in holdings of more processes on a node than it has processors."""
    wrong = [
        f"held[{row}]: more than {processors} processes on node {held[row, 0]} "
        f"at {held[row, 2]} s; expected at most its {processors} processors"
        for row in crowded(held, processors).tolist()
    ]
    return first_few("held", wrong)


def holdings(check: FieldChecks, entries: Any, nodes: int | None, resources: int | None) -> Ints:
    """Return holdings, objects on file or rows of an array, as a read-only array.

    Parameters
    ----------
    check : FieldChecks
        Where mistakes are noted.
    entries : object
        As they were given.
    nodes, resources : int or None
        How many there are; none if that is not known.
    """
    named = f"{', '.join(HELD)} and demand"
    blank = kept(np.empty((0, len(HELD) + (resources or 0)), dtype=np.int64))
    if isinstance(entries, np.ndarray):
        entries = entries.tolist()
    if not isinstance(entries, list | tuple):
        check.mistakes.append(f"held: expected a list of objects with {named}")
        return blank
    rows: list[list[int]] = []
    wrong: list[str] = []
    for place, entry in enumerate(entries):
        row = _row_of(entry) if isinstance(entry, Mapping) else entry
        if not isinstance(row, list | tuple) or len(row) < len(HELD):
            wrong.append(f"held[{place}]: expected an object with {named}")
            continue
        mistakes = [
            f"held[{place}].{name}: {value!r}; expected an integer from {least} to {LARGEST}"
            for name, value in zip(HELD, row)
            if not is_whole(value, least := int(name == "processes"))
        ]
        if mistake := mistake_in(row[len(HELD) :], resources):
            mistakes.append(f"held[{place}].demand{mistake}")
        if not mistakes and nodes is not None and row[0] >= nodes:
            expected = f"expected a node from 0 to {nodes - 1}"
            mistakes.append(f"held[{place}].node: {row[0]}; {expected}")
        if not mistakes and row[2] >= row[3]:
            expected = f"expected more than its start, {row[2]}"
            mistakes.append(f"held[{place}].end: {row[3]}; {expected}")
        wrong += mistakes
        rows.append(list(row))
    check.note("held", wrong)
    if resources is None or wrong:
        return blank
    return kept(np.array(rows, dtype=np.int64).reshape(-1, len(HELD) + resources))


def mistake_in(row: Any, count: int | None) -> str:
    """Return what is wrong with a demand of so many resources; nothing if it is fine."""
    if not isinstance(row, list | tuple):
        return f": {row!r}; expected a list of integers, one for each of capacity"
    if count is not None and len(row) != count:
        return f": {len(row)} values; expected {count}, one for each of capacity"
    for place, value in enumerate(row):
        if not is_whole(value, 0):
            return f"[{place}]: {value!r}; expected an integer from 0 to {LARGEST}"
    return ""


def _row_of(entry: Mapping[str, Any]) -> list[Any] | None:
    if set(entry) != {*HELD, "demand"} or not isinstance(entry["demand"], list | tuple):
        return None
    return [*(entry[name] for name in HELD), *entry["demand"]]
