"""The search in bands, helped by what a window has to say of the number of its jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from optsched.solvers.window_mkp._bands.band_search import BandSearch
from optsched.solvers.window_mkp._bands.tree_search import CELLS_PER_WORK
from optsched.solvers.window_mkp._reduction import Ints, by_efficiency, reduce

HEAD_START = 1_000_000
"""Work of the search on the window itself before others help it."""

REBATE = 32
"""The toll is lower by this part than what would make the number of jobs of no interest."""


class PricedSearch:
    """A band search on the jobs and slots of a window that matter at given profits.

    Parameters
    ----------
    weights, profits, capacities : int64 arrays
        The window, in any order; jobs of no profit stay unplaced.
    start : int64 array, shape (jobs,)
        The slot of each job in the placement to start from, -1 for none.
    seed : int
        As for `BandSearch`.

    Attributes
    ----------
    best, bound : int
        The most profit found, and what no placement exceeds.
    work : float
        As of `BandSearch`.
    """

    def __init__(
        self, weights: Ints, profits: Ints, capacities: Ints, start: Ints, seed: int
    ) -> None:
        self._jobs, self._slots, weights, profits, room, self._unit = reduce(
            weights, profits, capacities
        )
        self._number_of = np.full(len(capacities) + 1, -1)
        self._number_of[self._slots] = np.arange(len(self._slots))
        self._everyone = len(start)
        self._search = BandSearch(weights, profits, room, self._renumbered(start), seed)
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
        """The slot of each job in the best placement, -1 for none; int64, shape (jobs,)."""
        placement = np.full(self._everyone, -1)
        placement[self._jobs] = np.append(self._slots, -1)[self._search.placement]
        return placement

    def go_on(self, allowance: float) -> None:
        """Search for a piece that takes about as much work as is allowed, or less."""
        self._search.allowance = CELLS_PER_WORK * allowance
        next(self._pieces, None)

    def offer(self, placement: Ints) -> None:
        """Take over a placement if it is better than the best."""
        self._search.offer(self._renumbered(placement))

    def _renumbered(self, placement: Ints) -> Ints:
        return self._number_of[placement[self._jobs]]


class CountedSearch:
    """Branch and bound for windows that the plain search does not close.

    A band search answers the window. It is slow where profits are nearly alike: the bound then
    promises a job more than any placement has. So two more searches take turns with it. One asks
    for the most jobs that can be placed at all, a window with profits of 1. The other answers the
    window with every profit lowered by a toll: a placement of k jobs has no more profit than k
    tolls and the bound of that window, whatever the toll, and what is best there is a candidate
    here. The toll is a little less than the price of the number of jobs in the linear relaxation
    of the knapsack that has all slots in one and may hold no more than k. Where that is nothing,
    as it is when small jobs are worth little, the band search stays alone.

    Parameters
    ----------
    weights, profits, capacities : int64 arrays
        The window.
    start : int64 array, shape (jobs,)
        The slot of each job in the placement to start from, -1 for none.
    seed : int
        Seed of the choice of slots to search around an incumbent.

    Attributes
    ----------
    allowance : float
        Work that the next piece may do, as far as a piece can be cut short.
    best : int
        Profit of `placement`.
    bound : int
        No placement has more profit.
    placement : int64 array, shape (jobs,)
        The best placement found.
    work : float
        Work done so far, in nodes of the plain search.
    """

    def __init__(
        self, weights: Ints, profits: Ints, capacities: Ints, start: Ints, seed: int
    ) -> None:
        self.allowance = math.inf
        self.placement = start.copy()
        self.best = int(profits[start >= 0].sum())
        self._window = weights, profits, capacities
        self._seed = seed
        self._main = PricedSearch(weights, profits, capacities, start, seed)
        self._searches = [self._main]
        self.bound = self._main.bound

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
        count = self._help(np.ones_like(profits))
        self._piece(count)
        yield
        if self._toll(count.best) > 0:
            while count.best < count.bound and count.work < self._main.work:
                self._piece(count)
                yield
        toll = self._toll(count.best)
        lowered = self._help(profits - toll) if toll > 0 else None
        while self.best < self.bound:
            searches = [self._main]
            if lowered is not None:
                searches += [s for s in (count, lowered) if s.best < s.bound]
            self._piece(min(searches, key=lambda search: search.work))
            if lowered is not None:
                self._lower(count.bound * toll + lowered.bound)
            yield

    def _help(self, profits: Ints) -> PricedSearch:
        weights, _, capacities = self._window
        search = PricedSearch(weights, profits, capacities, self.placement, self._seed)
        self._searches.append(search)
        return search

    def _piece(self, search: PricedSearch) -> None:
        """Let a search go on for a piece, and keep what it finds."""
        search.go_on(self.allowance)
        placement = search.placement
        profit = int(self._window[1][placement >= 0].sum())
        if profit > self.best:
            self.best, self.placement = profit, placement
            self._main.offer(placement)
        self._lower(self._main.bound)

    def _lower(self, bound: int) -> None:
        self.bound = min(self.bound, max(bound, self.best))

    def _toll(self, most: int) -> int:
        """Return the least toll at which no more than so many jobs pay, less its rebate.

        Which jobs pay is told by the linear relaxation with all slots in one.
        """
        weights, profits, capacities = self._window
        fits = weights <= capacities.max()
        weights, profits = weights[fits], profits[fits]
        low, high = 0, int(profits.max())
        while low < high:
            toll = (low + high) // 2
            if _paying(weights, profits - toll, int(capacities.sum())) <= most:
                high = toll
            else:
                low = toll + 1
        return low - low // REBATE - 1 if low > 0 else 0


def _paying(weights: Ints, worth: Ints, capacity: int) -> float:
    """Return how many jobs the linear relaxation of one knapsack holds."""
    jobs = np.flatnonzero(worth > 0)
    by_efficiency(jobs, weights, worth)
    room = capacity - np.concatenate(([0], np.cumsum(weights[jobs])))[:-1]
    return float(np.clip(room / weights[jobs], 0.0, 1.0).sum())
