"""The fields of a threshold allocation: a quick check that all is well, and a slow one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import LARGEST, FieldChecks, is_whole, plain
from optsched.models.holdings import (
    COUNTABLE,
    MOST_NODES,
    NO_PENALTY,
    WIDEST,
    are_sound,
    check_crowded,
    default_names,
    holdings,
)
from optsched.models.read_only import kept, once

GOALS = ("start", "penalty", "response", "everybody")

MOST = {"nodes": MOST_NODES, "processors": WIDEST, "asked": LARGEST, "walltime": LARGEST}
"""The single numbers, from 1, and the most that each may be."""

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


def with_defaults(fields: Fields) -> Fields:
    """Return sound fields with read-only arrays, and the names of the resources."""
    return fields._replace(
        capacity=kept(fields.capacity),
        held=kept(fields.held),
        demand=kept(fields.demand),
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
    if len(demand) != count or not are_sound(held, nodes, processors, count):
        return False
    if resources is not None and not _are_names(resources, count):
        return False
    if job is not None and type(job) not in (int, str):
        return False
    return _is_countable(fields)


@once
def _most(held: Ints) -> list[int]:
    """Return the last end of holdings, and the largest demand of each resource."""
    return [int(most) for most in held[:, 3:].max(axis=0, initial=0)]


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
    singles = {name: plain(getattr(fields, name)) for name in MOST}
    sound = set()
    for name, value in singles.items():
        if is_whole(value, 1, MOST[name]):
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
    limits = {name: plain(getattr(fields, name)) for name in ("threshold", "latest")}
    for name, least in (("threshold", NO_PENALTY), ("latest", 0)):
        if limits[name] is not None and not is_whole(limits[name], least):
            expected = f"expected an integer from {least} to {LARGEST}"
            check.mistakes.append(f"{name}: {limits[name]!r}; {expected}")
    if fields.goal not in GOALS:
        expected = f"expected {', '.join(GOALS[:-1])} or {GOALS[-1]}"
        check.mistakes.append(f"goal: {fields.goal!r}; {expected}")
    resources = check.labels("resources", fields.resources)
    if resources is not None and "capacity" in given:
        check.same_length("resources", resources, "capacity", capacity)
    if fields.job is not None and type(fields.job) not in (int, str):
        check.mistakes.append(f"job: {fields.job!r}; expected a label, a text or an integer")
    count = len(capacity) if "capacity" in given else None
    held = holdings(check, fields.held, singles["nodes"] if "nodes" in sound else None, count)
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
        check_crowded(check, held, processors)
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
    return bool(fields.nodes * worst < COUNTABLE)


def _are_names(names: Any, count: int) -> bool:
    return type(names) is tuple and len(names) == count and all(type(n) is str for n in names)


def _is_vector(values: Any, least: int) -> bool:
    """Return whether it is an int64 array of one dimension, with one value for each resource."""
    if not (isinstance(values, np.ndarray) and values.dtype == np.int64 and values.ndim == 1):
        return False
    # of so few values, Python is faster than numpy
    return all(least <= value <= LARGEST for value in values.tolist())
