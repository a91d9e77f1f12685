"""A depth-first search for rows that hold what must be in them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

LEFT_OUT = -1

MOST_KNOWN = 200_000
"""Nodes that are remembered to lead nowhere."""


@dataclass(slots=True)
class _Node:
    """What is left to decide, and the rows so far.

    Parameters
    ----------
    left : int
        The items that are not decided yet, as a mask.
    spare : int
        How much the items that are left out from here on may measure.
    free : list of int, shape (rows,)
        The room left in each row.
    barred : list of int, shape (rows,)
        The items that may not go into each row, as masks.
    item : int
        What is decided here.
    rows : list of int
        Where it can still go, the next at the end.
    row : int
        Where it goes now.
    key : tuple
        What tells the node from others; rows have no names in it.
    """

    left: int
    spare: int
    free: list[int]
    barred: list[int]
    item: int = LEFT_OUT
    rows: list[int] = field(default_factory=list)
    row: int = LEFT_OUT
    key: tuple[object, ...] = ()


class RowTree:
    """Asks whether items fit into rows: a packing with conflicts, answered depth first.

    Sets of items are bit masks. An item with one or two rows left goes next, else the largest, and
    it tries the fullest row first. What is not looked into: more than one of several rows with the
    same room and the same conflicts; an item where an equal one failed; nodes that are known to
    lead nowhere.

    Parameters
    ----------
    sizes : sequence of int, shape (items,)
        By falling size.
    conflicts : sequence of int, shape (items,)
        The items that may not share a row with each item, as a mask.
    optional : int
        The items that may be left out, as a mask.
    spare : int
        How much the items that are left out may measure together.
    room : sequence of int, shape (rows,)
        The room of each row.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        conflicts: Sequence[int],
        optional: int,
        spare: int,
        room: Sequence[int],
    ) -> None:
        self._sizes = sizes
        self._falling = [-size for size in sizes]
        self._conflicts = conflicts
        self._optional = optional
        self._widest = max(room, default=0)
        self._equal = self._twins()
        self._sums: dict[int, int] = {}
        self._nowhere: set[tuple[object, ...]] = set()
        everything = (1 << len(sizes)) - 1
        self._root = _Node(everything, spare, list(room), [0] * len(room))

    def search(self, step: Callable[[], None]) -> list[int] | None:
        """Return the row of each item, -1 for one that is left out; none if there are no such rows.

        Parameters
        ----------
        step : callable
            Told of each node; raises what ends the search.
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
                if failed.key and len(self._nowhere) < MOST_KNOWN:
                    self._nowhere.add(failed.key)
        return None

    def _twins(self) -> list[int]:
        """Return for each item those that could stand for it, itself included."""
        kinds: dict[tuple[int, int, int], int] = {}
        kind_of = [
            (size, conflicts, self._optional >> item & 1)
            for item, (size, conflicts) in enumerate(zip(self._sizes, self._conflicts))
        ]
        for item, kind in enumerate(kind_of):
            kinds[kind] = kinds.get(kind, 0) | 1 << item
        return [kinds[kind] for kind in kind_of]

    def _is_done(self, node: _Node) -> bool:
        """Choose what to decide at a node, and where it can go; return whether nothing is left."""
        one = two = three = 0
        within = []
        for room, barred in zip(node.free, node.barred):
            first = bisect_left(self._falling, -room)
            fitting = node.left >> first << first & ~barred
            three |= two & fitting
            two |= one & fitting
            one |= fitting
            within.append(fitting)
        must = node.left & ~self._optional
        if must & ~one:
            return False
        node.spare -= self._sum_of(node.left & ~one)
        some = one & self._optional
        wanted = self._sum_of(some) - node.spare
        if wanted <= 0 and not must:
            return True
        if wanted > 0:
            sums = self._sums_of(some)
            if wanted > sum((sums & ((2 << room) - 1)).bit_length() - 1 for room in node.free):
                return False
        node.left = one
        kinds = [(room, barred & node.left) for room, barred in zip(node.free, node.barred)]
        node.key = (node.left, wanted, *sorted(kinds))
        if node.key in self._nowhere:
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
        """Return the next node below `node`; none if there is no other."""
        if not node.rows:
            return None
        node.row = row = node.rows.pop()
        size, equal = self._sizes[node.item], self._equal[node.item] & node.left
        if row == LEFT_OUT:
            # an equal item that is in could change places with it
            spare = node.spare - size * equal.bit_count()
            return _Node(node.left & ~equal, spare, node.free, node.barred.copy())
        free, barred = node.free.copy(), node.barred.copy()
        free[row] -= size
        barred[row] |= self._conflicts[node.item]
        node.barred[row] |= equal
        return _Node(node.left & ~(1 << node.item), node.spare, free, barred)

    def _sum_of(self, items: int) -> int:
        return sum(self._sizes[item] for item in _members(items))

    def _sums_of(self, items: int) -> int:
        """Return what some of the items can measure together in a row: bit s for the sum s."""
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
