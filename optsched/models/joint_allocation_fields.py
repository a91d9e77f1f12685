"""The fields of a joint allocation, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import LARGEST, SHOWN, FieldChecks

GOALS = ("processors", "penalty")

WIDEST = 64
"""Most processors of a node."""

MOST_NODES = 10**6

NO_PENALTY = 1000
"""The penalty factor of a job that loses nothing, in thousandths."""

HELD = ("node", "processes", "start", "end")
"""What is told of a holding before its demand, in the order of the columns."""

COUNTABLE = 2**62
"""Penalties of everybody, in units, stay below this, so that sums fit into 64 bits."""

Ints = NDArray[np.int64]


class Fields(NamedTuple):
    """What `JointAllocation` is made of, see there."""

    nodes: Any
    processors: Any
    capacity: Any
    held: Any
    asked: Any
    walltimes: Any
    demands: Any
    threshold: Any = None
    goal: Any = "processors"
    resources: Any = None
    jobs: Any = None


REQUIRED = Fields._fields[:7]
OPTIONAL = Fields._fields[7:]


def default_names(count: int) -> tuple[str, ...]:
    """Return the names of so many resources that were not named."""
    return ("bandwidth",) if count == 1 else tuple(f"resource-{r + 1}" for r in range(count))


def check_fields(check: FieldChecks, fields: Fields, given: Sequence[str] = REQUIRED) -> Fields:
    """Return the fields as read-only arrays and plain values; note every mistake in them.

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
    nodes, processors = _plain(fields.nodes), _plain(fields.processors)
    for name, value, most in (("nodes", nodes, MOST_NODES), ("processors", processors, WIDEST)):
        if name in given and not _is_whole(value, 1, most):
            check.mistakes.append(f"{name}: {value!r}; expected an integer from 1 to {most}")
    sized = {"nodes", "processors"} <= set(given) and len(check.mistakes) == before
    capacity = check.integers("capacity", fields.capacity, at_least=1)
    resources = len(capacity) if "capacity" in given and len(check.mistakes) == before else None
    asked = check.integers("asked", fields.asked, at_least=1)
    walltimes = check.integers("walltimes", fields.walltimes, at_least=1)
    if {"asked", "walltimes"} <= set(given):
        check.same_length("walltimes", walltimes, "asked", asked)
    if sized:
        most = nodes * processors
        wrong = [
            f"asked[{job}]: {count}; expected at most the {most} processors of all nodes"
            for job, count in enumerate(asked.tolist())
            if count > most
        ]
        _note(check, "asked", wrong)
    demands = _demands(check, fields.demands, resources)
    if {"asked", "demands"} <= set(given):
        check.same_length("demands", demands, "asked", asked)
    held = _holdings(check, fields.held, nodes if sized else None, resources)
    threshold = _plain(fields.threshold)
    if threshold is not None and not _is_whole(threshold, NO_PENALTY):
        check.mistakes.append(f"threshold: {threshold!r}; expected an integer from {NO_PENALTY}")
    if fields.goal not in GOALS:
        check.mistakes.append(f"goal: {fields.goal!r}; expected {' or '.join(GOALS)}")
    names = check.labels("resources", fields.resources)
    if names is not None and resources is not None:
        check.same_length("resources", names, "capacity", capacity)
    jobs = check.labels("jobs", fields.jobs)
    if jobs is not None and "asked" in given:
        check.same_length("jobs", jobs, "asked", asked)
    if len(check.mistakes) == before and set(given) == set(REQUIRED):
        _check_together(check, processors, held)
        lists = (asked, walltimes, demands)
        if not _is_countable(nodes * processors**2, capacity, held, lists):
            check.mistakes.append(
                "capacity: demands, times and capacities are too large together; "
                "coarser units make penalties that can be counted in 64 bits"
            )
    return Fields(
        nodes,
        processors,
        capacity,
        held,
        asked,
        walltimes,
        demands,
        threshold,
        fields.goal,
        default_names(len(capacity)) if names is None else tuple(map(str, names)),
        jobs,
    )


def _demands(check: FieldChecks, values: Any, resources: int | None) -> Ints:
    """Return the demand of each job of each resource, shape (jobs, resources)."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, list | tuple):
        check.mistakes.append("demands: expected a list with a list of integers for each job")
        return _frozen(np.empty((0, resources or 0)))
    wrong = []
    for job, row in enumerate(values):
        mistake = _mistake_in(row, resources)
        if mistake:
            wrong.append(f"demands[{job}]{mistake}")
    _note(check, "demands", wrong)
    if resources is None or wrong:
        return _frozen(np.zeros((len(values), resources or 0)))
    return _frozen(np.array(values, dtype=np.int64).reshape(len(values), resources))


def _holdings(check: FieldChecks, entries: Any, nodes: int | None, resources: int | None) -> Ints:
    """Return the holdings, objects on file or rows of an array, as an array."""
    named = f"{', '.join(HELD)} and demand"
    width = len(HELD) + (resources or 0)
    if None not in (nodes, resources) and _are_sound(entries, nodes, width):
        return _frozen(entries)
    if isinstance(entries, np.ndarray):
        entries = entries.tolist()
    rows: list[list[int]] = []
    wrong: list[str] = []
    if not isinstance(entries, list | tuple):
        check.mistakes.append(f"held: expected a list of objects with {named}")
        return _frozen(np.empty((0, width)))
    for place, entry in enumerate(entries):
        row = _row_of(entry) if isinstance(entry, Mapping) else entry
        if not isinstance(row, list | tuple) or len(row) < len(HELD):
            wrong.append(f"held[{place}]: expected an object with {named}")
            continue
        mistakes = [
            f"held[{place}].{name}: {value!r}; expected an integer from {least}"
            for name, value in zip(HELD, row)
            if not _is_whole(value, least := int(name == "processes"))
        ]
        mistake = _mistake_in(row[len(HELD) :], resources)
        if mistake:
            mistakes.append(f"held[{place}].demand{mistake}")
        if not mistakes and nodes is not None and row[0] >= nodes:
            expected = f"expected a node from 0 to {nodes - 1}"
            mistakes.append(f"held[{place}].node: {row[0]}; {expected}")
        if not mistakes and row[2] >= row[3]:
            expected = f"expected more than its start, {row[2]}"
            mistakes.append(f"held[{place}].end: {row[3]}; {expected}")
        wrong += mistakes
        rows.append(list(row))
    _note(check, "held", wrong)
    if resources is None or wrong:
        return _frozen(np.empty((0, width)))
    return _frozen(np.array(rows, dtype=np.int64).reshape(-1, width))


def _are_sound(entries: Any, nodes: Any, width: int) -> bool:
    """Return whether holdings are an array that can be kept as it is, as almost all are."""
    if not isinstance(entries, np.ndarray) or entries.dtype != np.int64:
        return False
    if entries.ndim != 2 or entries.shape[1] != width:
        return False
    node, processes, start, end = entries.T[:4]
    within = not entries.size or (entries.min() >= 0 and entries.max() <= LARGEST)
    return bool(within and (node < nodes).all() and processes.all() and (start < end).all())


def _row_of(entry: Mapping[str, Any]) -> list[Any] | None:
    if set(entry) != {*HELD, "demand"} or not isinstance(entry["demand"], list | tuple):
        return None
    return [*(entry[name] for name in HELD), *entry["demand"]]


def _mistake_in(row: Any, count: int | None) -> str:
    """Return what is wrong with a demand of so many resources; nothing if it is fine."""
    if not isinstance(row, list | tuple):
        return f": {row!r}; expected a list of integers, one for each of capacity"
    if count is not None and len(row) != count:
        return f": {len(row)} values; expected {count}, one for each of capacity"
    for place, value in enumerate(row):
        if not _is_whole(value, 0):
            return f"[{place}]: {value!r}; expected an integer from 0"
    return ""


def _check_together(check: FieldChecks, processors: int, held: Ints) -> None:
    """Note where holdings have more processes on a node than it has processors."""
    node, processes, start, end = held.T[:4]
    change = np.concatenate((-processes, processes))
    # at equal times the sort is stable: ends come before starts
    order = np.lexsort((np.concatenate((end, start)), np.tile(node, 2)))
    # on each node all that starts also ends, so one sum runs through all nodes
    over = order[change[order].cumsum() > processors] - len(held)
    wrong = [
        f"held[{row}]: more than {processors} processes on node {node[row]} at {start[row]} s; "
        f"expected at most its {processors} processors"
        for row in np.sort(over[over >= 0]).tolist()
    ]
    _note(check, "held", wrong)


def _is_countable(room: int, capacity: Ints, held: Ints, jobs: tuple[Ints, Ints, Ints]) -> bool:
    """Return whether no sum of penalties can leave 64 bits; `room` is nodes x processors^2."""
    _, walltimes, demands = jobs
    unit = math.lcm(*capacity.tolist())
    most = np.maximum(held[:, len(HELD) :].max(axis=0, initial=0), demands.max(axis=0, initial=0))
    each = sum(b * (unit // c) for b, c in zip(most.tolist(), capacity.tolist()))
    return bool((room * each + unit) * int(walltimes.max(initial=1)) < COUNTABLE)


def _plain(value: Any) -> Any:
    """Return a whole number of numpy as one of Python, anything else as it is."""
    return int(value) if isinstance(value, np.integer) else value


def _is_whole(value: Any, least: int, most: int = LARGEST) -> bool:
    return type(value) is int and least <= value <= most


def _frozen(array: NDArray[Any]) -> Ints:
    frozen = array.astype(np.int64)
    frozen.flags.writeable = False
    return frozen


def _note(check: FieldChecks, name: str, wrong: list[str]) -> None:
    check.mistakes += wrong[:SHOWN]
    if len(wrong) > SHOWN:
        check.mistakes.append(f"{name}: {len(wrong) - SHOWN} more such values")
