"""Branch and bound over enumerated columns, and search slot by slot.

The latter visits each set of used jobs once: how the remaining slots can be filled depends on the
set of jobs in the first slots, not on which of these slots holds which job. There are far fewer
sets than ways to fill slots, because jobs of similar weight can be exchanged. Multipliers stay
those of the root: the bounds are weaker than in a column search, but a set takes a fraction of a
microsecond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.arrays import Flags, Ints, Words
from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.column_node import (
    TOO_MANY,
    UNKNOWN,
    Columns,
    Instance,
    Node,
    count_columns,
    descend,
    fix_columns,
    list_columns,
    new_node,
    propagate_columns,
)
from optsched.solvers.window_mkp._lagrangian.knapsacks import CELLS_PER_STEP, coarseness, knapsack
from optsched.solvers.window_mkp._reduction import assign, by_size

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
    used: Words
    # Sums of the multipliers and of the reduced profits of these jobs, shape (columns,)
    value: Ints
    gain: Ints
    # Sums over the slot and those after it of the best value and of the largest weight, shape
    # (slots + 1,)
    best: Ints
    room: Ints
    # Jobs that are in any column of the slot and of those after it, shape (slots + 1,)
    possible: Words
    # Jobs of positive reduced profit by decreasing reduced profit per weight, as bits, shape
    # (jobs,)
    bit: Words
    # Weights and reduced profits of these, shape (jobs,)
    weight: Ints
    worth: Ints
    knapsack: int  # bound of the sum of reduced profits
    must: np.uint64  # jobs that must be placed, as bits


class Path(NamedTuple):
    """Complete state of a search."""

    depth: Ints  # number of filled slots, -1 at the end, shape (1,)
    place: Ints  # next column of each slot, shape (slots + 1,)
    used: Words  # jobs in the slots before, shape (slots + 1,)
    # Sums of their multipliers and of their reduced profits, shape (slots + 1,)
    value: Ints
    gain: Ints
    # Sets of used jobs and number of filled slots of the states visited last, by hash, shape
    # (STATES, 2)
    visited: Words


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
        begin = first[:-1]
        best, room = value[begin], np.maximum.reduceat(weight[order], begin)
        possible = np.bitwise_or.reduceat(used, begin)
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


def _from_the_end(operation: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Return the accumulated values of each slot and those after it, and zero."""
    return np.append(operation.accumulate(values[::-1])[::-1], values.dtype.type(0))


DONE, PAUSED, FULL = 0, 1, 2

BOUNDED, NEW, AGAIN = 0, 1, 2
"""States of the current node: bounded, not yet bounded, to be bounded again."""

EVALUATIONS = 15
"""Evaluations of the relaxation in a node, a third as many when the node is bounded again."""

MANY = 0.3
"""Share of removed columns from which on a node is bounded again."""

PER_SLOT = 1.5
"""Largest ratio of columns to choices of the best job for branching on a slot."""

HEAD_START = 1 << 24
"""Table cells of the branch and bound before a slot search alternates with it."""

SHARE = 8
"""Work of the slot search for each unit of work of the branch and bound."""


class Tree(NamedTuple):
    """Path from the root to the current node: the complete state of a search."""

    alive: Ints  # columns of the nodes on the path, node by node, shape (space,)
    # Range of each node in `alive`, shape (depths,)
    begin: Ints
    end: Ints
    multipliers: Ints  # multipliers of each node, shape (depths, jobs)
    branch: Ints  # job that each node branches on, -1 for a slot, shape (depths,)
    # Open choices, node by node, most promising last, each with a bound of the profit: slots
    # of the job (-1 for not placed), or columns of the slot, shape (space,)
    choice: Ints
    promise: Ints
    choices: Ints  # offset of the choices of each node, shape (depths,)
    # Depth of the current node (-1 at the end), its state, and offset of the next choice,
    # shape (3,)
    position: Ints


def first_tree(instance: Instance, multipliers: Ints) -> Tree:
    """Return the tree with the root alone."""
    slots, jobs = len(instance.twin), len(instance.weights)
    columns = len(instance.total)
    depths = slots + jobs + 2
    tree = Tree(
        alive=np.arange(4 * columns + 1000),
        begin=np.zeros(depths, np.int64),
        end=np.full(depths, columns),
        multipliers=np.zeros((depths, jobs), np.int64),
        branch=np.zeros(depths, np.int64),
        choice=np.empty(2 * columns + 1000, np.int64),
        promise=np.empty(2 * columns + 1000, np.int64),
        choices=np.zeros(depths, np.int64),
        position=np.array([0, NEW, 0]),
    )
    tree.multipliers[0] = multipliers
    return tree


def doubled(tree: Tree) -> Tree:
    """Return the tree with twice the space."""
    space = {name: getattr(tree, name) for name in ("alive", "choice", "promise")}
    return tree._replace(**{name: np.resize(a, 2 * len(a)) for name, a in space.items()})


@kernel
def explore(
    instance: Instance, tree: Tree, node: Node, target: int, cells: int, placement: Ints
) -> tuple[int, int, int, int]:
    """Search for placements of at least `target`, up to the most profitable one.

    A node is bounded, columns that cannot reach `target` are removed, and it is bounded again if
    these are many. Then it branches if any columns remain. The search pauses after about `cells`.

    Results: `DONE`, `PAUSED`, or `FULL` if the tree needs more space; profit of `placement`, which
    is overwritten, -1 without one; number of nodes bounded; cells.
    """
    found, nodes, looked_at = -1, 0, 0
    position = tree.position
    while position[0] >= 0:
        depth = position[0]
        if position[1] != AGAIN:
            space = tree.end[depth] + (tree.end[depth] - tree.begin[depth])
            room = len(tree.choice) - position[2]
            if space > len(tree.alive) or len(node.value) + len(node.alive) > room:
                return FULL, found, nodes, looked_at
            if looked_at > cells:
                return PAUSED, found, nodes, looked_at
        if position[1] != BOUNDED:
            evaluations = EVALUATIONS // 3
            if position[1] == NEW:
                evaluations = EVALUATIONS
                nodes += 1
                tree.choices[depth] = position[2]
            position[1] = BOUNDED
            begin = tree.begin[depth]
            alive = tree.alive[begin : tree.end[depth]]
            alive = alive[: propagate_columns(instance, alive, node)]
            if len(alive) == 0:
                continue
            bound, profit, steps = descend(
                instance, alive, tree.multipliers[depth], node, target, evaluations, placement
            )
            looked_at += 3 * (evaluations + 3) * len(alive) + CELLS_PER_STEP * steps
            if profit >= target:
                found, target = profit, profit + instance.unit
            if bound < target:
                continue
            kept = fix_columns(instance, alive, tree.multipliers[depth], node, bound, target)
            tree.end[depth] = begin + kept
            position[1] = AGAIN
            if kept > (1 - MANY) * len(alive):
                count_columns(instance, alive[:kept], node)
                fewest, most = len(alive), 0
                for count in node.alive:
                    fewest, most = min(fewest, count), max(most, count)
                # one column per slot is a placement, which the next round evaluates
                if fewest == 0 or most > 1:
                    position[1] = BOUNDED
                if fewest > 0 and most > 1:
                    branch(instance, tree, depth, alive[:kept], node, bound, target)
        elif position[2] == tree.choices[depth]:
            position[0] = depth - 1
        else:
            position[2] -= 1
            if tree.promise[position[2]] >= target:
                looked_at += apply_choice(instance, tree, depth, tree.choice[position[2]])
                position[0], position[1] = depth + 1, NEW
    return DONE, found, nodes, looked_at


@kernel
def branch(
    instance: Instance, tree: Tree, depth: int, alive: Ints, node: Node, bound: int, target: int
) -> None:
    """Branch on the job with the fewest choices, or on a slot with hardly more columns."""
    m, n = node.having.shape
    begin = top = tree.position[2]
    branched, fewest = -1, UNKNOWN
    for job in range(n):
        choices = 0
        settled = False
        for slot in range(m):
            if node.having[slot, job] > 0:
                choices += 1
                settled = settled or node.having[slot, job] == node.alive[slot]
        if settled or choices == 0:
            continue
        if bound - node.outside[job] >= target:
            choices += 1
        heavier = branched < 0 or instance.weights[job] > instance.weights[branched]
        if choices < fewest or (choices == fewest and heavier):
            branched, fewest = job, choices
    smallest = -1
    for slot in range(m):
        if node.alive[slot] > 1 and (smallest < 0 or node.alive[slot] < node.alive[smallest]):
            smallest = slot
    if branched < 0 or node.alive[smallest] <= PER_SLOT * fewest:
        tree.branch[depth] = -1
        for column in alive:
            if instance.columns.slot[column] == smallest:
                tree.choice[top] = column
                tree.promise[top] = bound - (node.best[smallest] - node.value[column])
                top += 1
    else:
        tree.branch[depth] = branched
        for slot in range(m):
            if node.having[slot, branched] > 0:
                lost = node.best[slot] - node.best_having[slot, branched]
                tree.choice[top] = slot
                tree.promise[top] = bound - lost - node.inside[branched]
                top += 1
        if bound - node.outside[branched] >= target:
            tree.choice[top] = -1
            tree.promise[top] = bound - node.outside[branched]
            top += 1
    order = np.arange(top - begin)
    choice, promise = tree.choice[begin:top].copy(), tree.promise[begin:top].copy()
    by_size(order, promise)
    for k in range(top - begin):
        tree.choice[begin + k], tree.promise[begin + k] = choice[order[k]], promise[order[k]]
    tree.position[2] = top


@kernel
def apply_choice(instance: Instance, tree: Tree, depth: int, choice: int) -> int:
    """Append the columns of a child to the path; return the number of table cells visited."""
    slots, first, jobs = instance.columns.slot, instance.columns.first, instance.columns.jobs
    branched = tree.branch[depth]
    taken = np.zeros(len(instance.weights), np.bool_)
    if branched >= 0:
        taken[branched] = True
    else:
        for job in jobs[first[choice] : first[choice + 1]]:
            taken[job] = True
    end = begin = tree.end[depth]
    for column in tree.alive[tree.begin[depth] : begin]:
        has = False
        for job in jobs[first[column] : first[column + 1]]:
            if taken[job]:
                has = True
                break
        if branched >= 0:
            fits = has == (slots[column] == choice)
        elif slots[column] == slots[choice]:
            fits = column == choice
        else:
            fits = not has
        if fits:
            tree.alive[end] = column
            end += 1
    tree.begin[depth + 1], tree.end[depth + 1] = begin, end
    assign(tree.multipliers[depth + 1], tree.multipliers[depth])
    return 3 * (begin - tree.begin[depth])


class ColumnSearch:
    """Search for all placements of at least a given profit, in pieces.

    Branch and bound over columns alternates, after a head start, with a search slot by slot of the
    columns that remain at the root.
    """

    def __init__(
        self,
        weights: Ints,
        profits: Ints,
        residual: Ints,
        allowed: Flags,  # whether a job may go into a slot, shape (slots, jobs)
        must: Flags,  # whether a job must be placed
        multipliers: Ints,  # of the Lagrangian decomposition, see `list_columns`
        target: int,  # least profit of a placement
        unit: int,  # common divisor of all profits
        most: int,  # largest number of columns to search
    ) -> None:
        scale = coarseness(len(weights), int(residual.max()))
        columns = Columns(
            np.empty(most, np.int64), np.empty(most + 1, np.int64), np.empty(8 * most, np.int64)
        )
        # Number of table cells visited
        count, self.cells = list_columns(
            multipliers, weights, profits, residual, allowed, must, target, scale, columns
        )
        # Whether the columns were enumerated; False if there are too many
        self.listed = count != TOO_MANY
        self.done = count == 0  # whether the search is complete
        self.nodes = 0  # number of nodes bounded
        self.profit = -1  # profit of `placement`, -1 without one
        # Slot of each job, -1 if not placed, shape (jobs,)
        self.placement = np.full(len(weights), -1)
        if count <= 0:
            return
        slot, first = columns.slot[:count].copy(), columns.first[: count + 1].copy()
        columns = Columns(slot, first, columns.jobs[: first[-1]].copy())
        of_column = np.repeat(np.arange(count), np.diff(first))
        total = np.zeros(count, np.int64)
        np.add.at(total, of_column, weights[columns.jobs])
        rank = np.empty(count, np.int64)
        twin = np.full(len(residual), -1)
        alike: dict[tuple[int, bytes], int] = {}
        for number in range(len(residual)):
            mine = slot == number
            rank[mine] = np.arange(mine.sum())
            kind = int(residual[number]), allowed[number].tobytes()
            twin[number] = alike.get(kind, -1)
            alike[kind] = number
        self._instance = Instance(weights, profits, must, columns, total, rank, twin, unit)
        self._tree = first_tree(self._instance, multipliers)
        self._node = new_node(len(residual), len(weights), count)
        self._by_slot: SlotSearch | None = None
        self._lead = HEAD_START

    def run(self, target: int, cells: int) -> None:
        """Search for placements of at least `target`, and pause after about `cells` table cells.

        Nothing happens if the search is `done`, as it may be from the start.
        """
        if self.done:
            return
        before = self.cells
        if self._lead < 0 and self._by_slot is None:
            self._by_slot = self.by_slot()
        if self._lead < 0 and self._by_slot is not None and self._by_slot.possible:
            self._run_by_slot(self._by_slot, target, cells)
            self._lead += self.cells - before
        else:
            self._run_tree(target, cells)
            self._lead -= SHARE * (self.cells - before)

    def by_slot(self) -> SlotSearch:
        """Return a search of the columns that bounds have left at the root."""
        root = self._tree.alive[: self._tree.end[0]].copy()
        return SlotSearch(self._instance, root, self._tree.multipliers[0])

    def _run_by_slot(self, search: SlotSearch, target: int, cells: int) -> None:
        self.cells += search.run(target, cells)
        self.done = search.done
        if search.profit >= target:
            self.profit = search.profit
            self.placement[:] = search.placement

    def _run_tree(self, target: int, cells: int) -> None:
        status = FULL
        while status == FULL:
            status, profit, nodes, looked_at = explore(
                self._instance, self._tree, self._node, target, cells, self.placement
            )
            self.nodes += nodes
            self.cells += looked_at
            if profit >= target:
                self.profit, target = profit, profit + self._instance.unit
            if status == FULL:
                self._tree = doubled(self._tree)
        self.done = status == DONE
