"""The strategy of the search: straight for a better placement, and in bands below the bound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optsched.solvers.window_mkp._bands.knapsack import CELLS_PER_STEP
from optsched.solvers.window_mkp._bands.relaxation import first_prices
from optsched.solvers.window_mkp._bands.slots import best_patterns, coarseness, leaders
from optsched.solvers.window_mkp._bands.surrogate import surrogate
from optsched.solvers.window_mkp._bands.tree_search import UNLIMITED, TreeSearch
from optsched.solvers.window_mkp._reduction import Ints

FIRST_BAND = 10
"""The first band is this part of the gap at the root."""

PATIENCE = 5
"""Searches around an incumbent in vain before it is taken for the best, and they for less time."""

GLANCE = 20
"""Evaluations of the relaxation before the first search."""

FEW_COLUMNS = 1 << 9
"""More sets of jobs than this are not searched without bands."""

HEAD_START = 1 << 25
"""Cells of the search without bands before that in bands begins."""

POLISHING = 20
"""Nodes of the search around an incumbent, and pieces of searches over columns."""

DONE = object()


class BandSearch(TreeSearch):
    """Branch and bound for windows that the plain search does not close.

    Two searches take turns, and share incumbent and bound. The one asks straight for a placement
    better than the incumbent; small windows end there. But the bound works best when little lies
    between it and the incumbent. So the other begins just below the bound: it asks for a placement
    within a narrow band under it. If there is none the bound has come down, and if that cost less
    than all bands before it, the next one is twice as wide. Between its nodes, incumbents are
    improved by searching around them: all slots but a few stay as they are. When that has been in
    vain for some time, the band goes down to the incumbent.

    Parameters
    ----------
    weights, profits, capacities : int64 arrays
        The instance, as `reduce` returns it.
    placement : int64 array, shape (jobs,)
        The slot of each job in the placement to start from, -1 for none; overwritten.
    seed : int
        Seed of the choice of slots to search around an incumbent.
    """

    def __init__(
        self, weights: Ints, profits: Ints, capacities: Ints, placement: Ints, seed: int
    ) -> None:
        super().__init__(weights, profits, capacities, placement)
        self.prices = np.zeros_like(weights)
        self.refilled = 4
        self.in_vain = 0
        self.random = np.random.default_rng(seed)

    def run(self) -> Iterator[None]:
        """Search until `best` equals `bound`; pause after each piece of some milliseconds."""
        self.surrogate()
        yield
        if self.best >= self.bound:
            return
        prices = (0.9 * first_prices(self.weights, self.profits, self.capacities)).astype(np.int64)
        self.lower(self.relax(self.domain, prices, self.best, GLANCE, np.array([1.5]), True)[0])
        yield
        straight = self.search(self.domain.copy(), prices, 0, most=FEW_COLUMNS)
        bands = self.bands()
        lead = HEAD_START
        while self.best < self.bound:
            before = self.cells
            if lead >= 0:
                if next(straight, DONE) is DONE:
                    self.bound = self.best
                lead -= self.cells - before
            else:
                next(bands, None)
                lead += self.cells - before
            yield

    def bands(self) -> Iterator[None]:
        """Search band below band."""
        yield from self.descend()
        if self.best >= self.bound:
            return
        width = 1 + (self.bound - self.best) // FIRST_BAND
        first = self.cells
        while True:
            began = self.cells
            step = np.ones(1)
            self.lower(self.relax(self.domain, self.prices, self.best, 200, step, True)[0])
            yield
            if self.best >= self.bound:
                return
            floor = self.best
            if self.in_vain < PATIENCE:
                floor = max(floor, self.bound - width)
            searched, polished = 0, 0
            before = self.cells
            for _ in self.search(self.domain.copy(), self.prices.copy(), floor):
                searched += self.cells - before
                yield
                if self.best >= self.bound:
                    return
                before, best = self.cells, self.best
                if polished < searched / (1 + self.in_vain / PATIENCE):
                    yield from self.polish()
                    polished += self.cells - before
                    self.in_vain = 0 if self.best > best else self.in_vain + 1
                    before = self.cells
            self.bound = max(floor, self.best)
            if self.cells - began < began - first:
                width *= 2

    def compile(self) -> None:
        """Call every kernel once."""
        self.surrogate()
        prices = first_prices(self.weights, self.profits, self.capacities)
        self.go_on(self.leaf(self.domain.copy(), prices, 0, True), 0)
        self.relax(self.domain, prices, 0, 1, np.ones(1), True)
        self.slot_values()

    def surrogate(self) -> None:
        """Solve the relaxation with all slots in one, and split its solution."""
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
        """Find good prices for the root, from two starts; the better one is followed further."""
        share = first_prices(self.weights, self.profits, self.capacities)
        starts = []
        for fraction in (0.5, 0.9):
            prices, step = (fraction * share).astype(np.int64), np.array([1.5])
            for evaluations in (100, 200):
                if self.best >= self.bound:
                    return
                bound, _ = self.relax(self.domain, prices, self.best, evaluations, step, True)
                self.lower(bound)
                yield
            starts.append((bound, prices, step))
        _, self.prices, step = min(starts, key=lambda start: start[0])
        for _ in range(2):
            if self.best >= self.bound:
                return
            self.lower(self.relax(self.domain, self.prices, self.best, 300, step, True)[0])
            yield

    def polish(self) -> Iterator[None]:
        """Search around the incumbent: some slots are filled anew, the others stay.

        Slots are drawn in proportion to what they hold less, at the prices of the root, than the
        best they could. Their number grows while that is decided soon, and shrinks otherwise.
        """
        m = len(self.capacities)
        count = min(self.refilled, m - 1)
        if count < 2:
            return
        slot_of = np.where(self.placement < 0, m, self.placement)
        held = np.bincount(slot_of, self.prices, m + 1)[:m]
        regret = np.maximum(self.slot_values() - held, 0.0) + self.scale / 4
        drawn = self.random.choice(m, count, replace=False, p=regret / regret.sum())
        domain = self.domain.copy()
        domain[:m] &= np.isin(np.arange(m), drawn)[:, None]
        for job in np.flatnonzero(~np.isin(slot_of, [*drawn, m])):
            domain[:, job] = False
            domain[slot_of[job], job] = True
        decided = yield from self.search(domain, self.prices.copy(), 0, POLISHING, False)
        self.refilled += 1 if decided else -1

    def slot_values(self) -> Ints:
        """Bound what each slot could hold, at the prices of the root; int64, shape (slots,)."""
        allowed = np.ascontiguousarray(self.domain[:-1])
        m, n = allowed.shape
        scale = coarseness(n, int(self.capacities.max()))
        weights, room = self.weights // scale, self.capacities // scale
        table = np.empty((n + 1, int(room.max()) + 1), np.int64)
        value = np.empty(m, np.int64)
        self.cells += best_patterns(
            self.prices, weights, room, allowed, leaders(allowed), table,
            np.empty((m, n), np.bool_), value,
        )  # fmt: skip
        return value
