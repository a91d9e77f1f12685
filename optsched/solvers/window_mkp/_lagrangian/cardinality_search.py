"""Lagrangian search with a multiplier on the number of placed jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from optsched.solvers.window_mkp._lagrangian.destructive_search import DestructiveSearch
from optsched.solvers.window_mkp._lagrangian.tree_search import CELLS_PER_WORK
from optsched.solvers.window_mkp._reduction import Ints, by_efficiency, reduce

HEAD_START = 1_000_000
"""Work of the main search before auxiliary searches start."""

DISCOUNT = 32
"""Divisor of the multiplier that gives its discount, which keeps the number of jobs relevant."""


class ReducedSearch:
    """A destructive search on a window with other profits, after reduction.

    `weights`, `profits` and `capacities`: window, in any order; jobs without profit are not placed;
    `start`: slot of each job in the initial placement, -1 if not placed, shape (jobs,); `seed`:
    seed of the neighborhoods.
    """

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
        """Slot of each job in the incumbent, -1 if not placed; int64 array of shape (jobs,)."""
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

    `start`: slot of each job in the initial placement, -1 if not placed, shape (jobs,); `seed`:
    seed of the neighborhoods.
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
        while self._main.work < HEAD_START:
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
