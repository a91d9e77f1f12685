"""Sequence of feasibility subproblems that leads to an optimal packing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from optsched.column_sets import ColumnSet
from optsched.models.gang_packing import NOT_PLACED, GangPacking, Packing
from optsched.solvers.gang_packing import _small_tree
from optsched.solvers.gang_packing._bounds import (
    FreeColumns,
    JobSets,
    largest_sum,
    longest_prefix,
    needed,
)
from optsched.solvers.gang_packing.fit_rules import fitted

LEFT_OUT = -1

MOST_KNOWN = 200_000
"""Largest number of infeasible search nodes to store."""


@dataclass(slots=True)
class _Node:
    """A search node, which decides one item; sets of items are bit masks.

    Undecided items of a total size of at most `spare` may be left out. `free` and `barred` have the
    free columns of each row and the items that may not go into it. `rows` are those not yet tried
    for the item, the next one last; `row` is being tried. `key` identifies the node up to
    permutations of rows.
    """

    undecided: int
    spare: int
    free: list[int]
    barred: list[int]
    item: int = LEFT_OUT
    rows: list[int] = field(default_factory=list)
    row: int = LEFT_OUT
    key: tuple[object, ...] = ()


class RowTree:
    """Depth-first search for a packing of items with conflicts into rows.

    Sets of items are bit masks. An item with only one or two possible rows is branched on first,
    else the largest item; the fullest row is tried first. Skipped are rows with the same free
    columns and conflicts as another one, rows in which an equal item failed, and search nodes that
    are known to be infeasible.
    """

    def __init__(
        self,
        sizes: Sequence[int],  # sizes of the items in columns, nonincreasing, shape (items,)
        # Mask of the items that may not share a row with each item, shape (items,)
        conflicts: Sequence[int],
        optional: int,  # mask of the items that need not be packed
        spare: int,  # largest total size of the items that are not packed
        free: Sequence[int],  # free columns of each row, shape (rows,)
    ) -> None:
        self._sizes = sizes
        self._falling = [-size for size in sizes]
        self._conflicts = conflicts
        self._optional = optional
        self._widest = max(free, default=0)
        self._equal = self._twins()
        self._sums: dict[int, int] = {}
        self._infeasible: set[tuple[object, ...]] = set()
        everything = (1 << len(sizes)) - 1
        self._root = _Node(everything, spare, list(free), [0] * len(free))

    def search(self, step: Callable[[], None]) -> list[int] | None:
        """Return the row of each item, -1 if not packed, or None if there is no packing.

        `step` is called for each search node; it may raise an exception to end the search.
        """
        path: list[_Node] = []
        node: _Node | None = self._root
        while node is not None:
            step()
            if self._is_done(node):
                rows = [LEFT_OUT] * len(self._sizes)
                for decided in path:
                    rows[decided.item] = decided.row
                return rows
            path.append(node)
            node = None
            while path and (node := self._next(path[-1])) is None:
                failed = path.pop()
                if failed.key and len(self._infeasible) < MOST_KNOWN:
                    self._infeasible.add(failed.key)
        return None

    def _twins(self) -> list[int]:
        """Return a mask of the interchangeable items for each item, itself included."""
        kinds: dict[tuple[int, int, int], int] = {}
        kind_of = [
            (size, conflicts, self._optional >> item & 1)
            for item, (size, conflicts) in enumerate(zip(self._sizes, self._conflicts))
        ]
        for item, kind in enumerate(kind_of):
            kinds[kind] = kinds.get(kind, 0) | 1 << item
        return [kinds[kind] for kind in kind_of]

    def _is_done(self, node: _Node) -> bool:
        """Choose the item and the rows of a node; return whether all items are decided."""
        one = two = three = 0
        within = []
        for columns, barred in zip(node.free, node.barred):
            first = bisect_left(self._falling, -columns)
            fitting = node.undecided >> first << first & ~barred
            three |= two & fitting
            two |= one & fitting
            one |= fitting
            within.append(fitting)
        must = node.undecided & ~self._optional
        if must & ~one:
            return False
        node.spare -= self._sum_of(node.undecided & ~one)
        some = one & self._optional
        wanted = self._sum_of(some) - node.spare
        if wanted <= 0 and not must:
            return True
        if wanted > 0:
            sums = self._sums_of(some)
            if wanted > sum(
                (sums & ((2 << columns) - 1)).bit_length() - 1 for columns in node.free
            ):
                return False
        node.undecided = one
        kinds = [
            (columns, barred & node.undecided) for columns, barred in zip(node.free, node.barred)
        ]
        node.key = (node.undecided, wanted, *sorted(kinds))
        if node.key in self._infeasible:
            return False
        choice = must & ~two or must & ~three or one
        bit = choice & -choice
        node.item = bit.bit_length() - 1
        rows = {kinds[row]: row for row in reversed(range(len(kinds))) if within[row] & bit}
        node.rows = [rows[kind] for kind in sorted(rows, reverse=True)]
        if bit & some:
            node.rows.insert(0, LEFT_OUT)
        return False

    def _next(self, node: _Node) -> _Node | None:
        """Return the next child of `node`, or None if all have been tried."""
        if not node.rows:
            return None
        node.row = row = node.rows.pop()
        size, equal = self._sizes[node.item], self._equal[node.item] & node.undecided
        if row == LEFT_OUT:
            # an equal item that is packed could change places with this one
            spare = node.spare - size * equal.bit_count()
            return _Node(node.undecided & ~equal, spare, node.free, node.barred.copy())
        free, barred = node.free.copy(), node.barred.copy()
        free[row] -= size
        barred[row] |= self._conflicts[node.item]
        node.barred[row] |= equal
        return _Node(node.undecided & ~(1 << node.item), node.spare, free, barred)

    def _sum_of(self, items: int) -> int:
        return sum(self._sizes[item] for item in _members(items))

    def _sums_of(self, items: int) -> int:
        """Return the subset sums of items up to the widest row, as bits."""
        sums = self._sums.get(items)
        if sums is None:
            sums, within = 1, (2 << self._widest) - 1
            for item in _members(items):
                sums |= sums << self._sizes[item] & within
            self._sums[items] = sums
        return sums


def _members(items: int) -> Iterator[int]:
    while items:
        bit = items & -items
        yield bit.bit_length() - 1
        items ^= bit


Placement = tuple[list[int], list[int]]
"""Row of each running and of each waiting job, -1 if not placed."""


class Subproblems:
    """Feasibility subproblems with ever more waiting jobs, and then with ever fewer rows.

    Placed jobs are measured in *steps*: jobs from the front of the queue under ``fcfs``, columns
    under ``skip``. `best` is a feasible packing to start from. `step` is called for each search
    node; it may raise an exception to end the search.
    """

    def __init__(self, problem: GangPacking, best: Packing, step: Callable[[], None]) -> None:
        self._problem = problem
        self._step = step
        self._free = FreeColumns(problem)
        self._in_order = problem.admission == "fcfs"
        self._served = list(accumulate(problem.waiting, initial=0))
        self._running = problem.columns_of_running
        self._job_sets: dict[int, tuple[list[int], JobSets]] = {}
        self._take(best)
        self._most = len(problem.waiting) if self._in_order else self._served[-1]
        if self._steps < self._most:
            self._most = self._step_bound(problem.waiting, problem.rows)
        self._min_rows = self._fewest_rows(self._most)

    def bound(self) -> int:
        """Return an upper bound of the objective."""
        placed = self._served[self._most] if self._in_order else self._most
        return (self._problem.rows + 1) * (self._running + placed) - self._min_rows

    def is_open(self) -> bool:
        """Return whether the best packing may still be improved."""
        return self._steps < self._most or self._rows > self._min_rows

    def solve_next(self) -> Packing | None:
        """Solve the next subproblem and return a better packing, or None if it is infeasible."""
        if self._steps < self._most:
            better = self._search(self._steps + 1, self._problem.rows)
            if better is None:
                self._most = self._steps
                self._min_rows = self._fewest_rows(self._most)
        else:
            better = self._search(self._steps, self._rows - 1)
            if better is None:
                self._min_rows = self._rows
        if better is not None:
            self._take(better)
        return better

    def _take(self, best: Packing) -> None:
        placed = [row >= 0 for row in best.rows_of_waiting]
        nodes = sum(size for size, there in zip(self._problem.waiting, placed) if there)
        self._steps = sum(placed) if self._in_order else nodes
        self._rows = len({*best.rows_of_running, *best.rows_of_waiting} - {NOT_PLACED})

    def _step_bound(self, sizes: Sequence[int], rows: int) -> int:
        """Return an upper bound on the steps in `rows` rows."""
        most_free = self._free.most(rows)
        if self._in_order:
            return longest_prefix(sizes, most_free)
        return largest_sum(sizes, most_free, self._free.per_row(rows))

    def _fewest_rows(self, steps: int) -> int:
        """Return a lower bound on the rows for `steps` steps."""
        sizes = self._problem.waiting[:steps] if self._in_order else self._problem.waiting
        for rows in range(self._free.fewest_rows, self._problem.rows):
            if self._step_bound(sizes, rows) >= steps:
                return rows
        return self._problem.rows

    def _search(self, steps: int, rows: int) -> Packing | None:
        """Return a packing of at least `steps` steps in `rows` rows, or None if infeasible."""
        problem = self._problem
        if problem.rerow:
            found = self._search_movable(steps, rows)
        elif self._in_order:
            found = place_waiting(problem, range(steps), rows, 0, self._step)
        else:
            jobs = needed(problem.waiting, self._free.most(rows))
            spare = sum(problem.waiting[job] for job in jobs) - steps
            found = place_waiting(problem, jobs, rows, spare, self._step)
        if found is None:
            return None
        of_running, of_waiting = found
        if rows == problem.rows:
            of_waiting = fitted(problem, of_running, tightest=True, placed=of_waiting)
        return problem.packing(of_running, of_waiting)

    def _search_movable(self, steps: int, rows: int) -> Placement | None:
        """Try sets of waiting jobs one by one, with running jobs in any rows."""
        sizes, crowded = self._problem.waiting, self._free.crowded_columns[rows]
        if self._in_order:
            return place_all(self._problem, range(steps), rows, crowded, self._step)
        if rows not in self._job_sets:
            jobs = sorted(needed(sizes, self._free.most(rows)), key=lambda job: -sizes[job])
            job_sets = JobSets([sizes[job] for job in jobs], self._free.most(rows))
            self._job_sets[rows] = jobs, job_sets
        jobs, job_sets = self._job_sets[rows]
        for chosen in job_sets.with_total(steps, self._step):
            some = [jobs[number] for number in chosen]
            found = place_all(self._problem, some, rows, crowded, self._step)
            if found is not None:
                return found
            job_sets.fail(chosen)
        return None


def place_all(
    problem: GangPacking,
    jobs: Iterable[int],
    rows: int,
    crowded: ColumnSet,
    step: Callable[[], None],
) -> Placement | None:
    """Place all running jobs and the waiting `jobs` in any of `rows` rows, if they fit.

    The columns in `crowded`, which running jobs take in every row in any case, are removed from
    rows and running jobs alike. `step` is called for each search node.
    """
    items = [((mask & ~crowded).bit_count(), mask, job) for job, mask in enumerate(problem.running)]
    items += [(problem.waiting[job], 0, job) for job in jobs]
    items.sort(key=lambda item: -item[0])
    sizes, masks = [size for size, _, _ in items], [mask for _, mask, _ in items]
    free = [problem.columns - crowded.bit_count()] * rows
    found = find_rows(sizes, masks, free, problem.columns, step)
    if found is None:
        return None
    of_running, of_waiting = [0] * len(problem.running), [NOT_PLACED] * len(problem.waiting)
    for (_, mask, job), row in zip(items, found, strict=True):
        (of_running if mask else of_waiting)[job] = row
    return of_running, of_waiting


def find_rows(
    sizes: Sequence[int],
    masks: Sequence[ColumnSet],
    free: Sequence[int],
    columns: int,
    step: Callable[[], None],
) -> list[int] | None:
    """Return the row of each item, or None if they do not fit.

    Items of nonincreasing sizes may not share a row if their `masks` of so many columns overlap.
    `step` is called for each search node.
    """
    if len(sizes) <= _small_tree.MOST_ITEMS and len(free) <= _small_tree.MOST_ROWS:
        width = 8 * -(-columns // 64)
        table = bytearray().join(mask.to_bytes(width, "little") for mask in masks)
        rows = np.empty(len(sizes), dtype=np.int64)
        outcome, nodes = _small_tree.search(
            np.array(sizes, dtype=np.int64),
            _small_tree.overlaps(np.frombuffer(table, "<u8").reshape(len(masks), width // 8)),
            np.array(free, dtype=np.int64),
            rows,
        )
        if outcome != _small_tree.GIVEN_UP:
            for _ in range(nodes):
                step()
            return rows.tolist() if outcome == _small_tree.PACKED else None
    conflicts = [0] * len(sizes)
    for item, mask in enumerate(masks):
        for other in range(item if mask else 0):
            if masks[other] & mask:
                conflicts[item] |= 1 << other
                conflicts[other] |= 1 << item
    return RowTree(sizes, conflicts, 0, 0, free).search(step)


def place_waiting(
    problem: GangPacking, jobs: Iterable[int], rows: int, spare: int, step: Callable[[], None]
) -> Placement | None:
    """Place waiting jobs in `rows` rows, beside running ones that keep their rows, if they fit.

    Jobs of a total size of at most `spare` columns may be left out. `step` is called for each
    search node.
    """
    held = problem.held
    names = sorted(range(problem.rows), key=lambda row: (not held[row], row))[:rows]
    free = [problem.columns - held[row].bit_count() for row in names]
    items = sorted(jobs, key=lambda job: -problem.waiting[job])
    optional = (1 << len(items)) - 1 if spare else 0
    sizes = [problem.waiting[job] for job in items]
    found = RowTree(sizes, [0] * len(items), optional, spare, free).search(step)
    if found is None:
        return None
    of_waiting = [NOT_PLACED] * len(problem.waiting)
    for job, row in zip(items, found, strict=True):
        if row != NOT_PLACED:
            of_waiting[job] = names[row]
    return list(problem.rows_of_running), of_waiting
