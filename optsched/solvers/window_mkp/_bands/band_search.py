"""Depth-first search with the Lagrangian bound, in bands below the bound of the root."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.solvers.window_mkp._bands.column_search import ColumnSearch
from optsched.solvers.window_mkp._bands.dominance import settle
from optsched.solvers.window_mkp._bands.knapsack import CELLS_PER_STEP, Bools
from optsched.solvers.window_mkp._bands.relaxation import first_prices, relax
from optsched.solvers.window_mkp._bands.slots import best_patterns, coarseness, leaders
from optsched.solvers.window_mkp._bands.splitting import improve
from optsched.solvers.window_mkp._bands.surrogate import surrogate
from optsched.solvers.window_mkp._reduction import Ints

LARGEST_TOTAL = 1 << 50
"""Profits add up to less, or their sums are not exact where they meet floating point."""

CELLS_PER_WORK = 128
"""Cells of a table that take as long as one node of the plain depth-first search."""

FIRST_BAND = 10
"""The first band is this part of the gap at the root."""

PATIENCE = 5
"""Searches around an incumbent in vain before it is taken for the best, and they for less time."""

GLANCE = 20
"""Evaluations of the relaxation before the first search."""

FIRST_EVALUATIONS = 200
"""Evaluations in the first node of a search."""

EVALUATIONS = 60
"""Evaluations in the other nodes."""

MOST_COLUMNS = 1 << 17
"""More sets of jobs than this are not searched."""

FEW_COLUMNS = 1 << 9
"""Nor more than this in the search without bands."""

HEAD_START = 1 << 25
"""Cells of the search without bands before that in bands begins."""

DONE = object()

POLISHING = 20
"""Nodes of the search around an incumbent, and pieces of searches over columns."""

UNLIMITED = 1 << 50
"""Cells that no search takes."""

PIECE = 1 << 22
"""Cells after which a search over columns pauses."""


class Leaf(NamedTuple):
    """A node whose free jobs are searched over columns, beside those that are settled."""

    search: ColumnSearch
    free: Ints
    settled: Ints
    base: int


class BandSearch:
    """Branch and bound for windows that the plain search does not close.

    The bound of a node is that of a Lagrangian decomposition (`relax`), which also rules out
    choices job by job. Two searches take turns, and share incumbent and bound. The one asks
    straight for a placement better than the incumbent; small windows end there. But the bound works
    best when little lies between it and the incumbent. So the other begins just below the bound: it
    asks for a placement within a narrow band under it. If there is none the bound has come down,
    and if that cost less than all bands before it, the next one is twice as wide. In a narrow band
    the slots can hold few sets of jobs: they are listed, and the search goes on over them
    (`ColumnSearch`), a hundred times as fast. Between its nodes, incumbents are improved by
    searching around them: all slots but a few stay as they are. When that has been in vain for
    some time, the band goes down to the incumbent.

    Parameters
    ----------
    weights, profits, capacities : int64 arrays
        The instance, as `reduce` returns it.
    placement : int64 array, shape (jobs,)
        The slot of each job in the placement to start from, -1 for none; overwritten.
    seed : int
        Seed of the choice of slots to search around an incumbent.

    Attributes
    ----------
    allowance : float
        Cells that the next piece may take, as far as a piece can be cut short.
    best : int
        Profit of `placement`.
    bound : int
        No placement has more profit.
    work : float
        Work done so far, in nodes of the plain search.
    """

    def __init__(
        self, weights: Ints, profits: Ints, capacities: Ints, placement: Ints, seed: int
    ) -> None:
        total = int(profits.sum())
        # prices are fractions of a profit: whole numbers of 1 / scale
        self.scale = 1024
        while self.scale > 1 and total * self.scale > LARGEST_TOTAL:
            self.scale //= 2
        self.weights, self.capacities = weights, capacities
        self.profits = profits * self.scale
        self.heaviest = np.argsort(-weights, kind="stable")
        self.placement = placement
        self.best = int(profits[placement >= 0].sum())
        self.bound = total
        self.cells = 0
        self.allowance = math.inf
        self.refilled = 4
        self.in_vain = 0
        self.random = np.random.default_rng(seed)
        self.domain = np.ones((len(capacities) + 1, len(weights)), np.bool_)
        self.domain[:-1] = weights[None, :] <= capacities[:, None]
        self.prices = np.zeros_like(weights)

    @property
    def work(self) -> float:
        return self.cells / CELLS_PER_WORK

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
        self.relax(self.domain, prices, 0, 1, np.ones(1), True)
        self.slot_values()
        leaf = self.leaf(self.domain.copy(), prices, 0, True)
        self.go_on(leaf, 0)

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

    def search(
        self,
        domain: Bools,
        prices: Ints,
        floor: int,
        limit: float = math.inf,
        ordered: bool = True,
        most: int = MOST_COLUMNS,
    ) -> Generator[None, None, bool]:
        """Search for placements of more profit than `floor` and the incumbent, depth first.

        Where the slots may hold only so few sets of jobs, at `most`, the search goes on over them,
        piece by piece. Elsewhere the job with the fewest choices left is branched on, its most
        promising choice first. It ends, and returns whether all is decided, after `limit` nodes
        and pieces.
        """
        m = len(self.capacities)
        stack = [(self.bound, domain, prices)]
        nodes = 0
        while stack and nodes < limit:
            bound, domain, prices = stack.pop()
            if bound <= max(floor, self.best):
                continue
            nodes += 1
            tighter, promise = self.relax(
                domain,
                prices,
                floor,
                FIRST_EVALUATIONS if nodes == 1 else EVALUATIONS,
                np.ones(1),
                nodes % 16 == 1,
                ordered,
            )
            bound = min(bound, tighter)
            yield
            if bound <= max(floor, self.best):
                continue
            leaf = self.leaf(domain, prices, max(floor, self.best), ordered, most)
            if leaf.search.listed:
                while not leaf.search.done and nodes < limit:
                    nodes += 1
                    self.go_on(leaf, max(floor, self.best))
                    yield
                if not leaf.search.done:
                    return False
                continue
            choices = domain.sum(axis=0)
            free = np.flatnonzero(choices > 1)
            job = free[np.lexsort((-self.weights[free], choices[free]))[0]]
            used = np.bincount(domain.argmax(axis=0)[choices == 1], minlength=m + 1)
            children = []
            seen = set()
            for slot in np.flatnonzero(domain[:, job]).tolist():
                if slot < m and not used[slot]:
                    # of empty slots that are alike the first will do
                    alike = (int(self.capacities[slot]), domain[slot, free].tobytes())
                    if alike in seen:
                        continue
                    seen.add(alike)
                children.append((int(promise[slot, job]) // self.scale, slot))
            for hope, slot in sorted(children):
                child = domain.copy()
                child[:, job] = False
                child[slot, job] = True
                stack.append((min(bound, hope), child, prices.copy()))
        return not stack

    def leaf(
        self, domain: Bools, prices: Ints, floor: int, ordered: bool, most: int = MOST_COLUMNS
    ) -> Leaf:
        """List what the slots may hold below a node, in placements of more profit than `floor`."""
        m = len(self.capacities)
        room, where = np.empty(m, np.int64), np.empty_like(self.weights)
        settle(domain, self.weights, self.profits, self.capacities, ordered, room, where)
        free = np.flatnonzero(where < 0)
        settled = np.where(where < m, where, -1)
        base = int(self.profits[settled >= 0].sum())
        search = ColumnSearch(
            self.weights[free],
            self.profits[free],
            room,
            np.ascontiguousarray(domain[:m, free]),
            ~domain[m, free],
            prices[free],
            (floor + 1) * self.scale - base,
            self.scale,
            most,
        )
        self.cells += search.cells
        return Leaf(search, free, settled, base)

    def go_on(self, leaf: Leaf, floor: int) -> None:
        """Do a piece of a search over columns."""
        before, target = leaf.search.cells, (floor + 1) * self.scale - leaf.base
        leaf.search.run(target, int(min(self.allowance, PIECE)))
        self.cells += leaf.search.cells - before
        if leaf.search.profit >= target:
            placement = leaf.settled.copy()
            placement[leaf.free] = leaf.search.placement
            self.keep(leaf.base + leaf.search.profit, placement)

    def relax(
        self,
        domain: Bools,
        prices: Ints,
        floor: int,
        evaluations: int,
        step: NDArray[np.float64],
        improving: bool,
        ordered: bool = True,
    ) -> tuple[int, Ints]:
        """Bound a node and the choices in it, narrow its `domain`, note better placements."""
        profit, candidate = np.array([-1]), np.full(len(self.placement), -1)
        promise = np.empty(domain.shape, np.int64)
        allowance = int(min(UNLIMITED, self.allowance))
        bound, cells = relax(
            domain, prices, self.weights, self.profits, self.capacities, ordered, self.scale,
            max(floor, self.best) * self.scale, evaluations, allowance, step,
            profit, candidate, promise,
        )  # fmt: skip
        self.cells += cells
        if profit[0] >= 0 and (improving or profit[0] > self.best * self.scale):
            value, steps = improve(
                self.weights,
                self.profits,
                self.capacities,
                self.heaviest,
                self.bound * self.scale,
                allowance // CELLS_PER_STEP,
                candidate,
            )
            self.cells += CELLS_PER_STEP * steps
            self.keep(value, candidate)
        return bound // self.scale, promise

    def offer(self, placement: Ints) -> None:
        """Take over a placement found elsewhere if it is the best yet."""
        self.keep(int(self.profits[placement >= 0].sum()), placement)

    def keep(self, profit: int, candidate: Ints) -> None:
        """Keep a placement if it is the best yet."""
        if profit > self.best * self.scale:
            self.best = profit // self.scale
            self.placement[:] = candidate

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

    def lower(self, bound: int) -> None:
        """Note a bound of the root, which holds for placements better than the incumbent."""
        self.bound = min(self.bound, max(bound, self.best))
