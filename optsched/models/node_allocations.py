"""Allocations of running jobs and reservations on nodes whose processors share resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.fields import LARGEST_FIELD, Fields, Kind, WrongValueError, first_few, plain
from optsched.models.fields import cache_last, read_only
from optsched.numbers import counted

HELD = ("node", "processes", "start", "end")
"""Columns of the table of allocations before those of the demand."""

MOST_NODES = 10**6

WIDEST = 64
"""Most processors of a node."""

NO_PENALTY = 1000
"""The penalty factor of a job without a penalty, in thousandths."""

COUNTABLE = 2**62
"""Upper limit of the sum of all penalties, in units, so that sums fit into 64 bits."""

Ints = NDArray[np.int64]


class NodeAllocations(Kind):
    """A table of allocations on the `nodes`, with a demand for each of `capacity`."""

    on_file = "list of objects"
    in_python = "array_like of int, shape (allocations, 4 + resources)"

    expected = f"expected a list of objects with {', '.join(HELD)} and demand"

    def read(self, value: Any, fields: Fields) -> Any:
        nodes, resources = fields.get("nodes"), fields.count("capacity")
        if nodes is not None and resources is not None and _are_valid(value, nodes, resources):
            return read_only(value)
        entries = plain(value)
        if not isinstance(entries, list | tuple):
            raise WrongValueError(self.expected)
        rows: list[list[int]] = []
        wrong: list[str] = []
        for place, entry in enumerate(entries):
            row = _row_of(entry) if isinstance(entry, Mapping) else entry
            if not isinstance(row, list | tuple) or len(row) < len(HELD):
                named = f"{', '.join(HELD)} and demand"
                wrong.append(f"[{place}]: expected an object with {named}")
                continue
            wrong += [f"[{place}]{mistake}" for mistake in _mistakes(row, nodes, resources)]
            rows.append(list(row))
        if wrong:
            raise WrongValueError(inside=first_few("", wrong))
        width = len(HELD) + (resources or 0)
        if resources is None:  # which is a mistake of another field
            return np.empty((0, width), dtype=np.int64)
        return read_only(np.array(rows, dtype=np.int64).reshape(-1, width))

    def write(self, value: Any) -> Any:
        return [dict(zip(HELD, row)) | {"demand": row[len(HELD) :]} for row in value.tolist()]

    def json_schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": 0, "maximum": LARGEST_FIELD}
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
            ("D_hr", "`demand` of one process for each resource"),
        )


def default_names(count: int) -> tuple[str, ...]:
    """Return default names of resources."""
    return ("bandwidth",) if count == 1 else tuple(f"resource-{r + 1}" for r in range(count))


@cache_last
def overcommitments(held: Ints, processors: int) -> list[str]:
    """Return a mistake for each allocation at whose start a node has too many processes."""
    rows = np.arange(len(held))
    # quick check: a node is safe if its processes of all times together fit
    total = np.bincount(held[:, 0], weights=held[:, 1])
    if total.max(initial=0) <= processors:
        return []
    rows = rows[total[held[:, 0]] > processors]
    node, processes, start, end = held[rows].T[:4]
    # one time axis for all nodes, one node after the other; every process ends on its part
    line = 2 * node * (end.max() + 1)
    events = np.concatenate((line + 2 * end, line + 2 * start + 1))
    order = events.argsort()
    active = np.concatenate((-processes, processes))[order].cumsum()
    over = order[(active > processors) & (order >= len(rows))]
    wrong = [
        f"held[{row}]: more than {processors} processes on node {held[row, 0]} "
        f"at {held[row, 2]} s; expected at most its {processors} processors"
        for row in rows[np.sort(over) - len(rows)].tolist()
    ]
    return first_few("held", wrong)


@cache_last
def _are_valid(held: Any, nodes: int, resources: int) -> bool:
    """Return whether allocations are an int64 array, each of them without a mistake."""
    if not isinstance(held, np.ndarray) or held.dtype != np.int64 or held.ndim != 2:
        return False
    if held.shape[1] != len(HELD) + resources:
        return False
    if len(held):
        node, processes, start, end = held.T[:4]
        if held.min() < 0 or held.max() > LARGEST_FIELD or node.max() >= nodes:
            return False
        if not processes.min() or (start >= end).any():
            return False
    return True


def _row_of(entry: Mapping[str, Any]) -> list[Any] | None:
    if set(entry) != {*HELD, "demand"} or not isinstance(entry["demand"], list | tuple):
        return None
    return [*(entry[name] for name in HELD), *entry["demand"]]


def _mistakes(row: Sequence[Any], nodes: int | None, resources: int | None) -> list[str]:
    """Return the mistakes in an allocation; None for a number of nodes or resources not known."""
    demand = row[len(HELD) :]
    mistakes = [
        f".{name}: {value!r}; expected an integer from {least} to {LARGEST_FIELD}"
        for name, value in zip(HELD, row)
        if not _is_whole(value, least := int(name == "processes"))
    ]
    if resources is not None and len(demand) != resources:
        given = counted(len(demand), "value")
        mistakes.append(f".demand: {given}; expected {resources}, one for each of capacity")
    else:
        wrong = (
            f".demand[{place}]: {value!r}; expected an integer from 0 to {LARGEST_FIELD}"
            for place, value in enumerate(demand)
            if not _is_whole(value, 0)
        )
        mistakes += islice(wrong, 1)
    if not mistakes and nodes is not None and row[0] >= nodes:
        mistakes.append(f".node: {row[0]}; expected a node from 0 to {nodes - 1}")
    if not mistakes and row[2] >= row[3]:
        mistakes.append(f".end: {row[3]}; expected more than its start, {row[2]}")
    return mistakes


def _is_whole(value: Any, least: int) -> bool:
    return type(value) is int and least <= value <= LARGEST_FIELD
