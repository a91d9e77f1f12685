"""Compaction of running jobs, and first and best fit of waiting jobs, compiled.

Sets of columns are rows of words, see `optsched.machines.matrix`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines.matrix import Numbers, Words, add, overlap, remove

NOT_PLACED = -1
"""The row of a job without one, as in the model; kernels take constants from files of kernels."""


@by_reference
class Rows(NamedTuple):
    """The rows of a matrix, and scratch of compaction."""

    held: Words  # columns held in each row
    number: Numbers  # of columns held in each row
    fullest: Numbers  # the rows, the fullest first
    # scratch
    sources: Numbers  # the rows in that order before compaction
    first: Numbers  # order[first[row]:first[row + 1]] are the places of the jobs of a row
    order: Numbers


def empty_rows(rows: int, jobs: int, words: int) -> Rows:
    """Return empty rows for at most `jobs` jobs, sets of columns being `words` long."""
    number, sources = np.zeros((2, rows), dtype=np.int64)
    first, order = np.zeros(rows + 1, dtype=np.int64), np.zeros(jobs, dtype=np.int64)
    held = np.zeros((rows, words), dtype=np.uint64)
    return Rows(held, number, np.arange(rows), sources, first, order)


@kernel(allocates=False)
def sort_rows(rows: Rows) -> None:
    """Sort the rows: the fullest first, of equal ones that of lowest number."""
    fullest, count = rows.fullest, rows.number
    for place in range(1, len(fullest)):
        row = fullest[place]
        while place > 0 and (
            count[fullest[place - 1]] < count[row]
            or (count[fullest[place - 1]] == count[row] and fullest[place - 1] > row)
        ):
            fullest[place] = fullest[place - 1]
            place -= 1
        fullest[place] = row


@kernel(allocates=False)
def sort_by_row(rows: Rows, row: Numbers, count: int) -> None:
    """Sort the places of `count` jobs by row; in a row the first job is first."""
    first = rows.first
    first[:] = 0
    for place in range(count):
        first[row[place] + 1] += 1
    for r in range(1, len(first)):
        first[r] += first[r - 1]
    for place in range(count):
        rows.order[first[row[place]]] = place
        first[row[place]] += 1
    for r in range(len(first) - 1, 0, -1):
        first[r] = first[r - 1]
    first[0] = 0


@kernel(allocates=False)
def compact(
    rows: Rows, width: int, columns: Words, size: Numbers, jobs: Numbers, count: int, row: Numbers
) -> None:
    """Move the first `count` of the running jobs to fuller rows, and note the row of each.

    Rows are processed from the emptiest (of equal rows, that of highest number first). Each job of
    a row, in the order of jobs, moves to the fullest row (of equal rows, that of lowest number)
    that is fuller than its own and has its columns free.

    `columns` and `size` are those of all jobs; a row has `width` columns.
    """
    held, number, fullest = rows.held, rows.number, rows.fullest
    sort_rows(rows)
    sort_by_row(rows, row, count)
    for rank in range(len(fullest)):
        rows.sources[rank] = fullest[rank]
    for turn in range(len(fullest) - 1, -1, -1):
        source = rows.sources[turn]
        for entry in range(rows.first[source], rows.first[source + 1]):
            place = rows.order[entry]
            job = jobs[place]
            for rank in range(len(fullest)):
                target = fullest[rank]
                if target == source:
                    break
                has_room = width - number[target] >= size[job]
                if has_room and not overlap(held[target], columns[job]):
                    row[place] = target
                    add(held[target], columns[job])
                    remove(held[source], columns[job])
                    number[target] += size[job]
                    number[source] -= size[job]
                    sort_rows(rows)
                    break


@kernel(allocates=False)
def fit(
    used: Numbers, width: int, skips: bool, tightest: bool, size: Numbers, count: int, row: Numbers
) -> None:
    """Choose the row of each of the first `count` waiting jobs, `NOT_PLACED` if it gets none.

    Each job, in order, goes into a row in use with enough free columns, else into the first empty
    row: into the row with the fewest free columns if `tightest` (best fit), else into the first
    (first fit). Unless the rule `skips`, placement ends at the first job that does not fit.

    `used` are the columns used in each row, also by the jobs placed here.
    """
    for place in range(count):
        row[place] = NOT_PLACED
    for place in range(count):
        chosen, empty = NOT_PLACED, NOT_PLACED
        for one in range(len(used)):
            if used[one] == 0:
                if empty == NOT_PLACED:
                    empty = one
            elif used[one] + size[place] <= width:
                if chosen == NOT_PLACED or used[one] > used[chosen]:
                    chosen = one
                if not tightest:
                    break
        if chosen == NOT_PLACED and size[place] <= width:
            chosen = empty
        if chosen != NOT_PLACED:
            row[place] = chosen
            used[chosen] += size[place]
        elif not skips:
            break
