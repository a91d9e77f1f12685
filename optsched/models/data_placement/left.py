"""Files that stay until the next start, in the integer program of a data placement.

Who finds a file that its last user left, and what evicts it: symbols as on the model's page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optsched.models.data_placement.layout import Layout
from optsched.models.data_placement.plan import LEFT_OUT, Plan
from optsched.models.statement import Statement

if TYPE_CHECKING:
    from optsched.models.data_placement.problem import DataPlacement

Ints = NDArray[np.int64]


def state_left(problem: DataPlacement, at: Layout, state: Statement) -> None:
    """State that a file is found later unless a job starts on the node in between."""
    _state_starts(problem, at, state)
    for pair in at.pairs:
        for i, j in (pair, pair[::-1]):
            name, evictors = f"{i + 1}_{j + 1}", at.between(i, j)
            for k, between in evictors:
                reasons = (at["same", min(i, k), max(i, k)], at["o", i, k], at["first", k, j])
                _state_all(state, f"between_{name}_{k + 1}", between, reasons)
            _state_eviction(state, name, at["next", i, j], at["gone", i, j], evictors)
    for entry, j in at.finds:
        node, _, _, _, until = problem.resident[entry].tolist()
        name, evictors = f"file_{entry + 1}_{j + 1}", at.evictors(entry, j)
        for k, evicts in evictors:
            reasons = (at["x", k, node], at["over", entry, k], at["first", k, j])
            _state_all(state, f"evicts_{name}_{k + 1}", evicts, reasons)
        if until > 0 or not problem.started[node]:
            _state_eviction(state, name, at["still", entry, j], at["late", entry, j], evictors)


def _state_starts(problem: DataPlacement, at: Layout, state: Statement) -> None:
    """State which jobs are on one node, and which starts are before which times."""
    latest, walltimes = at.latest, problem.walltimes.tolist()
    for one in range(at.jobs):
        for other in range(at.jobs):
            if one == other:
                continue
            name, after = f"{one + 1}_{other + 1}", {at["s", other]: 1, at["s", one]: -1}
            first, order = at["first", one, other], at["o", one, other]
            state.add(f"first_{name}", after | {first: -(latest + 1)}, lower=-latest)
            state.add(f"not_first_{name}", after | {first: -latest}, 0)
            slack = latest - walltimes[one] + 1
            state.add(f"no_order_{name}", after | {order: -slack}, walltimes[one] - 1)
            if one < other:
                _state_same(at, state, one, other)
    for entry in dict.fromkeys(entry for entry, _ in at.finds):
        until = int(problem.resident[entry, 4])
        for job in range(at.jobs):
            s, over, name = at["s", job], at["over", entry, job], f"{entry + 1}_{job + 1}"
            state.add(f"over_{name}", {s: 1, over: -until}, lower=0)
            state.add(f"not_over_{name}", {s: 1, over: -max(latest - until + 1, 0)}, until - 1)


def _state_same(at: Layout, state: Statement, one: int, other: int) -> None:
    same, name = at["same", one, other], f"{one + 1}_{other + 1}"
    places = [at["x", one, node] for node in range(at.nodes)]
    state.add(f"same_{name}", {same: 1} | dict.fromkeys(places, -1), 0)
    for node, here in enumerate(places):
        there = at["x", other, node]
        state.add(f"same_{name}_{node + 1}", {here: 1, there: 1, same: -1}, 1)
        state.add(f"not_same_{name}_{node + 1}", {here: 1, there: -1, same: 1}, 1)


def _state_all(state: Statement, name: str, both: int, reasons: Sequence[int]) -> None:
    """State that one variable is 1 when all others are, and only then."""
    state.add(name, dict.fromkeys(reasons, 1) | {both: -1}, len(reasons) - 1)
    for number, reason in enumerate(reasons):
        state.add(f"{name}_{number + 1}", {both: 1, reason: -1}, 0)


def _state_eviction(
    state: Statement, name: str, found: int, gone: int, evictors: Sequence[tuple[int, int]]
) -> None:
    """State that a file that was left is found unless something evicts it."""
    state.add(f"evicted_{name}", {gone: 1} | {evicts: -1 for _, evicts in evictors}, 0)
    for k, evicts in evictors:
        state.add(f"still_{name}_{k + 1}", {found: 1, evicts: 1}, 1)


def fill_left(problem: DataPlacement, at: Layout, plan: Plan, x: Ints) -> None:
    """Set the variables of starts in the vector of a plan, and which of them evict files.

    A job that is left out starts at the horizon, on no node.
    """
    node = plan.node.tolist()
    start = np.where(plan.node == LEFT_OUT, problem.horizon, plan.start).tolist()
    for one in range(at.jobs):
        for other in range(at.jobs):
            if one < other:
                x[at["same", one, other]] = node[one] == node[other] != LEFT_OUT
            if one != other:
                x[at["first", one, other]] = start[one] < start[other]
    for pair in at.pairs:
        for i, j in (pair, pair[::-1]):
            end = start[i] + problem.walltimes[i]
            for k, between in at.between(i, j):
                x[between] = node[k] == node[i] != LEFT_OUT and end <= start[k] < start[j]
    for entry, j in at.finds:
        here, _, _, _, until = problem.resident[entry].tolist()
        for k in range(at.jobs):
            x[at["over", entry, k]] = start[k] >= until
        for k, evicts in at.evictors(entry, j):
            x[evicts] = node[k] == here and until <= start[k] < start[j]


def stays(at: Layout, x: Ints, i: int, j: int) -> bool:
    """Return whether a file that job i left is found by job j, in a vector filled so far."""
    return at.until_next and not any(x[between] for _, between in at.between(i, j))


def entry_stays(at: Layout, x: Ints, entry: int, j: int) -> bool:
    """Return whether a resident file that was left is found by a job, in a vector filled so far."""
    if not at.until_next or at.upper[at["still", entry, j]] == 0:
        return False
    return not any(x[evicts] for _, evicts in at.evictors(entry, j))
