"""Integer solutions of the master: dives, and the integer program over its columns."""

from __future__ import annotations

from collections import Counter

import numpy as np

from optsched.solvers.node_placement._relaxation import Relaxation

SEARCH = 1_000
"""Limit of the search for the best content in a dive."""

ROUNDS, ROUNDS_IF_FEW = 3, 12
"""Rounds of pricing between two steps of a dive, and those for few kinds of nodes."""

FEW_KINDS = 100

WHOLE = 1e-6
"""Distance from an integer that counts as one."""

NEARLY_WHOLE = 0.8


def dive(relaxation: Relaxation, share: float) -> Counter[int]:
    """Fix contents of nodes until all nodes have one; return the nodes with each content.

    In each step, the integer parts of the solution are fixed and the given share of the columns
    with fractions, the largest ones; then new columns are priced for what is left.
    """
    master, effort, instance = relaxation.master, relaxation.effort, relaxation.instance
    nodes, supply = relaxation.nodes.copy(), relaxation.supply.copy()
    chosen: Counter[int] = Counter()
    rounds = ROUNDS_IF_FEW if (nodes > 0).sum() < FEW_KINDS else ROUNDS
    tolerance = 1e-6 * float(instance.classes.weights.max(initial=1))
    while effort.spent() < 1:
        fixed = 0
        for column, times in _largest(master.taken, share):
            number = master.columns[column]
            content = relaxation.contents.all[number]
            left = relaxation.demand - supply
            used = content.counts > 0
            if not (left[used] > 0).any():
                continue
            useful = max(1, int((left[used] // content.counts[used]).min()))
            times = min(times, int(nodes[content.kind]), useful)
            chosen[number] += times
            nodes[content.kind] -= times
            supply += times * content.counts
            fixed += times
        if not fixed or not nodes.any():
            break
        master.restrict(nodes, supply)
        if not relaxation.solve():
            break
        for _ in range(rounds):
            todo, _ = relaxation.price(master.prices, nodes, supply, tolerance, SEARCH)
            if not relaxation.add_priced(todo, master.prices, master.nodes_worth):
                break
            if not relaxation.solve():
                break
    master.restrict(relaxation.nodes, relaxation.supply)
    return +chosen


def _largest(taken: np.ndarray, share: float) -> list[tuple[int, int]]:
    """Return the columns to fix next, and how often."""
    columns = np.flatnonzero(taken > WHOLE)
    whole = np.floor(taken[columns] + WHOLE).astype(np.int64)
    rest = taken[columns] - whole
    picks = [(int(c), int(t)) for c, t in zip(columns, whole) if t]
    open_ = np.flatnonzero(rest > WHOLE)
    order = open_[np.argsort(-rest[open_], kind="stable")]
    first = max(1, int(share * len(order)))
    picks += [
        (int(columns[place]), 1)
        for rank, place in enumerate(order)
        if rank < first or rest[place] > NEARLY_WHOLE
    ]
    return picks


def choose_columns(relaxation: Relaxation, until: float) -> Counter[int] | None:
    """Return the nodes with each content in an integer solution of the master, or None."""
    found = relaxation.master.solve_integer(until)
    if found is None:
        return None
    columns = relaxation.master.columns
    return Counter({columns[place]: int(found[place]) for place in np.flatnonzero(found)})
