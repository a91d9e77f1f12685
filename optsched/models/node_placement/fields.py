"""Kinds of fields of a node placement: shares of devices, groups of nodes; limits on the users."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints
from optsched.errors import UnknownNameError
from optsched.fields import (
    LARGEST_FIELD,
    Each,
    Fields,
    Kind,
    WrongValueError,
    first_few,
    plain_sequence,
)
from optsched.models.fields import integer_schema
from optsched.models.problem import Violation

WHOLE = 1000
"""A whole device, in thousandths.

Functions with ``@kernel`` hold it, so that their cache covers this file.
"""


class Devices(Each):
    """For each value of `like`, the free thousandths of each device."""

    in_python = "sequence of sequences of int"
    on_file = f"list of lists of integers, 0 to {WHOLE}"
    items: Mapping[str, Any] = {"type": "array", "items": integer_schema(most=WHOLE)}

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


def beyond_limits(
    name: str,  # what messages call the job
    nodes: Sequence[int],  # the node of each chunk
    *,
    # Kind of each node of the problem, and the kinds that the job may use; None for all
    kinds: Sequence[str] | None,
    allowed: Sequence[str] | None,
    most_per_node: int,  # most chunks on a node, 0 for no limit
    # The switch or block of each node if one must hold the job, named `span`
    groups: Sequence[str] | None = None,
    span: str = "",
) -> list[Violation]:
    """Return where the chunks of a job are on nodes on which they may not be."""
    found = []
    if kinds is not None and allowed is not None:
        wrong = [node for node in nodes if kinds[node] not in allowed]
        if wrong:
            detail = f"{name} is on node {wrong[0]} of kind {kinds[wrong[0]]}"
            found.append(Violation("kind", detail))
    for node, count in Counter(nodes).most_common(1):
        if most_per_node and count > most_per_node:
            detail = f"{name} has {count} chunks on node {node}, more than {most_per_node}"
            found.append(Violation("per node", detail))
    if groups is not None and len(spanned := {groups[node] for node in nodes}) > 1:
        found.append(Violation("span", f"{name} is in {len(spanned)} of {span}"))
    return found


def is_allowed(kinds: Sequence[str] | None, allowed: Sequence[str] | None, nodes: int) -> Flags:
    """Return whether nodes of some kinds may be used, shape (nodes,); None for all."""
    if allowed is None or kinds is None:
        return np.ones(nodes, dtype=bool)
    return np.array([kind in allowed for kind in kinds], dtype=bool)


class Limit(NamedTuple):
    """Limit of a job at a level."""

    group_of: Ints  # group of each node, from 0, shape (nodes,)
    most: int  # most groups that the job may span, 0 for any number
    segment: int  # number of chunks in a segment, each in one group; 1 for no segments


def unit_of(limits: Sequence[Limit]) -> int:
    """Return the number of which the chunks in a group of the first level are a multiple."""
    return math.lcm(*(limit.segment for limit in limits))


def nodes_by_group(limit: Limit, nodes: Ints) -> list[Ints]:
    """Return the nodes of each group that has some of `nodes`."""
    group_of = limit.group_of[nodes]
    order = np.argsort(group_of, kind="stable")
    _, first = np.unique(group_of[order], return_index=True)
    return np.split(nodes[order], first[1:])


def most_chunks(limits: Sequence[Limit], nodes: Ints, room: Ints) -> int:
    """Return the most chunks of a job on nodes, if the groups of a level are parts of those before.

    If they are not, or if several of those before may have part of a number of groups, the job may
    place fewer.

    `limits`: limits of the job, that of the largest groups first; `room`: how many chunks each node
    can hold, shape (all nodes,).
    """
    if not limits:
        return int(room[nodes].sum())
    unit = unit_of(limits)
    found = sorted(
        most_chunks(limits[1:], there, room) // unit * unit
        for there in nodes_by_group(limits[0], nodes)
    )
    return sum(found[-limits[0].most :])
