"""Depth-first search over the jobs of a window with the Lagrangian bound."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.solvers.window_mkp._bands.column_search import ColumnSearch
from optsched.solvers.window_mkp._bands.dominance import settle
from optsched.solvers.window_mkp._bands.knapsack import CELLS_PER_STEP, Bools
from optsched.solvers.window_mkp._bands.relaxation import relax
from optsched.solvers.window_mkp._bands.splitting import improve
from optsched.solvers.window_mkp._reduction import Ints

LARGEST_TOTAL = 1 << 50
"""Profits add up to less, or their sums are not exact where they meet floating point."""

CELLS_PER_WORK = 128
"""Cells of a table that take as long as one node of the plain depth-first search."""

FIRST_EVALUATIONS = 200
"""Evaluations in the first node of a search."""

EVALUATIONS = 60
"""Evaluations in the other nodes."""

MOST_COLUMNS = 1 << 17
"""More sets of jobs than this are not searched."""

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


class TreeSearch:
    """A window, its incumbent, and searches for better placements.

    The bound of a node is that of a Lagrangian decomposition (`relax`), which also rules out
    choices job by job. Where few sets of jobs are left to the slots they are listed, and the search
    goes on over them (`ColumnSearch`), a hundred times as fast.

    Parameters
    ----------
    weights, profits, capacities : int64 arrays
        The instance, as `reduce` returns it.
    placement : int64 array, shape (jobs,)
        The slot of each job in the placement to start from, -1 for none; overwritten.

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

    def __init__(self, weights: Ints, profits: Ints, capacities: Ints, placement: Ints) -> None:
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
        self.domain = np.ones((len(capacities) + 1, len(weights)), np.bool_)
        self.domain[:-1] = weights[None, :] <= capacities[:, None]

    @property
    def work(self) -> float:
        return self.cells / CELLS_PER_WORK

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
        """List what the slots may hold below a node, in placements of more profit than `floor`.

        `domain` is settled, as `relax` leaves it.
        """
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

    def lower(self, bound: int) -> None:
        """Note a bound of the root, which holds for placements better than the incumbent."""
        self.bound = min(self.bound, max(bound, self.best))
