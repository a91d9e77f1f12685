"""Which columns a job takes in its row."""

from __future__ import annotations

from collections.abc import Sequence

from optsched.column_sets import ColumnSet, loads, lowest


def columns_for(
    columns: int, occupied: Sequence[ColumnSet], rows: Sequence[int], sizes: Sequence[int]
) -> tuple[ColumnSet, ...]:
    """Choose the columns of jobs whose rows are known.

    One job after the other takes free columns of its row: first those that are taken in the fewest
    rows, by running jobs and by the jobs before it, and of those the ones with the lowest numbers.

    Parameters
    ----------
    columns : int
        How many columns there are.
    occupied : sequence of column set, length rows
        The columns of each row that running jobs hold.
    rows : sequence of int, length jobs
        The row of each job; negative for a job that takes no columns.
    sizes : sequence of int, length jobs
        How many columns each job takes.

    Returns
    -------
    tuple of column set, length jobs
        Empty without a row. Where a row has too few free columns, a job gets what is left.
    """
    chosen = [0] * len(rows)
    every = (1 << columns) - 1
    free = [every & ~held for held in occupied]
    levels = loads(occupied)
    for job, row in enumerate(rows):
        if row < 0:
            continue
        left, needed, taken = free[row], sizes[job], 0
        for crowded in (*levels, 0):
            fitting = left & ~crowded
            count = fitting.bit_count()
            if count >= needed:
                taken |= lowest(fitting, needed)
                break
            taken |= fitting
            left &= crowded
            needed -= count
        chosen[job] = taken
        free[row] &= ~taken
        levels = loads((*levels, taken))
    return tuple(chosen)
