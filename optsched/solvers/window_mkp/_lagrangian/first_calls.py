"""First calls of the kernels that Python calls, which compile or load them.

The two functions share few kernels, so that two processes compile them in half of the time. The
shared ones come early in one function and late in the other, which then finds them on disk.
"""

from __future__ import annotations

import numpy as np

from optsched.models.window_mkp import WindowMKP
from optsched.solvers.window_mkp._lagrangian.destructive_search import DestructiveSearch
from optsched.solvers.window_mkp._lagrangian.refilling import refill_slots
from optsched.solvers.window_mkp._lagrangian.relaxation import initial_multipliers
from optsched.solvers.window_mkp._reduction import by_efficiency, reduce


def call_column_search() -> None:
    """Call the kernels of the column search."""
    search = _small_search()
    multipliers = np.zeros_like(search.weights)
    leaf = search.leaf(search.domain, multipliers, 0, True)
    leaf.search.by_slot().run(0, 0)
    search.advance(leaf, 0)


def call_other_kernels() -> None:
    """Call all other kernels."""
    window = WindowMKP([1, 2], [2])
    reduce(window.weights, window.profits, window.capacities)  # for read-only arrays
    search = _small_search()
    by_efficiency(np.arange(len(search.weights)), search.weights, search.profits)
    refill_slots(
        search.weights, search.profits, search.capacities, 0, 0, search.refill_state,
        search.placement,
    )  # fmt: skip
    search.slot_values()
    multipliers = initial_multipliers(search.weights, search.profits, search.capacities)
    search.surrogate()
    search.relax(search.domain, multipliers, 0, 1, np.ones(1), True)


def _small_search() -> DestructiveSearch:
    weights = np.array([7, 6, 5, 4, 3])
    return DestructiveSearch(weights, weights + 1, np.array([3, 8, 9]), np.full(5, -1), 0)
