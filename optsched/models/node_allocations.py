"""Allocations of running jobs and reservations on nodes whose processors share resources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.fields import LARGEST_FIELD, Fields, first_few
from optsched.models.fields import Records, cache_last

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


class NodeAllocations(Records):
    """A table of allocations on the `nodes`, with a demand for each of `capacity`."""

    in_python = "array_like of int, shape (allocations, 4 + resources)"
    columns: Mapping[str, tuple[int, int]] = {
        name: (int(name == "processes"), LARGEST_FIELD) for name in HELD
    }
    many, of = "demand", "capacity"

    def is_sound(self, value: Any, fields: Fields) -> bool:
        nodes, resources = fields.get("nodes"), fields.count(self.of)
        return nodes is not None and resources is not None and _are_valid(value, nodes, resources)

    def joint(self, row: Sequence[int], fields: Fields, seen: set[Any]) -> Iterable[str]:
        node, _, start, end, *_ = row
        if node >= fields.get("nodes", math.inf):
            yield f".node: {node}; expected a node from 0 to {fields['nodes'] - 1}"
        elif start >= end:
            yield f".end: {end}; expected more than its start, {start}"

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
