"""The fields of a threshold allocation: a quick check that all is well, and a slow one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import LARGEST, SHOWN, FieldChecks
from optsched.models.read_only import once

GOALS = ("start", "penalty", "response", "everybody")

MOST = {"nodes": 10**6, "processors": 64, "asked": LARGEST, "walltime": LARGEST}
"""The single numbers, from 1, and the most that each may be."""

HELD = ("node", "processes", "start", "end")
"""What is told of a holding before its demand, in the order of the columns."""

NO_PENALTY = 1000
"""The penalty factor of a job that loses nothing, in thousandths."""

LARGEST_PENALTY = 2**62
"""Penalties of everybody, in units, stay below this, so that sums fit into 64 bits."""

Ints = NDArray[np.int64]


class Fields(NamedTuple):
    """What `ThresholdAllocation` is made of, see there."""

    nodes: Any
    processors: Any
    capacity: Any
    held: Any
    asked: Any
    walltime: Any
    demand: Any
    threshold: Any = None
    goal: Any = "start"
    latest: Any = None
    resources: Any = None
    job: Any = None


REQUIRED = Fields._fields[:7]
OPTIONAL = Fields._fields[7:]


def default_names(count: int) -> tuple[str, ...]:
    """Return the names of so many resources that were not named."""
    return ("bandwidth",) if count == 1 else tuple(f"resource-{r + 1}" for r in range(count))


def with_defaults(fields: Fields) -> Fields:
    """Return sound fields with read-only arrays, and the names of the resources."""
    return fields._replace(
        capacity=_kept(fields.capacity),
        held=_kept(fields.held),
        demand=_kept(fields.demand),
        resources=fields.resources or default_names(len(fields.capacity)),
    )


def is_fine(fields: Fields) -> bool:
    """Return whether the fields are arrays of int64 and sound, so as to be kept as they are.

    Almost every problem of a simulation is, and this takes some 30 microseconds.
    """
    nodes, processors, capacity, held, asked, walltime, demand, *rest = fields
    threshold, goal, latest, resources, job = rest
    for number, most in zip((nodes, processors, asked, walltime), MOST.values()):
        if type(number) is not int or not 0 < number <= most:
            return False
    if asked > nodes * processors or goal not in GOALS:
        return False
    for number, least in ((threshold, NO_PENALTY), (latest, 0)):
        if number is not None and not (type(number) is int and least <= number <= LARGEST):
            return False
    if not (_is_vector(capacity, 1) and _is_vector(demand, 0)):
        return False
    count = len(capacity)
    if len(demand) != count or not _are_sound(held, nodes, processors, count):
        return False
    if resources is not None and not _are_names(resources, count):
        return False
    if job is not None and type(job) not in (int, str):
        return False
    return _is_countable(fields)


@once
def _are_sound(held: Ints, nodes: int, processors: int, resources: int) -> bool:
    """Return whether holdings can be kept as they are."""
    if not _is_table(held) or held.shape[1] != len(HELD) + resources:
        return False
    if len(held):
        node, processes, start, end = held.T[:4]
        if node.max() >= nodes or not processes.min() or (start >= end).any():
            return False
    return len(crowded(held, processors)) == 0


@once
def _most(held: Ints) -> list[int]:
    """Return the last end of holdings, and the largest demand of each resource."""
    return [int(most) for most in held[:, 3:].max(axis=0, initial=0)]


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
    singles = {name: _whole(fields, name) for name in MOST}
    sound = set()
    for name, value in singles.items():
        if _is_whole(value, 1, MOST[name]):
            sound.add(name)
        elif name in given:
            expected = f"expected an integer from 1 to {MOST[name]}"
            check.mistakes.append(f"{name}: {value!r}; {expected}")
    if {"nodes", "processors", "asked"} <= sound:
        room = singles["nodes"] * singles["processors"]
        if singles["asked"] > room:
            expected = f"expected at most the {room} processors of all nodes"
            check.mistakes.append(f"asked: {singles['asked']}; {expected}")
    capacity = check.integers("capacity", fields.capacity, at_least=1)
    demand = check.integers("demand", fields.demand, at_least=0)
    if {"capacity", "demand"} <= set(given):
        check.same_length("demand", demand, "capacity", capacity)
    limits = {name: _whole(fields, name) for name in ("threshold", "latest")}
    for name, least in (("threshold", NO_PENALTY), ("latest", 0)):
        if limits[name] is not None and not _is_whole(limits[name], least):
            check.mistakes.append(f"{name}: {limits[name]!r}; expected an integer from {least}")
    if fields.goal not in GOALS:
        expected = f"expected {', '.join(GOALS[:-1])} or {GOALS[-1]}"
        check.mistakes.append(f"goal: {fields.goal!r}; {expected}")
    resources = check.labels("resources", fields.resources)
    if resources is not None and "capacity" in given:
        check.same_length("resources", resources, "capacity", capacity)
    if fields.job is not None and type(fields.job) not in (int, str):
        check.mistakes.append(f"job: {fields.job!r}; expected a label, a text or an integer")
    count = len(capacity) if "capacity" in given else None
    held = _holdings(check, fields.held, singles["nodes"] if "nodes" in sound else None, count)
    read = Fields(
        **singles,
        capacity=capacity,
        held=held,
        demand=demand,
        **limits,
        goal=fields.goal,
        resources=None if resources is None else tuple(map(str, resources)),
        job=fields.job,
    )
    if len(check.mistakes) == before and set(given) == set(REQUIRED):
        processors = singles["processors"]
        if not _is_countable(read):
            check.mistakes.append(
                "capacity: nodes, times, demands and capacities are too large together; "
                "coarser units make penalties that can be counted in 64 bits"
            )
            return read
        wrong = [
            f"held[{row}]: more than {processors} processes on node {held[row, 0]} "
            f"at {held[row, 2]} s; expected at most its {processors} processors"
            for row in crowded(held, processors).tolist()
        ]
        _note(check, "held", wrong)
    return read


def _is_countable(fields: Fields) -> bool:
    """Return whether no sum of penalties can leave 64 bits."""
    unit = math.lcm(*fields.capacity.tolist())
    last, *demands = _most(fields.held)
    horizon = last + fields.walltime
    each = 1
    for capacity, own, held in zip(fields.capacity.tolist(), fields.demand.tolist(), demands):
        each += max(own, held) * (unit // capacity)
    worst = fields.processors**2 * each * fields.walltime + horizon * (unit + 2)
    return bool(fields.nodes * worst < LARGEST_PENALTY)


def _holdings(check: FieldChecks, entries: Any, nodes: int | None, count: int | None) -> Ints:
    """Return the holdings, objects on file or rows of an array, as an array."""
    named = f"{', '.join(HELD)} and demand"
    if isinstance(entries, np.ndarray):
        entries = entries.tolist()
    width = len(HELD) + (count or 0)
    blank = np.empty((0, width), dtype=np.int64)
    if not isinstance(entries, list | tuple):
        check.mistakes.append(f"held: expected a list of objects with {named}")
        return blank
    rows: list[list[int]] = []
    wrong: list[str] = []
    for place, entry in enumerate(entries):
        row = entry
        if isinstance(entry, Mapping):
            row = _row_of(entry)
        if not isinstance(row, list | tuple) or len(row) < len(HELD):
            wrong.append(f"held[{place}]: expected an object with {named}")
            continue
        if count is not None and len(row) != width:
            got = len(row) - len(HELD)
            wrong.append(f"held[{place}].demand: {got} values; expected one for each of capacity")
            continue
        names = [*HELD, *(f"demand[{r}]" for r in range(len(row) - len(HELD)))]
        mistakes = [
            f"held[{place}].{name}: {value!r}; expected an integer from {least}"
            for name, value in zip(names, row)
            if not _is_whole(value, least := int(name == "processes"))
        ]
        if mistakes:
            wrong += mistakes
            continue
        if nodes is not None and row[0] >= nodes:
            wrong.append(f"held[{place}].node: {row[0]}; expected a node from 0 to {nodes - 1}")
        if row[2] >= row[3]:
            wrong.append(f"held[{place}].end: {row[3]}; expected more than its start, {row[2]}")
        rows.append(list(row))
    _note(check, "held", wrong)
    if count is None or wrong:
        return blank
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _row_of(entry: Mapping[str, Any]) -> list[Any] | None:
    if set(entry) != {*HELD, "demand"} or not isinstance(entry["demand"], list | tuple):
        return None
    return [*(entry[name] for name in HELD), *entry["demand"]]


def _whole(fields: Fields, name: str) -> Any:
    """Return a field; a whole number of numpy as one of Python."""
    value = getattr(fields, name)
    return int(value) if isinstance(value, np.integer) else value


def _is_whole(value: Any, least: int, most: int = LARGEST) -> bool:
    return type(value) is int and least <= value <= most


def _are_names(names: Any, count: int) -> bool:
    return type(names) is tuple and len(names) == count and all(type(n) is str for n in names)


def _is_vector(values: Any, least: int) -> bool:
    """Return whether it is an int64 array of one dimension, with one value for each resource."""
    if not (isinstance(values, np.ndarray) and values.dtype == np.int64 and values.ndim == 1):
        return False
    # of so few values, Python is faster than numpy
    return all(least <= value <= LARGEST for value in values.tolist())


def _is_table(values: Any) -> bool:
    """Return whether it is an int64 array of two dimensions, of numbers from 0."""
    return (
        isinstance(values, np.ndarray)
        and values.dtype == np.int64
        and values.ndim == 2
        and (not values.size or bool(values.min() >= 0 and values.max() <= LARGEST))
    )


def _kept(array: Ints) -> Ints:
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def _note(check: FieldChecks, name: str, wrong: list[str]) -> None:
    check.mistakes += wrong[:SHOWN]
    if len(wrong) > SHOWN:
        check.mistakes.append(f"{name}: {len(wrong) - SHOWN} more such values")
