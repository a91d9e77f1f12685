"""The fields of a joint allocation, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.models.fields import LARGEST, FieldChecks, is_whole, plain
from optsched.models.holdings import (
    COUNTABLE,
    HELD,
    MOST_NODES,
    NO_PENALTY,
    WIDEST,
    are_sound,
    check_crowded,
    default_names,
    holdings,
    mistake_in,
)
from optsched.models.read_only import kept

GOALS = ("processors", "penalty")

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
    nodes, processors = plain(fields.nodes), plain(fields.processors)
    for name, value, most in (("nodes", nodes, MOST_NODES), ("processors", processors, WIDEST)):
        if name in given and not is_whole(value, 1, most):
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
        check.note("asked", wrong)
    demands = _demands(check, fields.demands, resources)
    if {"asked", "demands"} <= set(given):
        check.same_length("demands", demands, "asked", asked)
    if sized and resources and are_sound(fields.held, nodes, processors, resources):
        held = kept(fields.held)
    else:
        held = holdings(check, fields.held, nodes if sized else None, resources)
    threshold = plain(fields.threshold)
    if threshold is not None and not is_whole(threshold, NO_PENALTY):
        expected = f"expected an integer from {NO_PENALTY} to {LARGEST}"
        check.mistakes.append(f"threshold: {threshold!r}; {expected}")
    if fields.goal not in GOALS:
        check.mistakes.append(f"goal: {fields.goal!r}; expected {' or '.join(GOALS)}")
    names = check.labels("resources", fields.resources)
    if names is not None and resources is not None:
        check.same_length("resources", names, "capacity", capacity)
    jobs = check.labels("jobs", fields.jobs)
    if jobs is not None and "asked" in given:
        check.same_length("jobs", jobs, "asked", asked)
    if len(check.mistakes) == before and set(given) == set(REQUIRED):
        check_crowded(check, held, processors)
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
        return kept(np.empty((0, resources or 0), dtype=np.int64))
    wrong = []
    for job, row in enumerate(values):
        mistake = mistake_in(row, resources)
        if mistake:
            wrong.append(f"demands[{job}]{mistake}")
    check.note("demands", wrong)
    if resources is None or wrong:
        return kept(np.zeros((len(values), resources or 0), dtype=np.int64))
    return kept(np.array(values, dtype=np.int64).reshape(len(values), resources))


def _is_countable(room: int, capacity: Ints, held: Ints, jobs: tuple[Ints, Ints, Ints]) -> bool:
    """Return whether no sum of penalties can leave 64 bits; `room` is nodes x processors^2."""
    _, walltimes, demands = jobs
    unit = math.lcm(*capacity.tolist())
    most = np.maximum(held[:, len(HELD) :].max(axis=0, initial=0), demands.max(axis=0, initial=0))
    each = sum(b * (unit // c) for b, c in zip(most.tolist(), capacity.tolist()))
    return bool((room * each + unit) * int(walltimes.max(initial=1)) < COUNTABLE)
