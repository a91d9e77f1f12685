"""The search of `RowTree` for at most 64 items that all have to be packed, compiled.

The readable statement is `optsched.solvers.gang_packing._subproblems`: the same nodes in the same
order. Sets of items are single words, and the search gives up after some thousand nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optsched.compiled import kernel

Numbers = NDArray[np.int64]
Sets = NDArray[np.uint64]

MOST_ITEMS, MOST_ROWS = 64, 64
"""Largest search that is compiled."""

MOST_NODES = 4096
"""Nodes after which the search gives up; keys of infeasible nodes take memory."""

PACKED, INFEASIBLE, GIVEN_UP = range(3)

NONE, ONE = np.uint64(0), np.uint64(1)
ALL = ~NONE
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(32)


@kernel(allocates=False)
def slot_of(key: Sets, keys: Sets, slots: Numbers) -> int:
    """Return the slot of a key in a hash table, or the free slot where it belongs.

    `slots` has a power of two entries: 0, or one more than the place of a key in `keys`.
    """
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
def fitting(sizes: Numbers, columns: int) -> np.uint64:
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
def sort_rows(free: Numbers, barred: Sets, undecided: np.uint64, order: Numbers) -> None:
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
def overlaps(masks: Sets) -> Sets:
    """Return the set of the other items that share a column with each item.

    `masks` has the columns of an item in each row, as words of 64 columns.
    """
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
def search(sizes: Numbers, conflicts: Sets, columns: Numbers, answer: Numbers) -> tuple[int, int]:
    """Search for the row of each item.

    `sizes`: sizes of the items in columns, nonincreasing, shape (items,); `conflicts`: mask of the
    items that may not share a row with each item, shape (items,); `columns`: free columns of each
    row, shape (rows,); `answer`: gets the row of each item if there is a packing, shape (items,).
    Result: `PACKED`, `INFEASIBLE`, or `GIVEN_UP` after `MOST_NODES` nodes.
    """
    items, rows = len(sizes), len(columns)
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
            sort_rows(free[depth], barred[depth], left, order)
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


def prepare() -> None:
    """Load or compile the kernels."""
    columns = np.ones(1, dtype=np.int64)
    search(columns, overlaps(np.ones((1, 1), dtype=np.uint64)), columns, columns.copy())
