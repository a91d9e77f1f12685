"""Search over columns slot by slot, which visits each set of used jobs once.

How the remaining slots can be filled depends on the set of jobs in the first slots, not on which of
these slots holds which job. There are far fewer sets than ways to fill slots, because jobs of
similar weight can be exchanged. Multipliers stay those of the root: the bounds are weaker than in a
column search, but a set takes a fraction of a microsecond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.column_node import Instance
from optsched.solvers.window_mkp._lagrangian.knapsack import knapsack
from optsched.solvers.window_mkp._reduction import Ints

Sets = NDArray[np.uint64]

MOST_JOBS = 40
"""Largest number of jobs, at most 64; of more, there are too many sets."""

STATES = 1 << 20
"""Number of visited states that are remembered."""

SHIFT = np.uint64(44)
"""Bits of a hash beyond those of a place among `STATES`."""

MIXER = np.uint64(0x9E3779B97F4A7C15)
"""Odd number near 2^64 divided by the golden ratio, for multiplicative hashing."""

EMPTY = np.uint64(0)

CELLS_PER_STATE = 128
"""Time of a state in table cells."""


class Layers(NamedTuple):
    """Columns and open jobs, slot by slot in the order of the search."""

    first: Ints  # offset of the columns of each slot, shape (slots + 1,)
    # Jobs of each column, as bits; the most valuable column of a slot comes first, shape
    # (columns,)
    used: Sets
    # Sums of the multipliers and of the reduced profits of these jobs, shape (columns,)
    value: Ints
    gain: Ints
    # Sums over the slot and those after it of the best value and of the largest weight, shape
    # (slots + 1,)
    best: Ints
    room: Ints
    # Jobs that are in any column of the slot and of those after it, shape (slots + 1,)
    possible: Sets
    # Jobs of positive reduced profit by decreasing reduced profit per weight, as bits, shape
    # (jobs,)
    bit: Sets
    # Weights and reduced profits of these, shape (jobs,)
    weight: Ints
    worth: Ints
    knapsack: int  # bound of the sum of reduced profits
    must: np.uint64  # jobs that must be placed, as bits


class Path(NamedTuple):
    """Complete state of a search."""

    depth: Ints  # number of filled slots, -1 at the end, shape (1,)
    place: Ints  # next column of each slot, shape (slots + 1,)
    used: Sets  # jobs in the slots before, shape (slots + 1,)
    # Sums of their multipliers and of their reduced profits, shape (slots + 1,)
    value: Ints
    gain: Ints
    # Sets of used jobs and number of filled slots of the states visited last, by hash, shape
    # (STATES, 2)
    visited: Sets


@kernel(allocates=False)
def can_reach(layers: Layers, depth: int, used: int, least: int) -> bool:
    """Return whether the best columns without used jobs are worth `least` from a slot on."""
    worth = layers.best[depth]
    for slot in range(depth, len(layers.first) - 1):
        column, end = layers.first[slot], layers.first[slot + 1]
        worth -= layers.value[column]
        while column < end and layers.used[column] & used != EMPTY:
            column += 1
        if column == end:
            return False
        worth += layers.value[column]
        if worth < least:
            return False
    return bool(worth >= least)


@kernel(allocates=False)
def bound_of_unused(layers: Layers, depth: int, used: int) -> int:
    """Return the linear relaxation of the knapsack of unused jobs for the slots from one on."""
    open_jobs = layers.possible[depth] & ~used
    room = layers.room[depth]
    worth = 0
    for job in range(len(layers.bit)):
        if layers.bit[job] & open_jobs != EMPTY:
            if layers.weight[job] > room:
                # one more, because the fraction is rounded
                return worth + 1 + int(layers.worth[job] * (room / layers.weight[job]))
            room -= layers.weight[job]
            worth += layers.worth[job]
    return worth


@kernel(allocates=False)
def visit(layers: Layers, path: Path, target: int, states: int) -> int:
    """Search until all slots are filled for a profit of at least `target`.

    The search pauses after a number of states, and ends at depth -1. Returns the number visited.
    """
    m = len(layers.first) - 1
    visited = 0
    while path.depth[0] >= 0 and visited < states:
        depth = path.depth[0]
        if depth == m:
            # the last piece ended here, with a placement
            path.depth[0] = depth = m - 1
        column = path.place[depth]
        if column == layers.first[depth + 1] or (
            path.value[depth] + layers.value[column] + layers.best[depth + 1] + layers.knapsack
            < target
        ):
            path.depth[0] = depth - 1
            continue
        path.place[depth] = column + 1
        if layers.used[column] & path.used[depth] != EMPTY:
            continue
        visited += 1
        used = path.used[depth] | layers.used[column]
        value = path.value[depth] + layers.value[column]
        gain = path.gain[depth] + layers.gain[column]
        depth += 1
        if depth < m:
            label = np.uint64(depth)
            state = ((used ^ label) * MIXER) >> SHIFT
            if path.visited[state, 0] == used and path.visited[state, 1] == label:
                continue
            path.visited[state, 0], path.visited[state, 1] = used, label
        elif used & layers.must != layers.must:
            continue
        most = min(layers.knapsack, gain + bound_of_unused(layers, depth, used))
        if not can_reach(layers, depth, used, target - value - most):
            continue
        path.depth[0] = depth
        path.used[depth], path.value[depth], path.gain[depth] = used, value, gain
        if depth == m:
            break
        path.place[depth] = layers.first[depth]
    return visited


class SlotSearch:
    """Search for placements of at least a given profit, in pieces.

    `instance`: instance of a column search.
    """

    def __init__(self, instance: Instance, alive: Ints, multipliers: Ints) -> None:
        columns, m, n = instance.columns, len(instance.twin), len(instance.weights)
        slot, sizes = columns.slot[alive], np.diff(columns.first)[alive]
        of_column = np.repeat(np.arange(len(alive)), sizes)
        jobs = np.concatenate(
            [columns.jobs[columns.first[c] : columns.first[c + 1]] for c in alive.tolist()]
        )
        present = np.unique(jobs)
        count = np.bincount(slot, minlength=m)
        missing = np.setdiff1d(np.flatnonzero(instance.must), present)
        # Whether jobs are few enough, and every slot and every job that must be placed
        # has a column. If not, the search cannot run.
        self.possible = len(present) <= MOST_JOBS and count.min() > 0 and len(missing) == 0
        if not self.possible:
            return
        reduced = instance.profits - multipliers
        bit = np.zeros(n, np.uint64)
        bit[present] = np.uint64(1) << np.arange(len(present), dtype=np.uint64)
        used = np.zeros(len(alive), np.uint64)
        value, gain, weight = np.zeros((3, len(alive)), np.int64)
        np.bitwise_or.at(used, of_column, bit[jobs])
        np.add.at(value, of_column, multipliers[jobs])
        np.add.at(gain, of_column, reduced[jobs])
        np.add.at(weight, of_column, instance.weights[jobs])
        # slots of few columns first
        self._slots = np.argsort(count, kind="stable")
        depth = np.argsort(self._slots)[slot]
        order = np.lexsort((-value, depth))
        first = np.concatenate(([0], np.cumsum(count[self._slots])))
        self._columns, used, value, gain = alive[order], used[order], value[order], gain[order]
        best, room, possible = value[first[:-1]], *_by_slot(first, weight[order], used)
        worth = np.zeros(n, np.int64)
        worth[present] = reduced[present]
        bound, _ = knapsack(
            worth, instance.weights, int(room.sum()), instance.must, 0, np.empty(n, np.bool_)
        )
        paying = present[reduced[present] > 0]
        rate = reduced[paying] / instance.weights[paying]
        paying = paying[np.argsort(-rate, kind="stable")]
        self._layers = Layers(
            first, used, value, gain, _from_the_end(np.add, best), _from_the_end(np.add, room),
            _from_the_end(np.bitwise_or, possible), bit[paying], instance.weights[paying],
            reduced[paying], bound, np.bitwise_or.reduce(bit[instance.must], initial=EMPTY),
        )  # fmt: skip
        self._path = Path(
            np.zeros(1, np.int64), first.copy(), np.zeros(m + 1, np.uint64),
            np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64), np.zeros((STATES, 2), np.uint64),
        )  # fmt: skip
        self._instance = instance
        self.done = False  # whether the search is complete
        self.profit = -1  # profit of `placement`, -1 before any is found
        self.placement = np.full(n, -1)  # slot of each job, -1 if not placed, shape (jobs,)

    def run(self, target: int, cells: int) -> int:
        """Search until a placement is found, or for about `cells`; return the cells visited."""
        states = visit(self._layers, self._path, target, 1 + cells // CELLS_PER_STATE)
        depth = int(self._path.depth[0])
        self.done = depth < 0
        if depth == len(self._slots):
            self.profit = int(self._path.value[depth] + self._path.gain[depth])
            self.placement[:] = -1
            columns = self._instance.columns
            for slot, place in zip(self._slots, self._path.place[:-1]):
                column = self._columns[place - 1]
                self.placement[columns.jobs[columns.first[column] : columns.first[column + 1]]] = (
                    slot
                )
        return CELLS_PER_STATE * states


def _by_slot(first: Ints, weight: Ints, used: Sets) -> tuple[Ints, Sets]:
    """Return the largest weight of the columns of each slot, and all their jobs."""
    return np.maximum.reduceat(weight, first[:-1]), np.bitwise_or.reduceat(used, first[:-1])


def _from_the_end(operation: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Return the accumulated values of each slot and those after it, and zero."""
    return np.append(operation.accumulate(values[::-1])[::-1], values.dtype.type(0))
