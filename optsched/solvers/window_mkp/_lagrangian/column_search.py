"""Branch and bound over enumerated columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.compiled import kernel
from optsched.solvers.window_mkp._lagrangian.column_node import (
    UNKNOWN,
    Instance,
    Node,
    count_columns,
    descend,
    fix_columns,
    new_node,
    propagate_columns,
)
from optsched.solvers.window_mkp._lagrangian.columns import TOO_MANY, Columns, list_columns
from optsched.solvers.window_mkp._lagrangian.knapsack import CELLS_PER_STEP, Bools
from optsched.solvers.window_mkp._lagrangian.slot_search import SlotSearch
from optsched.solvers.window_mkp._lagrangian.slots import coarseness
from optsched.solvers.window_mkp._reduction import Ints, assign, by_size

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
    these are many. Then it branches if any columns remain.

    `instance`: instance of the search; `tree`: state of the search, which is updated; `target`:
    least profit of a placement; `cells`: approximate number of table cells after which to pause;
    `placement`: overwritten by the slot of each job, -1 if not placed, when a placement is found,
    shape (jobs,). Results: `status`: `DONE`, `PAUSED`, or `FULL` if the tree needs more space;
    `profit`: profit of `placement`, -1 without one; `nodes`: number of nodes bounded; `looked_at`:
    number of table cells visited.
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
        residual: Ints,  # residual capacities of the slots, shape (slots,)
        allowed: Bools,  # whether a job may go into a slot, shape (slots, jobs)
        must: Bools,  # whether a job must be placed, shape (jobs,)
        # Multipliers of the Lagrangian decomposition, see `list_columns`, shape (jobs,)
        multipliers: Ints,
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
