"""Sets of columns of a matrix as bit masks: their texts, and which columns a job takes.

Bit c of a mask stands for column c. A mask of some hundred columns is one Python integer, and what
is asked of it (which are free, how many, are two disjoint) takes some ten nanoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

INTERVAL = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?")


def interval_text(mask: int) -> str:
    """Return the columns of a mask as intervals, ``0-3 7 12-15`` for instance."""
    texts = []
    while mask:
        start = (mask & -mask).bit_length() - 1
        run = mask >> start
        length = (~run & (run + 1)).bit_length() - 1
        texts.append(f"{start}" if length == 1 else f"{start}-{start + length - 1}")
        mask = run >> length << (start + length)
    return " ".join(texts)


def mask_of(text: str, columns: int) -> int | None:
    """Return the mask of a text as `interval_text` writes it; none if it is not such a text.

    Parameters
    ----------
    text : str
        Columns and intervals, ascending and apart, separated by single blanks.
    columns : int
        How many columns there are.
    """
    mask = end = 0
    for part in text.split(" "):
        interval = INTERVAL.fullmatch(part)
        if interval is None:
            return None
        first, last = int(interval[1]), int(interval[2] or interval[1])
        if not end <= first <= last < columns:
            return None
        mask |= (1 << (last + 1)) - (1 << first)
        end = last + 1
    return mask


def column_levels(occupied: Iterable[int], rows: int) -> list[int]:
    """Return in which columns many rows are taken.

    Parameters
    ----------
    occupied : iterable of int
        The taken columns of each row, as masks.
    rows : int
        How many rows there are.

    Returns
    -------
    list of int, length rows + 1
        Entry k is the mask of the columns that are taken in more than k rows.
    """
    levels = [0] * (rows + 1)
    for mask in occupied:
        _stack(levels, mask)
    return levels


def _stack(levels: list[int], mask: int) -> None:
    """Count one more row in the columns of `mask`."""
    for level, above in enumerate(levels):
        levels[level] = above | mask
        mask &= above
        if not mask:
            return


def columns_for(
    columns: int, occupied: Sequence[int], rows: Sequence[int], sizes: Sequence[int]
) -> tuple[int, ...]:
    """Choose the columns of jobs whose rows are known.

    One job after the other takes free columns of its row: first those that are taken in the fewest
    rows, by running jobs and by the jobs before it, and of those the ones with the lowest numbers.

    Parameters
    ----------
    columns : int
        How many columns there are.
    occupied : sequence of int, length rows
        The columns of each row that running jobs hold, as masks.
    rows : sequence of int, length jobs
        The row of each job; negative for a job that takes no columns.
    sizes : sequence of int, length jobs
        How many columns each job takes.

    Returns
    -------
    tuple of int, length jobs
        Masks; 0 without a row. Where a row has too few free columns, a job gets what is left.
    """
    chosen = [0] * len(rows)
    levels: list[int] = []
    free: list[int] = []
    for job, row in enumerate(rows):
        if row < 0:
            continue
        if not levels:
            levels = column_levels(occupied, len(occupied))
            every = (1 << columns) - 1
            free = [every & ~mask for mask in occupied]
        left, needed, mask = free[row], sizes[job], 0
        for crowded in levels:
            fitting = left & ~crowded
            count = fitting.bit_count()
            if count >= needed:
                mask |= _lowest(fitting, needed)
                break
            mask |= fitting
            left &= crowded
            needed -= count
        chosen[job] = mask
        free[row] &= ~mask
        _stack(levels, mask)
    return tuple(chosen)


def _lowest(mask: int, count: int) -> int:
    """Return the `count` lowest of the at least as many columns of `mask`."""
    low, high = count, mask.bit_length()
    while low < high:
        middle = (low + high) // 2
        if (mask & ((1 << middle) - 1)).bit_count() < count:
            low = middle + 1
        else:
            high = middle
    return mask & ((1 << low) - 1)
