"""Depth-first search over the jobs of a window with the Lagrangian bound."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.solvers.window_mkp._lagrangian.column_search import ColumnSearch
from optsched.solvers.window_mkp._lagrangian.knapsack import CELLS_PER_STEP, Bools
from optsched.solvers.window_mkp._lagrangian.relaxation import relax
from optsched.solvers.window_mkp._lagrangian.slots import propagate
from optsched.solvers.window_mkp._lagrangian.splitting import improve
from optsched.solvers.window_mkp._reduction import Ints

LARGEST_TOTAL = 1 << 50
"""Bound on the sum of scaled profits, below which floating-point sums are exact."""

CELLS_PER_WORK = 128
"""Table cells that take as long as one node of the plain depth-first search."""

FIRST_EVALUATIONS = 200
"""Evaluations in the first node of a search."""

EVALUATIONS = 60
"""Evaluations in the other nodes."""

MOST_COLUMNS = 1 << 17
"""Largest number of columns to search."""

UNLIMITED = 1 << 50
"""Number of table cells beyond that of any search."""

PIECE = 1 << 22
"""Table cells after which a column search pauses."""


class Leaf(NamedTuple):
    """A search node whose free jobs are searched over columns."""

    search: ColumnSearch
    free: Ints
    settled: Ints
    base: int


class TreeSearch:
    """A window, its incumbent, and searches for better placements.

    Nodes are bounded by a Lagrangian decomposition (`relax`), which also fixes variables. If few
    columns remain, these are enumerated and searched (`ColumnSearch`), which is a hundred times as
    fast.

    `weights`, `profits` and `capacities`: instance as reduced by `reduce`; `placement`: slot of
    each job in the initial placement, -1 if not placed; overwritten, shape (jobs,).
    """

    def __init__(self, weights: Ints, profits: Ints, capacities: Ints, placement: Ints) -> None:
        total = int(profits.sum())
        # multipliers are fractions of a profit, in units of 1 / scale
        self.scale = 1024
        while self.scale > 1 and total * self.scale > LARGEST_TOTAL:
            self.scale //= 2
        self.weights, self.capacities = weights, capacities
        self.profits = profits * self.scale
        self.heaviest = np.argsort(-weights, kind="stable")
        self.placement = placement
        self.best = int(profits[placement >= 0].sum())  # profit of `placement`
        self.bound = total  # upper bound of the profit
        self.cells = 0
        self.allowance = math.inf  # approximate limit of table cells in the next piece
        self.domain = np.ones((len(capacities) + 1, len(weights)), np.bool_)
        self.domain[:-1] = weights[None, :] <= capacities[:, None]

    @property
    def work(self) -> float:
        return self.cells / CELLS_PER_WORK

    def search(
        self,
        domain: Bools,
        multipliers: Ints,
        floor: int,
        limit: float = math.inf,
        ordered: bool = True,
        most: int = MOST_COLUMNS,
    ) -> Generator[None, None, bool]:
        """Search depth first for placements of more profit than `floor` and the incumbent.

        If slots have at most `most` columns, these are searched piece by piece. Otherwise, the job
        with the fewest choices is branched on, its most promising choice first. The search ends
        after `limit` nodes and pieces, and returns whether it is complete.
        """
        m = len(self.capacities)
        stack = [(self.bound, domain, multipliers)]
        nodes = 0
        while stack and nodes < limit:
            bound, domain, multipliers = stack.pop()
            if bound <= max(floor, self.best):
                continue
            nodes += 1
            tighter, promise = self.relax(
                domain,
                multipliers,
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
            leaf = self.leaf(domain, multipliers, max(floor, self.best), ordered, most)
            if leaf.search.listed:
                while not leaf.search.done and nodes < limit:
                    nodes += 1
                    self.advance(leaf, max(floor, self.best))
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
                    # symmetry breaking: of identical empty slots, only the first is tried
                    alike = (int(self.capacities[slot]), domain[slot, free].tobytes())
                    if alike in seen:
                        continue
                    seen.add(alike)
                children.append((int(promise[slot, job]) // self.scale, slot))
            for estimate, slot in sorted(children):
                child = domain.copy()
                child[:, job] = False
                child[slot, job] = True
                stack.append((min(bound, estimate), child, multipliers.copy()))
        return not stack

    def leaf(
        self, domain: Bools, multipliers: Ints, floor: int, ordered: bool, most: int = MOST_COLUMNS
    ) -> Leaf:
        """Enumerate the columns below a node, for placements of more profit than `floor`.

        The choices in `domain` must be propagated, as after `relax`.
        """
        m = len(self.capacities)
        residual, where = np.empty(m, np.int64), np.empty_like(self.weights)
        propagate(domain, self.weights, self.profits, self.capacities, ordered, residual, where)
        free = np.flatnonzero(where < 0)
        settled = np.where(where < m, where, -1)
        base = int(self.profits[settled >= 0].sum())
        search = ColumnSearch(
            self.weights[free],
            self.profits[free],
            residual,
            np.ascontiguousarray(domain[:m, free]),
            ~domain[m, free],
            multipliers[free],
            (floor + 1) * self.scale - base,
            self.scale,
            most,
        )
        self.cells += search.cells
        return Leaf(search, free, settled, base)

    def advance(self, leaf: Leaf, floor: int) -> None:
        """Search a leaf for one piece."""
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
        multipliers: Ints,
        floor: int,
        evaluations: int,
        step: NDArray[np.float64],
        improving: bool,
        ordered: bool = True,
    ) -> tuple[int, Ints]:
        """Bound a node and its choices, fix variables in `domain`, and keep better placements."""
        profit, candidate = np.array([-1]), np.full(len(self.placement), -1)
        promise = np.empty(domain.shape, np.int64)
        allowance = int(min(UNLIMITED, self.allowance))
        bound, cells = relax(
            domain, multipliers, self.weights, self.profits, self.capacities, ordered, self.scale,
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
        """Accept a placement found elsewhere if it improves the incumbent."""
        self.keep(int(self.profits[placement >= 0].sum()), placement)

    def keep(self, profit: int, candidate: Ints) -> None:
        """Keep a placement if it improves the incumbent."""
        if profit > self.best * self.scale:
            self.best = profit // self.scale
            self.placement[:] = candidate

    def lower(self, bound: int) -> None:
        """Lower the bound of the root, which holds for placements better than the incumbent."""
        self.bound = min(self.bound, max(bound, self.best))
