"""Bounds by Lagrangian decomposition, and the depth-first search over jobs with these.

With ``y_j = sum_i x_ij`` relaxed by multipliers ``u_j >= 0``, the problem splits into one knapsack
as large as all slots together, ``max sum_j (p_j - u_j) y_j``, and one knapsack for each slot,
``max sum_j u_j x_ij``. At ``u = 0`` the bound is that of the surrogate relaxation, which is tight
if slots hold many jobs; towards ``u = p`` it is that of the patterns of each slot, which is tight
if slots hold few. Multipliers are integers, in small fractions of a unit of profit, so that all
sums are exact and the bound is a proof.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from optsched.arrays import Flags, Floats, Ints
from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.column_search import ColumnSearch
from optsched.solvers.window_mkp._lagrangian.knapsacks import (
    CELLS_PER_STEP,
    INFEASIBLE,
    Slots,
    best_patterns,
    conditional_bounds,
    conditional_patterns,
    knapsack,
    propagate,
    slots_of,
)
from optsched.solvers.window_mkp._lagrangian.placements import (
    fill_best,
    fullest_slot,
    improve,
    split,
)
from optsched.solvers.window_mkp._reduction import assign, by_size, total

UNKNOWN = 1 << 62

PATIENCE = 25
"""Evaluations without progress before the step is shortened."""

SHORTER = 0.8
"""Factor by which the step is shortened."""

PROGRESS = 0.001
"""Least decrease of the bound, as a share of the gap, that counts as progress."""

KEEP_ON = 0.7
"""Largest remaining share of the gap at which another round of evaluations follows."""


@kernel
def initial_multipliers(weights: Ints, profits: Ints, capacities: Ints) -> Ints:
    """Return initial multipliers: the value of capacity to each job, at most its profit.

    For each weight w, jobs of at least that weight are packed, most efficient first, into the slots
    of at least that capacity. Capacity is then worth the profit per weight of the first job that
    does not fit. Its value to a job is the largest over all w up to the weight of the job.
    """
    n = len(weights)
    multipliers = np.zeros(n, np.int64)
    for least in weights:
        residual = 0
        for capacity in capacities:
            if capacity >= least:
                residual += capacity
        rate = 0.0
        for job in range(n):
            if weights[job] >= least:
                if weights[job] > residual:
                    rate = profits[job] / weights[job]
                    break
                residual -= weights[job]
        for job in range(n):
            if weights[job] >= least:
                most = min(profits[job], np.int64(rate * weights[job]))
                multipliers[job] = max(multipliers[job], most)
    return multipliers


def relax(
    # Choices of each job; excluded ones are removed. The result is propagated even if the
    # allowance is spent, unless the bound is at most `cut` or the profit of `placement`.
    # Shape (slots + 1, jobs).
    domain: Flags,
    multipliers: Ints,  # initial multipliers; overwritten by the best, shape (jobs,)
    weights: Ints,
    profits: Ints,
    capacities: Ints,
    ordered: bool,  # whether larger slots must hold at least as much weight, see `tighten`
    unit: int,  # common divisor of all profits, but not of multipliers
    cut: int,  # cutoff: only placements of more profit are of interest
    # Number of evaluations of the relaxation; up to ten times as many while the gap to `cut`
    # closes fast
    evaluations: int,
    allowance: int,  # table cells after which no further evaluation begins
    # Length of steps relative to Polyak's; shortened if there is no progress, shape (1,)
    step: Floats,
    best: Ints,  # profit of `placement`; both are overwritten by a better placement, shape (1,)
    placement: Ints,
    promise: Ints,  # overwritten by a bound of the profit with each remaining choice
) -> tuple[int, int]:
    """Bound a node, fix variables that cannot lead above `cut`, and look for better placements.

    Results: upper bound of the profit below this node, or at most `cut` if no profit is above it,
    `INFEASIBLE` without any placement; table cells visited.
    """
    m = len(capacities)
    residual, where = np.empty(m, np.int64), np.empty_like(weights)
    bound = UNKNOWN
    work = 0
    while True:
        work += domain.size
        if not propagate(domain, weights, profits, capacities, ordered, residual, where):
            return INFEASIBLE, work
        settled, free = np.where(where < m, where, -1), np.flatnonzero(where < 0)
        base = int(profits[settled >= 0].sum())
        if len(free) == 0:
            if base > best[0]:
                best[0], placement[:] = base, settled
            return base, work
        if bound < UNKNOWN and work >= allowance:
            return bound, work
        n, open_choices = len(free), domain[:, free]
        allowed, must = np.ascontiguousarray(open_choices[:m]), ~open_choices[m]
        its_weights, its_profits, its_multipliers = weights[free], profits[free], multipliers[free]
        slots = slots_of(its_weights, residual, allowed)
        before, found = best[0], np.empty_like(free)
        relaxed, choice, cells = optimize_multipliers(
            *(its_multipliers, its_weights, its_profits, residual, slots, must, unit, cut),
            *(evaluations, allowance - work, step, base, best, found),
        )
        work += cells
        if best[0] > before:
            placement[:] = settled
            placement[free] = found
        target = max(cut, int(best[0])) + unit
        bound = min(bound, base + relaxed) // unit * unit
        if base + relaxed < target:
            return bound, work
        multipliers[free] = its_multipliers

        inside, outside = np.empty((m, n), np.int64), np.empty((m, n), np.int64)
        work += best_patterns(its_multipliers, slots)
        work += conditional_patterns(its_multipliers, slots, inside, outside)
        with_job, without_job = np.empty(n, np.int64), np.empty(n, np.int64)
        conditional_bounds(
            *(its_profits - its_multipliers, its_weights, int(residual.sum()), must, choice),
            *(with_job, without_job),
        )
        work += 4 * n * n
        others = base + outside.sum(axis=0)
        estimates = np.vstack((others + with_job - outside + inside, others + without_job))
        promise[:, free] = estimates
        removed = open_choices & (estimates < target)
        domain[:, free] = open_choices & ~removed
        if bound <= max(cut, best[0]) or not removed.any():
            return bound, work
        evaluations = max(5, evaluations // 4)


@kernel
def optimize_multipliers(
    multipliers: Ints,
    weights: Ints,
    profits: Ints,
    residual: Ints,
    slots: Slots,
    must: Flags,
    unit: int,
    cut: int,
    evaluations: int,
    allowance: int,
    step: Floats,
    base: int,
    best: Ints,
    found: Ints,
) -> tuple[int, int, int]:
    """Lower the bound of `relax` on the free jobs by subgradient steps, and look for placements.

    `base` is the profit of the fixed jobs. `multipliers` are overwritten by the best, `best` by the
    profit of a better placement, and `found` by the slots of its free jobs.

    Results: bound of the profit of the free jobs, and the part of it that is the knapsack of jobs,
    both `INFEASIBLE` if the forced jobs do not fit; table cells visited.
    """
    pattern, value = slots.pattern, slots.value
    m, n = pattern.shape
    capacity = total(residual)
    current, lightest = multipliers.copy(), np.empty(n, np.int64)
    for job in range(n):
        lightest[job] = -weights[job]
    heaviest, smallest_first = np.arange(n), np.arange(m)
    by_size(heaviest, lightest)
    by_size(smallest_first, residual)
    reverse = smallest_first[::-1].copy()
    reduced, chosen = np.empty(n, np.int64), np.empty(n, np.bool_)
    direction = np.zeros(n, np.float64)
    trial = np.empty(n, np.int64)
    best_bound, best_choice = UNKNOWN, 0
    work = n * capacity // 64
    stalled = 0
    checkpoint = 0.0
    for evaluation in range(10 * evaluations):
        if evaluation > 0 and work >= allowance:
            break
        if evaluation % evaluations == 0 and evaluation > 0:
            gap = float(best_bound + base - max(cut, best[0]))
            if gap > KEEP_ON * checkpoint:
                break
            checkpoint = gap
        for job in range(n):
            reduced[job] = profits[job] - current[job]
        choice, steps = knapsack(reduced, weights, capacity, must, unit // 32, chosen)
        if choice == INFEASIBLE:
            return INFEASIBLE, INFEASIBLE, work
        work += CELLS_PER_STEP * steps
        work += best_patterns(current, slots)
        bound = choice + total(value)
        if evaluation == 0:
            checkpoint = float(bound + base - max(cut, best[0]))
        improved = bound < best_bound
        stalled += 1
        if improved:
            if bound < best_bound - PROGRESS * (best_bound + base - cut):
                stalled = 0
            best_bound, best_choice = bound, choice
            assign(multipliers, current)

        profit = base
        for job in range(n):
            if chosen[job]:
                profit += profits[job]
        if profit > best[0]:
            order = smallest_first if evaluation % 2 == 0 else reverse
            profit = base + split(chosen, weights, profits, residual.copy(), heaviest, order, trial)
            if profit > best[0]:
                best[0] = profit
                assign(found, trial)
        if improved or evaluation % 8 == 0:
            profit = base + merge(
                pattern, chosen, weights, profits, residual.copy(), heaviest, trial
            )
            if profit > best[0]:
                best[0] = profit
                assign(found, trial)

        target = max(cut, best[0])
        if base + best_bound < target + unit:
            break
        if stalled >= PATIENCE:
            step[0] *= SHORTER
            stalled = 0
        # little momentum lets a short descent turn soon, much keeps a long one from zigzagging
        momentum = 0.7 + 0.25 * min(1.0, evaluation / 100)
        norm = 0.0
        for k in range(n):
            slope = 1.0 if chosen[k] else 0.0
            for slot in range(m):
                if pattern[slot, k]:
                    slope -= 1.0
            if current[k] <= 0 and slope < 0.0:
                slope = 0.0
            direction[k] = slope + momentum * direction[k]
            norm += direction[k] * direction[k]
        if norm == 0.0:
            break
        length = step[0] * (base + bound - target - unit // 2) / norm
        for k in range(n):
            moved = current[k] + np.int64(np.rint(length * direction[k]))
            current[k] = max(0, moved if must[k] else min(moved, profits[k]))
    return best_bound, best_choice, work


@kernel
def merge(
    pattern: Flags,
    chosen: Flags,
    weights: Ints,
    profits: Ints,
    residual: Ints,
    heaviest: Ints,
    placement: Ints,
) -> int:
    """Place the jobs by the patterns of slots, then the chosen jobs, then any others that fit."""
    m, n = pattern.shape
    placement[:] = -1
    for job in range(n):
        for slot in range(m):
            if pattern[slot, job] and weights[job] <= residual[slot]:
                placement[job] = slot
                residual[slot] -= weights[job]
                break
    for job in heaviest:
        if chosen[job] and placement[job] < 0:
            fullest = fullest_slot(residual, weights[job])
            if fullest >= 0:
                placement[job] = fullest
                residual[fullest] -= weights[job]
    return fill_best(weights, profits, residual, placement)


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
    fast. The initial `placement` is overwritten.
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
        domain: Flags,
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
        self, domain: Flags, multipliers: Ints, floor: int, ordered: bool, most: int = MOST_COLUMNS
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
        before, target = leaf.search.cells, (floor + 1) * self.scale - leaf.base
        leaf.search.run(target, int(min(self.allowance, PIECE)))
        self.cells += leaf.search.cells - before
        if leaf.search.profit >= target:
            placement = leaf.settled.copy()
            placement[leaf.free] = leaf.search.placement
            self.keep(leaf.base + leaf.search.profit, placement)

    def relax(
        self,
        domain: Flags,
        multipliers: Ints,
        floor: int,
        evaluations: int,
        step: Floats,
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
