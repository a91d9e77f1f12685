"""Branch and bound for the window knapsack: best first, and in the order of the window.

The latter is that of Figure 3 of Yang et al. (2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.arrays import Ints
from optsched.compiled import kernel
from optsched.models.problem import Problem
from optsched.models.window_mkp import NOT_PLACED, WindowMKP
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress, StoppedError
from optsched.solvers.result import Budget, Limit
from optsched.solvers.window_mkp._reduction import assign, reduce
from optsched.solvers.window_mkp.branch_and_bound import dantzig_bound
from optsched.solvers.window_mkp.greedy import greedy

FINISHED, PAUSED, FULL = 0, 1, 2

PARENT, DEPTH, SLOT, PROFIT, BOUND = range(5)
"""Columns of a search node; the slot is that of job ``depth - 1``, the number of slots for none."""


@kernel
def before(a: int, b: int, nodes: Ints) -> bool:
    """Return whether node `a` leaves the heap before `b`: by bound, then depth, then age."""
    if nodes[a, BOUND] != nodes[b, BOUND]:
        return nodes[a, BOUND] > nodes[b, BOUND]
    if nodes[a, DEPTH] != nodes[b, DEPTH]:
        return nodes[a, DEPTH] > nodes[b, DEPTH]
    return a < b


@kernel
def insert(heap: Ints, size: int, node: int, nodes: Ints) -> None:
    """Insert a node into a max-heap of `size` nodes."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if before(heap[parent], node, nodes):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = node


@kernel
def delete_top(heap: Ints, size: int, nodes: Ints) -> int:
    """Remove and return the best node of a max-heap of `size` nodes."""
    top, last = heap[0], heap[size - 1]
    size -= 1
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and before(heap[child + 1], heap[child], nodes):
            child += 1
        if before(last, heap[child], nodes):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = last
    return top


@kernel
def best_first(
    # Instance as reduced by `reduce`
    weights: Ints,
    profits: Ints,
    capacities: Ints,
    nodes: Ints,  # search tree; row 0 is the root, shape (space, 5)
    heap: Ints,
    state: Ints,  # nodes in the tree and in the heap, profit of `placement`, and bound
    placement: Ints,  # slot of each job, the number of slots for none; overwritten
    limit: int,  # number of nodes after which to pause
) -> int:
    """Branch on the node with the best bound until the search is finished, paused or out of space.

    Result: `FINISHED`, `PAUSED`, or `FULL` if more space is needed.
    """
    n, m = len(weights), len(capacities)
    smallest = np.empty(n + 1, np.int64)
    rest = np.zeros(n + 1, np.int64)
    smallest[n] = 1 << 62
    for job in range(n - 1, -1, -1):
        smallest[job] = min(weights[job], smallest[job + 1])
        rest[job] = rest[job + 1] + profits[job]
    residual = np.empty(m, np.int64)
    count, size, best = state[0], state[1], state[2]
    outcome = FINISHED
    while size > 0:
        top = heap[0]
        state[3] = max(best, nodes[top, BOUND])
        if nodes[top, BOUND] <= best:
            break
        if count + m + 1 > len(nodes):
            outcome = FULL
            break
        if count >= limit:
            outcome = PAUSED
            break
        node = delete_top(heap, size, nodes)
        size -= 1
        assign(residual, capacities)
        depth, profit = nodes[node, DEPTH], nodes[node, PROFIT]
        ancestor = node
        for job in range(depth - 1, -1, -1):
            if nodes[ancestor, SLOT] < m:
                residual[nodes[ancestor, SLOT]] -= weights[job]
            ancestor = nodes[ancestor, PARENT]
        for slot in range(m + 1):
            gained = profit
            if slot < m:
                if residual[slot] < weights[depth] or twin_before(slot, residual):
                    continue
                gained += profits[depth]
                residual[slot] -= weights[depth]
            bound = gained
            if depth + 1 < n:
                bound += dantzig_bound(
                    depth + 1, weights, profits, residual, smallest, rest[depth + 1]
                )
            if slot < m:
                residual[slot] += weights[depth]
            if bound <= best:
                continue
            nodes[count, PARENT], nodes[count, DEPTH] = node, depth + 1
            nodes[count, SLOT], nodes[count, PROFIT], nodes[count, BOUND] = slot, gained, bound
            if gained > best:
                best = gained
                placement[:] = m
                ancestor = count
                for job in range(depth, -1, -1):
                    placement[job] = nodes[ancestor, SLOT]
                    ancestor = nodes[ancestor, PARENT]
            if depth + 1 < n:
                insert(heap, size, count, nodes)
                size += 1
            count += 1
    if outcome == FINISHED:
        state[3] = best
    state[0], state[1], state[2] = count, size, best
    return outcome


@kernel
def twin_before(slot: int, residual: Ints) -> bool:
    """Return whether an earlier slot has the same residual capacity (symmetry breaking)."""
    for other in range(slot):  # noqa: SIM110 (compiled)
        if residual[other] == residual[slot]:
            return True
    return False


LARGEST_TREE = 1 << 22
"""Largest number of search nodes, of 48 bytes each and 8 in the heap."""

PIECE = 20_000
"""Search nodes between two checks of the budget."""


@solvers.register("best-first")
@dataclass(frozen=True)
class BestFirst(AnytimeSolver):
    """Best-first branch and bound (Algorithms 1 and 2 of Yang et al. 2014).

    The children of a node put the next job into each slot, by increasing number, or leave the job
    waiting. Jobs are numbered by decreasing profit per weight, slots by increasing capacity, after
    the reductions (7) and (8). The approximate cost of a child is its profit plus the surrogate
    bound of the remaining jobs: the linear relaxation of one knapsack of all slots. Of equal bounds
    the deepest node is taken. GREEDY gives the first incumbent; children that cannot beat the
    incumbent are not inserted.

    The search ends at four million nodes, as if that were its work limit.

    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    >>> from optsched.models import WindowMKP
    >>> problem = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    >>> BestFirst().solve(problem, budget=Budget()).objective
    15
    """

    models = frozenset({"window-mkp"})
    seconds_per_work = 2e-7

    def search(self, problem: WindowMKP, progress: Progress, hint: Any, seed: int) -> None:
        """Search the tree, the node with the best bound first; `seed` has no effect."""
        given = problem.weights, problem.profits, problem.capacities
        known = [tuple(greedy(*given).tolist()), *([] if hint is None else [hint])]
        solution = max(known, key=problem.objective)
        value = problem.objective(solution)
        jobs, slots, weights, profits, residual, unit = reduce(*given)
        bound = int(profits.sum()) * unit
        progress.offer(solution, value, bound)

        nodes, heap = np.zeros((1024, 5), np.int64), np.zeros(1024, np.int64)
        nodes[0, BOUND] = profits.sum()
        state = np.array([1, min(1, len(jobs)), value // unit, bound // unit])
        placement = np.empty(len(jobs), np.int64)
        while True:
            pause = int(state[0]) + PIECE
            if progress.budget.work is not None:
                pause = min(pause, math.ceil(progress.budget.work))
            outcome = best_first(weights, profits, residual, nodes, heap, state, placement, pause)
            progress.work = int(state[0])
            if state[2] * unit > value:
                value = int(state[2]) * unit
                placed = np.full(len(problem.weights), -1)
                placed[jobs] = np.append(slots, -1)[placement]
                solution = tuple(placed.tolist())
            progress.offer(solution, value, int(state[3]) * unit)
            if outcome == FINISHED:
                return
            progress.check()
            if outcome == FULL:
                try:
                    nodes, heap = _twice(nodes), _twice(heap)
                except MemoryError:
                    raise StoppedError(Limit.MEMORY) from None

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, or load them from the cache."""
        self.solve(WindowMKP(weights=[1, 2], capacities=[2]), budget=Budget())


def _twice(rows: Ints) -> Ints:
    """Return the rows with space for as many more."""
    if len(rows) >= LARGEST_TREE:
        raise MemoryError
    return np.concatenate((rows, np.zeros_like(rows)))


@solvers.register("depth-first")
@dataclass(frozen=True)
class DepthFirst(AnytimeSolver):
    """Depth-first branch and bound in the order of the window (Figure 3 of Yang et al. 2014).

    Jobs are branched on in the order of the queue. Each is put into every slot that can hold it in
    turn, by increasing index, and finally left out. There is no heuristic start, and only a better
    solution replaces another: the result is the first optimal solution of that order. A branch is
    cut off if the surrogate bound (the linear relaxation of one knapsack of all slots) cannot beat
    the incumbent; the search ends when the bound of the whole window is reached, as in the figure.

    It is meant for small windows, for what the paper's algorithm answers where several solutions
    are optimal: run it with ``ties=solver``.

    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014,
    section III.B.1.

    >>> from optsched.models import WindowMKP
    >>> problem = WindowMKP(weights=[2, 1, 4], capacities=[5, 2])
    >>> DepthFirst().solve(problem, budget=Budget()).solution
    (1, 0, 0)
    """

    models = frozenset({"window-mkp"})
    seconds_per_work = 2e-6
    default_work = 100_000.0

    def search(self, problem: WindowMKP, progress: Progress, hint: Any, seed: int) -> None:
        """Search the tree in the order of the window; `seed` has no effect."""
        search = WindowSearch(problem, hint)
        progress.offer(search.best, search.value, search.bound)
        for chosen in search.run():
            progress.work += 1
            if len(chosen) == len(search.best):
                progress.offer(search.best, search.value)
            if search.value < search.bound:
                progress.check()
        progress.prove(search.bound)


class WindowSearch:
    """The search of `DepthFirst`, node by node."""

    def __init__(self, window: WindowMKP, hint: Any = None) -> None:
        self._weights: list[int] = window.weights.tolist()
        self._profits: list[int] = window.profits.tolist()
        self._room: list[int] = window.capacities.tolist()
        rates = [Fraction(p, w) if w else math.inf for p, w in zip(self._profits, self._weights)]
        self._efficient = sorted(range(len(rates)), key=lambda job: -rates[job])
        # The incumbent: the slot of each job, or `NOT_PLACED`
        self.best = (NOT_PLACED,) * len(self._weights) if hint is None else tuple(hint)
        # Its profit, and an upper bound; equal when the search is complete
        self.value = window.objective(self.best)
        self.bound = self._bound_from(0)

    def run(self) -> Iterator[list[int]]:
        """Search, and yield at each visit of a node of the tree.

        The list has the slots of the first jobs, by number, and the number of slots for a job that
        is left out. It is the same list at all visits.
        """
        weights, profits, room = self._weights, self._profits, self._room
        slots = len(room)
        chosen: list[int] = []
        profit = 0
        while self.value < self.bound:
            job = len(chosen)
            if job == len(weights) and profit > self.value:
                self.best = tuple(slot if slot < slots else NOT_PLACED for slot in chosen)
                self.value = profit
            yield chosen
            if job < len(weights) and profit + self._bound_from(job) > self.value:
                slot = 0
            else:  # back to the last job that can be put elsewhere
                while chosen and chosen[-1] == slots:
                    chosen.pop()
                if not chosen:
                    break
                slot = chosen.pop()
                job = len(chosen)
                room[slot] += weights[job]
                profit -= profits[job]
                slot += 1
            while slot < slots and room[slot] < weights[job]:
                slot += 1
            if slot < slots:
                room[slot] -= weights[job]
                profit += profits[job]
            chosen.append(slot)
        self.bound = self.value

    def _bound_from(self, job: int) -> int:
        """Bound the profit of `job` and the jobs behind it in the room that is left."""
        weights, profits = self._weights, self._profits
        total, largest, bound = sum(self._room), max(self._room, default=0), 0
        for other in self._efficient:
            if other < job or weights[other] > largest:
                continue
            if weights[other] > total:
                return bound + profits[other] * total // weights[other]
            total -= weights[other]
            bound += profits[other]
        return bound
