"""Strategy of the Lagrangian search: a direct search and destructive bounds in turn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optsched.solvers.window_mkp._lagrangian.knapsack import CELLS_PER_STEP
from optsched.solvers.window_mkp._lagrangian.refilling import refill_slots
from optsched.solvers.window_mkp._lagrangian.relaxation import initial_multipliers
from optsched.solvers.window_mkp._lagrangian.slots import (
    LARGEST_SET,
    best_patterns,
    coarseness,
    leaders,
)
from optsched.solvers.window_mkp._lagrangian.splitting import surrogate
from optsched.solvers.window_mkp._lagrangian.tree_search import PIECE, UNLIMITED, TreeSearch
from optsched.solvers.window_mkp._reduction import Ints

FIRST_BAND = 10
"""Divisor of the gap at the root that gives the width of the first band."""

PATIENCE = 5
"""Failed neighborhood searches after which the incumbent is assumed to be optimal."""

GLANCE = 20
"""Evaluations of the relaxation before the first search."""

FEW_COLUMNS = 1 << 9
"""Largest number of columns in the direct search."""

HEAD_START = 1 << 25
"""Head start of the direct search over the destructive bound, in table cells."""

NEIGHBORHOOD_LIMIT = 20
"""Limit of nodes and column-search pieces in a neighborhood search."""

REFILL_SHARE = 0.4
"""Share of the work that goes into refilling slots while the incumbent is below the bound."""

DONE = object()


class DestructiveSearch(TreeSearch):
    """Branch and bound for windows that the plain search does not solve.

    Two searches alternate, and share incumbent and bound. The direct search looks for any placement
    better than the incumbent, which is enough for small windows. The bounds prune best, however, if
    the incumbent is close. So the other search starts just below the bound, and looks for a
    placement within a narrow band under it. If there is none, the bound is lowered to the end of
    the band, and the next band is twice as wide if this one cost less than all bands before it.
    Between its nodes, large neighborhood search improves the incumbent by freeing a few slots.
    After repeated failures of that, the band extends down to the incumbent.

    The instance is reduced by `reduce`; `placement` is the initial slot of each job, -1 if not
    placed, and is overwritten. The seed determines the neighborhoods.
    """

    def __init__(
        self, weights: Ints, profits: Ints, capacities: Ints, placement: Ints, seed: int
    ) -> None:
        super().__init__(weights, profits, capacities, placement)
        self.multipliers = np.zeros_like(weights)
        self.neighborhood = 4
        self.in_vain = 0
        self.random = np.random.default_rng(seed)
        self.refill_state = self.random.integers(1, 1 << 62, 1, np.uint64)
        self.refill_cells = 0

    def run(self) -> Iterator[None]:
        """Search until `best` equals `bound`; pause after each piece of some milliseconds."""
        self.surrogate()
        yield
        yield from self.refill()
        if self.best >= self.bound:
            return
        multipliers = (
            0.9 * initial_multipliers(self.weights, self.profits, self.capacities)
        ).astype(np.int64)
        self.lower(
            self.relax(self.domain, multipliers, self.best, GLANCE, np.array([1.5]), True)[0]
        )
        yield
        direct = self.search(self.domain.copy(), multipliers, 0, most=FEW_COLUMNS)
        bands = self.search_bands()
        lead = HEAD_START
        while self.best < self.bound:
            before = self.cells
            if lead >= 0:
                if next(direct, DONE) is DONE:
                    self.bound = self.best
                lead -= self.cells - before
            else:
                next(bands, None)
                lead += self.cells - before
            yield
            yield from self.refill()

    def search_bands(self) -> Iterator[None]:
        """Lower the bound band by band."""
        yield from self.descend()
        if self.best >= self.bound:
            return
        width = 1 + (self.bound - self.best) // FIRST_BAND
        first = self.cells
        while True:
            began = self.cells
            step = np.ones(1)
            self.lower(self.relax(self.domain, self.multipliers, self.best, 200, step, True)[0])
            yield
            if self.best >= self.bound:
                return
            floor = self.best
            if self.in_vain < PATIENCE:
                floor = max(floor, self.bound - width)
            searched, spent_on_neighborhoods = 0, 0
            before = self.cells
            for _ in self.search(self.domain.copy(), self.multipliers.copy(), floor):
                searched += self.cells - before
                yield
                if self.best >= self.bound:
                    return
                before, best = self.cells, self.best
                if spent_on_neighborhoods < searched / (1 + self.in_vain / PATIENCE):
                    yield from self.search_neighborhood()
                    spent_on_neighborhoods += self.cells - before
                    self.in_vain = 0 if self.best > best else self.in_vain + 1
                    before = self.cells
            self.bound = max(floor, self.best)
            if self.cells - began < began - first:
                width *= 2

    def surrogate(self) -> None:
        """Solve the surrogate relaxation, and split its solution among the slots."""
        candidate = np.empty_like(self.placement)
        bound, profit, steps, cells = surrogate(
            self.weights,
            self.profits,
            self.capacities,
            self.heaviest,
            int(min(UNLIMITED, self.allowance)),
            candidate,
        )
        self.cells += CELLS_PER_STEP * steps + cells
        self.keep(profit, candidate)
        self.lower(bound // self.scale)

    def descend(self) -> Iterator[None]:
        """Optimize the multipliers of the root from two starts, and continue with the better."""
        share = initial_multipliers(self.weights, self.profits, self.capacities)
        starts = []
        for fraction in (0.5, 0.9):
            multipliers, step = (fraction * share).astype(np.int64), np.array([1.5])
            for evaluations in (100, 200):
                if self.best >= self.bound:
                    return
                bound, _ = self.relax(self.domain, multipliers, self.best, evaluations, step, True)
                self.lower(bound)
                yield
            starts.append((bound, multipliers, step))
        _, self.multipliers, step = min(starts, key=lambda start: start[0])
        for _ in range(2):
            if self.best >= self.bound:
                return
            self.lower(self.relax(self.domain, self.multipliers, self.best, 300, step, True)[0])
            yield

    def search_neighborhood(self) -> Iterator[None]:
        """Free some slots of the incumbent and fill them again (large neighborhood search).

        Slots are drawn with probabilities proportional to their regret: the value of their best
        content less that of their present one, at the multipliers of the root. The number of slots
        grows after a complete search, and shrinks otherwise.
        """
        m = len(self.capacities)
        count = min(self.neighborhood, m - 1)
        if count < 2:
            return
        slot_of = np.where(self.placement < 0, m, self.placement)
        held = np.bincount(slot_of, self.multipliers, m + 1)[:m]
        regret = np.maximum(self.slot_values() - held, 0.0) + self.scale / 4
        drawn = self.random.choice(m, count, replace=False, p=regret / regret.sum())
        domain = self.domain.copy()
        domain[:m] &= np.isin(np.arange(m), drawn)[:, None]
        for job in np.flatnonzero(~np.isin(slot_of, [*drawn, m])):
            domain[:, job] = False
            domain[slot_of[job], job] = True
        decided = yield from self.search(
            domain, self.multipliers.copy(), 0, NEIGHBORHOOD_LIMIT, False
        )
        self.neighborhood += 1 if decided else -1

    def refill(self) -> Iterator[None]:
        """Refill slots of the incumbent until this has taken its share of the work."""
        if self.capacities.max() > LARGEST_SET:
            return
        while self.best < self.bound and self.refill_cells <= REFILL_SHARE * self.cells:
            profit, cells = refill_slots(
                self.weights,
                self.profits // self.scale,
                self.capacities,
                self.bound,
                int(min(self.allowance, PIECE)),
                self.refill_state,
                self.placement,
            )
            self.best = profit
            self.cells += cells
            self.refill_cells += cells
            yield

    def slot_values(self) -> Ints:
        """Bound the value of each slot at the root's multipliers, int64 array of shape (slots,)."""
        allowed = np.ascontiguousarray(self.domain[:-1])
        m, n = allowed.shape
        scale = coarseness(n, int(self.capacities.max()))
        weights, residual = self.weights // scale, self.capacities // scale
        table = np.empty((n + 1, int(residual.max()) + 1), np.int64)
        value = np.empty(m, np.int64)
        self.cells += best_patterns(
            self.multipliers, weights, residual, allowed, leaders(allowed), table,
            np.empty((m, n), np.bool_), value,
        )  # fmt: skip
        return value
