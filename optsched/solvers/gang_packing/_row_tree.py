"""Depth-first search for a packing of items with conflicts into rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

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
