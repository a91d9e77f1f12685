"""The rule that chooses the matrix columns of a job in its row."""

from __future__ import annotations

from collections.abc import Sequence

from optsched.column_sets import ColumnSet, loads, lowest


def columns_for(
    columns: int, occupied: Sequence[ColumnSet], rows: Sequence[int], sizes: Sequence[int]
) -> tuple[ColumnSet, ...]:
    """Choose the columns of jobs with known rows.

    One job after the other gets free columns of its row, if it has one (from 0): first the columns
    that running and earlier jobs hold in the fewest rows, and of these the lowest numbers. If a row
    has too few free columns, a job gets the remaining ones. Running jobs hold the columns
    `occupied` of each row.
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
