"""The search for rows of items with conflicts: of any number, and compiled for at most 64.

`RowTree` is the readable statement. The compiled search visits the same nodes in the same order.
Its sets of items are single words, and it gives up after some thousand nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from optsched.arrays import Ints, Words
from optsched.column_sets import ColumnSet
from optsched.compiled import kernel
from optsched.machines.matrix import NONE, ONE, WORD, words_of

LEFT_OUT = -1

MOST_KNOWN = 200_000
"""Largest number of infeasible search nodes to store."""


@dataclass(slots=True)
class _Node:
    """A search node, which decides one item; sets of items are bit masks."""

    undecided: int
    spare: int  # largest total size of undecided items that are left out
    free: list[int]  # columns of each row
    barred: list[int]  # items that may not go into each row
    item: int = LEFT_OUT
    rows: list[int] = field(default_factory=list)  # not yet tried for the item, the next one last
    row: int = LEFT_OUT  # being tried
    key: tuple[object, ...] = ()  # identifies the node up to permutations of rows


class RowTree:
    """Depth-first search for a packing of items with conflicts into rows.

    An item with only one or two possible rows is branched on first,
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

    def search(self, step: Callable[[], None], counted: int = 0) -> list[int] | None:
        """Return the row of each item, -1 if not packed, or None.

        `step` is called for each node behind the first `counted`, and may end the search.
        """
        path: list[_Node] = []
        node: _Node | None = self._root
        while node is not None:
            if counted:
                counted -= 1
            else:
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


MOST_ITEMS, MOST_ROWS = 64, 64
"""Largest search that is compiled."""

MOST_NODES = 4096
"""Nodes after which the search gives up; keys of infeasible nodes take memory."""

PACKED, INFEASIBLE, GIVEN_UP = range(3)

ALL = ~NONE
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(32)


@kernel(allocates=False)
def slot_of(key: Words, keys: Words, slots: Ints) -> int:
    """Return the slot of a key in a hash table, 1 + its place in `keys`, or where it belongs."""
    mixed = NONE
    for part in range(len(key)):
        mixed = (mixed ^ key[part]) * MULTIPLIER
        mixed ^= mixed >> SHIFT
    slot = np.int64(mixed & np.uint64(len(slots) - 1))
    while slots[slot] > 0:
        known = keys[slots[slot] - 1]
        part = 0
        while part < len(key) and known[part] == key[part]:
            part += 1
        if part == len(key):
            break
        slot = (slot + 1) % len(slots)
    return int(slot)


@kernel(allocates=False)
def fitting(sizes: Ints, columns: int) -> np.uint64:
    """Return the items that `columns` free columns suffice for; sizes are nonincreasing."""
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        if sizes[middle] > columns:
            low = middle + 1
        else:
            high = middle
    return NONE if low == len(sizes) else ALL << np.uint64(low)


@kernel(allocates=False)
def order_rows(free: Ints, barred: Words, undecided: np.uint64, order: Ints) -> None:
    """Sort rows by free columns, then by the undecided items barred, then by number."""
    for row in range(len(free)):
        place, own = row, barred[row] & undecided
        while place > 0:
            other = order[place - 1]
            if free[other] < free[row]:
                break
            if free[other] == free[row] and barred[other] & undecided <= own:
                break
            order[place] = other
            place -= 1
        order[place] = row


@kernel
def overlaps(masks: Words) -> Words:
    """Return the other items that share a column with each item; rows of `masks` are items."""
    items = len(masks)
    shared = np.zeros(items, dtype=np.uint64)
    for one in range(items):
        for other in range(one):
            for word in range(masks.shape[1]):
                if masks[one, word] & masks[other, word]:
                    shared[one] |= ONE << np.uint64(other)
                    shared[other] |= ONE << np.uint64(one)
                    break
    return shared


@kernel
def search(sizes: Ints, masks: Words, columns: Ints, answer: Ints) -> tuple[int, int]:
    """Write the row of each item to `answer`, if they fit; return the outcome and the nodes.

    As in `RowTree`, sizes are nonincreasing; `columns` are the free ones of each row.
    """
    items, rows, conflicts = len(sizes), len(columns), overlaps(masks)
    undecided = np.zeros(items + 1, dtype=np.uint64)
    free = np.zeros((items + 1, rows), dtype=np.int64)
    barred = np.zeros((items + 1, rows), dtype=np.uint64)
    item = np.zeros(items + 1, dtype=np.int64)
    tried = np.zeros((items + 1, rows), dtype=np.int64)  # rows to try for the item, in order
    number = np.zeros(items + 1, dtype=np.int64)  # of these rows
    upcoming = np.zeros(items + 1, dtype=np.int64)  # the next of them
    key = np.zeros((items + 1, 1 + 2 * rows), dtype=np.uint64)
    has_key = np.zeros(items + 1, dtype=np.bool_)
    order = np.zeros(rows, dtype=np.int64)
    keys = np.empty((MOST_NODES, 1 + 2 * rows), dtype=np.uint64)  # of infeasible nodes
    slots = np.zeros(2 * MOST_NODES, dtype=np.int64)
    equal = np.zeros(items, dtype=np.uint64)
    for one in range(items):
        undecided[0] |= ONE << np.uint64(one)
        for other in range(items):
            if sizes[one] == sizes[other] and conflicts[one] == conflicts[other]:
                equal[one] |= ONE << np.uint64(other)
    for row in range(rows):
        free[0, row] = columns[row]
    known = nodes = depth = 0
    while nodes < MOST_NODES:
        nodes += 1
        left = undecided[depth]
        in_one = in_two = in_three = NONE  # items with so many possible rows
        for row in range(rows):
            here = left & ~barred[depth, row] & fitting(sizes, free[depth, row])
            in_three |= in_two & here
            in_two |= in_one & here
            in_one |= here
        number[depth] = upcoming[depth] = 0
        has_key[depth] = False
        if left == NONE:
            for above in range(depth):
                answer[item[above]] = tried[above, upcoming[above] - 1]
            return PACKED, nodes
        if left & ~in_one == NONE:
            order_rows(free[depth], barred[depth], left, order)
            key[depth, 0] = left
            for place in range(rows):
                key[depth, 1 + 2 * place] = np.uint64(free[depth, order[place]])
                key[depth, 2 + 2 * place] = barred[depth, order[place]] & left
            has_key[depth] = True
            if slots[slot_of(key[depth], keys, slots)] == 0:
                choice = left & ~in_two
                if choice == NONE:
                    choice = left & ~in_three
                if choice == NONE:
                    choice = left
                item[depth] = 0
                while not (choice >> np.uint64(item[depth])) & ONE:
                    item[depth] += 1
                bit = ONE << np.uint64(item[depth])
                for place in range(rows):
                    row = order[place]
                    if free[depth, row] < sizes[item[depth]] or barred[depth, row] & bit:
                        continue
                    if (
                        place > 0
                        and key[depth, 1 + 2 * place] == key[depth, 2 * place - 1]
                        and key[depth, 2 + 2 * place] == key[depth, 2 * place]
                    ):
                        continue
                    tried[depth, number[depth]] = row
                    number[depth] += 1
        while upcoming[depth] == number[depth]:
            if has_key[depth]:
                slot = slot_of(key[depth], keys, slots)
                if slots[slot] == 0:
                    for part in range(1 + 2 * rows):
                        keys[known, part] = key[depth, part]
                    known += 1
                    slots[slot] = known
            depth -= 1
            if depth < 0:
                return INFEASIBLE, nodes
        row, here_item = tried[depth, upcoming[depth]], item[depth]
        upcoming[depth] += 1
        for other in range(rows):
            free[depth + 1, other] = free[depth, other]
            barred[depth + 1, other] = barred[depth, other]
        free[depth + 1, row] -= sizes[here_item]
        barred[depth + 1, row] |= conflicts[here_item]
        barred[depth, row] |= equal[here_item] & undecided[depth]
        undecided[depth + 1] = undecided[depth] & ~(ONE << np.uint64(here_item))
        depth += 1
    return GIVEN_UP, nodes


def find_rows(
    sizes: Sequence[int],
    masks: Sequence[ColumnSet],
    free: Sequence[int],
    columns: int,
    step: Callable[[], None],
) -> list[int] | None:
    """Return the row of each item, or None; items whose masks overlap may not share a row."""
    nodes = 0
    if len(sizes) <= MOST_ITEMS and len(free) <= MOST_ROWS:
        words = words_of(masks, -(-columns // WORD))
        given, room = np.array(sizes, dtype=np.int64), np.array(free, dtype=np.int64)
        rows = np.empty_like(given)
        outcome, nodes = search(given, words, room, rows)
        for _ in range(nodes):
            step()
        if outcome != GIVEN_UP:
            return rows.tolist() if outcome == PACKED else None
    conflicts = [0] * len(sizes)
    for item, mask in enumerate(masks):
        for other in range(item if mask else 0):
            if masks[other] & mask:
                conflicts[item] |= 1 << other
                conflicts[other] |= 1 << item
    return RowTree(sizes, conflicts, 0, 0, free).search(step, nodes)
