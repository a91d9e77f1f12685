"""Sets of processors as whole numbers: bit c of the number stands for processor c.

Union, intersection and size of such sets are single operations for any number of processors, on
which the speed of an Ousterhout matrix depends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

INTERVAL = r"[0-9]{1,12}(-[0-9]{1,12})?"
"""Pattern of a column, or of the first and the last column of an interval."""

COLUMNS = re.compile(f"{INTERVAL}( {INTERVAL})*")

ColumnSet = int
"""Set of columns: bit c stands for column c."""


def runs_of(columns: ColumnSet) -> Iterator[tuple[int, int]]:
    """Yield the maximal runs of a set in order, each as its start and its stop.

    >>> list(runs_of(0b100011))
    [(0, 2), (5, 6)]
    """
    at = 0
    while columns:
        skipped = (columns & -columns).bit_length() - 1
        columns >>= skipped
        length = (columns ^ (columns + 1)).bit_length() - 1
        columns >>= length
        at += skipped + length
        yield at - length, at


def lowest(columns: ColumnSet, count: int) -> ColumnSet:
    """Return the `count` lowest columns of a set, which must have as many.

    >>> bin(lowest(0b110110, 3))
    '0b10110'
    """
    taken = 0
    for start, stop in runs_of(columns):
        if count <= stop - start:
            return taken | ((1 << start + count) - (1 << start))
        taken |= (1 << stop) - (1 << start)
        count -= stop - start
    return taken


def interval_text(columns: ColumnSet) -> str:
    """Return a set as intervals, ``0-1 5`` for instance."""
    return runs_text(runs_of(columns))


def runs_text(runs: Iterable[tuple[int, int]]) -> str:
    """Return runs, each from its start to before its stop, as intervals.

    >>> runs_text([(0, 2), (5, 6)])
    '0-1 5'
    """
    return " ".join([f"{a}-{b - 1}" if b - a > 1 else f"{a}" for a, b in runs])


def loads(sets: Iterable[ColumnSet]) -> list[ColumnSet]:
    """Return the columns that are in at least one of the sets, in at least two, and so on.

    >>> [bin(columns) for columns in loads([0b011, 0b110, 0b010])]
    ['0b111', '0b10', '0b10']
    """
    levels: list[ColumnSet] = []
    for columns in sets:
        for level, at_least in enumerate(levels):
            levels[level] = at_least | columns
            columns &= at_least
        if columns:
            levels.append(columns)
    return levels


def columns_on_file(text: str, columns: int) -> ColumnSet | None:
    """Return the columns of a text such as ``0-3 7``, None if the text is not of that form.

    Columns and intervals are ascending, disjoint, and separated by one blank each.
    """
    if COLUMNS.fullmatch(text) is None:
        return None
    found = end = 0
    for part in text.split(" "):
        first, _, last = part.partition("-")
        start, stop = int(first), int(last or first) + 1
        if not end <= start < stop <= columns:
            return None
        found |= (1 << stop) - (1 << start)
        end = stop
    return found
