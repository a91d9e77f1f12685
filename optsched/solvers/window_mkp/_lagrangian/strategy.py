"""Strategy of the Lagrangian search, and the first calls of its kernels.

A direct search and destructive bounds take turns, on the window itself and on windows with a
multiplier on the number of placed jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from optsched.arrays import Ints
from optsched.models.window_mkp import WindowMKP
from optsched.solvers.window_mkp._lagrangian.knapsacks import (
    CELLS_PER_STEP,
    LARGEST_SET,
    best_patterns,
    dense_bound,
    knapsack,
    slots_of,
    tighten,
)
from optsched.solvers.window_mkp._lagrangian.placements import improve, refill_slots, split
from optsched.solvers.window_mkp._lagrangian.tree_search import (
    CELLS_PER_WORK,
    PIECE,
    UNLIMITED,
    TreeSearch,
    initial_multipliers,
)
from optsched.solvers.window_mkp._reduction import by_efficiency, reduce

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

DENSE = 1 << 26
"""Largest number of cells in dynamic programming over every capacity."""

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

    The initial `placement` is overwritten. The seed determines the neighborhoods.
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
        """Bound the profit by the surrogate relaxation, and split its solution among the slots.

        This is the root of Pisinger's mulknap, and usually suffices if slots hold many jobs.
        Placements by subset sums are improved by `improve`.
        """
        weights, profits, capacities = self.weights, self.profits, self.capacities
        n, m, most = len(weights), len(capacities), int(min(UNLIMITED, self.allowance))
        residual = capacities.copy()
        allowed = np.ascontiguousarray(self.domain[:-1])
        tighten(allowed, weights, capacities, np.full(n, -1), False, residual)
        total = int(residual.sum())
        chosen = np.empty(n, np.bool_)
        bound, steps = knapsack(profits, weights, total, np.zeros(n, np.bool_), 0, chosen)
        cells = n * total // 64
        if bound > profits[chosen].sum() and n * total <= min(DENSE, most):
            bound = min(bound, dense_bound(profits, weights, total))
            cells += n * total
        trial = np.empty(n, np.int64)
        for slots in (np.arange(m), np.arange(m)[::-1].copy()):
            split(chosen, weights, profits, capacities.copy(), self.heaviest, slots, trial)
            limit = (most - cells) // CELLS_PER_STEP - steps
            profit, more = improve(weights, profits, capacities, self.heaviest, bound, limit, trial)
            steps += more
            self.keep(profit, trial)
            if profit == bound:
                break
        self.cells += CELLS_PER_STEP * steps + cells
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
        """Bound the value of each slot at the root's multipliers."""
        allowed = np.ascontiguousarray(self.domain[:-1])
        slots = slots_of(self.weights, self.capacities, allowed)
        self.cells += best_patterns(self.multipliers, slots)
        return slots.value


LEAD_OF_MAIN = 1_000_000
"""Work of the main search before auxiliary searches start."""

DISCOUNT = 32
"""Divisor of the multiplier that gives its discount, which keeps the number of jobs relevant."""


class ReducedSearch:
    """A destructive search on a window in any order, after its reduction, from a placement."""

    def __init__(
        self, weights: Ints, profits: Ints, capacities: Ints, start: Ints, seed: int
    ) -> None:
        self._jobs, self._slots, weights, profits, residual, self._unit = reduce(
            weights, profits, capacities
        )
        self._number_of = np.full(len(capacities) + 1, -1)
        self._number_of[self._slots] = np.arange(len(self._slots))
        self._everyone = len(start)
        self._search = DestructiveSearch(weights, profits, residual, self._renumbered(start), seed)
        self._pieces = self._search.run()

    @property
    def best(self) -> int:
        return self._search.best * self._unit

    @property
    def bound(self) -> int:
        return self._search.bound * self._unit

    @property
    def work(self) -> float:
        return self._search.work

    @property
    def placement(self) -> Ints:
        placement = np.full(self._everyone, -1)
        placement[self._jobs] = np.append(self._slots, -1)[self._search.placement]
        return placement

    def advance(self, allowance: float) -> None:
        """Search for one piece, with at most about the allowed work."""
        self._search.allowance = CELLS_PER_WORK * allowance
        next(self._pieces, None)

    def offer(self, placement: Ints) -> None:
        """Accept a placement if it improves the incumbent."""
        self._search.offer(self._renumbered(placement))

    def _renumbered(self, placement: Ints) -> Ints:
        return self._number_of[placement[self._jobs]]


class CardinalitySearch:
    """Branch and bound for windows that the plain search does not solve.

    A destructive search runs on the window itself. It is slow if profits are nearly equal, because
    the bound then allows one job more than any placement has. So two auxiliary searches alternate
    with it. The first maximizes the number of placed jobs: a window with unit profits. The second
    lowers every profit by a multiplier u: a placement of k jobs has at most the profit k u plus the
    bound of that window, for any u, and its optimum is a candidate for the incumbent. The
    multiplier is slightly below the dual value of the number of jobs in the linear relaxation of
    the surrogate knapsack with at most k jobs. If the multiplier is 0, as with small jobs of little
    profit, the main search runs alone.
    """

    def __init__(
        self, weights: Ints, profits: Ints, capacities: Ints, start: Ints, seed: int
    ) -> None:
        self.allowance = math.inf  # approximate work limit of the next piece
        self.placement = start.copy()
        self.best = int(profits[start >= 0].sum())  # profit of `placement`
        self._window = weights, profits, capacities
        self._seed = seed
        self._main = ReducedSearch(weights, profits, capacities, start, seed)
        self._searches = [self._main]
        self.bound = self._main.bound  # upper bound of the profit

    @property
    def work(self) -> float:
        return sum(search.work for search in self._searches)

    def run(self) -> Iterator[None]:
        """Search until `best` equals `bound`; pause after each piece of some milliseconds."""
        while self._main.work < LEAD_OF_MAIN:
            self._piece(self._main)
            yield
            if self.best >= self.bound:
                return
        _, profits, _ = self._window
        count = self._add_search(np.ones_like(profits))
        self._piece(count)
        yield
        if self._multiplier(count.best) > 0:
            while count.best < count.bound and count.work < self._main.work:
                self._piece(count)
                yield
        multiplier = self._multiplier(count.best)
        lowered = self._add_search(profits - multiplier) if multiplier > 0 else None
        while self.best < self.bound:
            searches = [self._main]
            if lowered is not None:
                searches += [s for s in (count, lowered) if s.best < s.bound]
            self._piece(min(searches, key=lambda search: search.work))
            if lowered is not None:
                self._lower(count.bound * multiplier + lowered.bound)
            yield

    def _add_search(self, profits: Ints) -> ReducedSearch:
        weights, _, capacities = self._window
        profits.flags.writeable = False  # as the window's own: kernels are compiled for either
        search = ReducedSearch(weights, profits, capacities, self.placement, self._seed)
        self._searches.append(search)
        return search

    def _piece(self, search: ReducedSearch) -> None:
        """Advance a search by one piece, and keep its placement if that improves the incumbent."""
        search.advance(self.allowance)
        placement = search.placement
        profit = int(self._window[1][placement >= 0].sum())
        if profit > self.best:
            self.best, self.placement = profit, placement
            self._main.offer(placement)
        self._lower(self._main.bound)

    def _lower(self, bound: int) -> None:
        self.bound = min(self.bound, max(bound, self.best))

    def _multiplier(self, most: int) -> int:
        """Return the least multiplier, discounted, at which at most `most` jobs pay.

        The jobs that pay are those in the linear relaxation of the surrogate knapsack.
        """
        weights, profits, capacities = self._window
        fits = weights <= capacities.max()
        weights, profits = weights[fits], profits[fits]
        low, high = 0, int(profits.max())
        while low < high:
            multiplier = (low + high) // 2
            if _paying(weights, profits - multiplier, int(capacities.sum())) <= most:
                high = multiplier
            else:
                low = multiplier + 1
        return low - low // DISCOUNT - 1 if low > 0 else 0


def _paying(weights: Ints, worth: Ints, capacity: int) -> float:
    """Return the number of jobs in the linear relaxation of one knapsack."""
    jobs = np.flatnonzero(worth > 0)
    by_efficiency(jobs, weights, worth)
    residual = capacity - np.concatenate(([0], np.cumsum(weights[jobs])))[:-1]
    return float(np.clip(residual / weights[jobs], 0.0, 1.0).sum())


def call_column_search() -> None:
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
