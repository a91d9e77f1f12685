"""Best-first search over the jobs of a window, compiled: Algorithms 1 and 2 of Yang et al. 2014."""

from __future__ import annotations

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._depth_first import dantzig_bound
from optsched.solvers.window_mkp._reduction import Ints, assign

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
    # Number of nodes in the tree, number of nodes in the heap, profit of `placement`, and
    # bound; preserved between calls, shape (4,)
    state: Ints,
    # Slot of each job, number of slots if not placed; overwritten by better placements, shape
    # (jobs,)
    placement: Ints,
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
