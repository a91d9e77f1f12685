"""The bounds of row search before any search node, compiled.

A *step* is a job from the front of the queue, or a column if jobs may be skipped. Sums of sizes are
exact: a set of them is a row of words of 64 bits, and bit s is set if some jobs have s columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.arrays import Ints, Words
from optsched.by_reference import by_reference
from optsched.compiled import kernel
from optsched.machines.matrix import NONE, ONE, WORD

ALL = ~NONE


class Matrix(NamedTuple):
    """The matrix and the rules for the jobs in it."""

    columns: int
    rows: int
    skips: bool
    moves: bool


@by_reference
class RowQueue(NamedTuple):
    """The free columns, the waiting jobs, and scratch."""

    free: Ints  # of the rows that running jobs take at least, in descending order
    size: Ints  # of each waiting job
    # scratch
    most: Ints  # free columns in 0, 1, ... of some rows at most
    largest: Ints  # sizes
    together: Ints  # columns of all jobs of each size so far
    fits: Ints  # 1 for each job of `find_needed`
    sums: Words  # of 0, 1, ... jobs larger than half a row; last but one of all jobs; last in a row


def words_of_sums(matrix: Matrix) -> int:
    """Return the number of words of a set of sums, which only jobs that may be skipped have."""
    return matrix.rows * matrix.columns // WORD + 1 if matrix.skips else 0


def empty_queue(matrix: Matrix, jobs: int) -> RowQueue:
    """Return an empty queue with room for so many jobs."""
    rows, words = matrix.rows, words_of_sums(matrix)
    lengths = rows, jobs, rows + 1, rows + 2, matrix.columns + 1, jobs  # in the order of the fields
    sums = np.zeros((min(rows, jobs) + 3, words), np.uint64)
    return RowQueue._make([*(np.zeros(length, np.int64) for length in lengths), sums])


@kernel(allocates=False)
def free_in(queue: RowQueue, matrix: Matrix, fewest: int, rows: int, row: int) -> int:
    """Return the free columns of a row, the emptiest first, if `rows` are in use."""
    empty = rows - fewest
    return matrix.columns if row < empty else int(queue.free[row - empty])


@kernel(allocates=False)
def exceed(sizes: Ints, count: int, most: Ints, rows: int) -> bool:
    """Return whether the first `count` jobs, of descending sizes, do not fit.

    For every m, the m largest jobs take at most m rows; and if there are more jobs than rows, two
    of them share a row.
    """
    together = 0
    for place in range(min(count, rows)):
        together += sizes[place]
        if together > most[place + 1]:
            return True
    return bool(count > rows and sizes[rows - 1] + sizes[rows] > most[1])


@kernel(allocates=False)
def longest_prefix(queue: RowQueue, jobs: int, rows: int) -> int:
    """Return an upper bound on the number of jobs from the front of the queue that fit."""
    largest, most = queue.largest, queue.most
    total = kept = 0
    for job in range(jobs):
        size = queue.size[job]
        total += size
        if total > most[rows]:
            return job
        place = kept
        while place > 0 and largest[place - 1] < size:
            largest[place] = largest[place - 1]
            place -= 1
        largest[place] = size
        kept = min(kept + 1, rows + 1)
        if exceed(largest, kept, most, rows):
            return job
    return jobs


@kernel(allocates=False)
def add_shifted(sums: Words, others: Words, size: int, most: int) -> None:
    """Add other sums, each plus `size`, up to `most`; they may be the same set."""
    whole, bits = size // WORD, np.uint64(size % WORD)
    last = most // WORD
    for word in range(last, whole - 1, -1):
        shifted = others[word - whole] << bits
        if bits != NONE and word > whole:
            shifted |= others[word - whole - 1] >> (np.uint64(WORD) - bits)
        sums[word] |= shifted
    sums[last] &= ALL >> np.uint64(WORD - 1 - most % WORD)


@kernel(allocates=False)
def largest_below(sums: Words, most: int) -> int:
    """Return the largest sum of at most `most`; 0 is one."""
    for total in range(most, 0, -1):
        if (sums[total // WORD] >> np.uint64(total % WORD)) & ONE:
            return total
    return 0


@kernel(allocates=False)
def find_needed(queue: RowQueue, jobs: int, rows: int) -> None:
    """Mark the jobs that fit into a row, of equal jobs no more than fit together."""
    for job in range(jobs):
        queue.together[queue.size[job]] = 0
    for job in range(jobs):
        size = queue.size[job]
        queue.fits[job] = 0
        if rows > 0 and size <= queue.most[1]:
            queue.together[size] += size
            queue.fits[job] = queue.together[size] <= queue.most[rows]


@kernel(allocates=False)
def largest_sum(queue: RowQueue, matrix: Matrix, fewest: int, jobs: int, rows: int) -> int:
    """Return an upper bound on the columns that the first jobs can take together.

    Jobs larger than half of every row need a row each.
    """
    most, sums, every, single = queue.most, queue.sums, queue.sums[-2], queue.sums[-1]
    find_needed(queue, jobs, rows)
    words = most[rows] // WORD + 1
    for word in range(words):
        every[word] = single[word] = NONE
    sums[0, 0] = every[0] = single[0] = ONE
    larger = 0
    for job in range(jobs):
        if queue.fits[job] and 2 * queue.size[job] > most[1]:
            if larger < rows:
                larger += 1
                for word in range(words):
                    sums[larger, word] = NONE
            for count in range(larger, 0, -1):
                add_shifted(sums[count], sums[count - 1], queue.size[job], most[count])
    for count in range(1, larger + 1):
        for word in range(words):
            every[word] |= sums[count, word]
    for job in range(jobs):
        if queue.fits[job]:
            if 2 * queue.size[job] <= most[1]:
                add_shifted(every, every, queue.size[job], most[rows])
            if not matrix.moves:
                add_shifted(single, single, queue.size[job], most[1])
    largest = largest_below(every, most[rows])
    if matrix.moves:
        return int(largest)
    fills = 0
    for row in range(rows):
        fills += largest_below(single, free_in(queue, matrix, fewest, rows, row))
    return int(min(largest, fills))


@kernel(allocates=False)
def step_bound(queue: RowQueue, matrix: Matrix, fewest: int, jobs: int, rows: int) -> int:
    """Return an upper bound on the steps of the first jobs in so many rows."""
    queue.most[0] = 0
    for row in range(rows):
        queue.most[row + 1] = queue.most[row] + free_in(queue, matrix, fewest, rows, row)
    if matrix.skips:
        return int(largest_sum(queue, matrix, fewest, jobs, rows))
    return int(longest_prefix(queue, jobs, rows))


@kernel(allocates=False)
def fewest_rows(queue: RowQueue, matrix: Matrix, fewest: int, jobs: int, steps: int) -> int:
    """Return a lower bound on the rows for so many steps."""
    considered = jobs if matrix.skips else steps
    rows = fewest
    while rows < matrix.rows and step_bound(queue, matrix, fewest, considered, rows) < steps:
        rows += 1
    return rows


@kernel(allocates=False)
def root_bound(
    queue: RowQueue, matrix: Matrix, fewest: int, jobs: int, steps: int
) -> tuple[int, int]:
    """Return the most steps, of which `steps` are found, and the fewest rows for these most."""
    most = jobs
    if matrix.skips:
        most = 0
        for job in range(jobs):
            most += queue.size[job]
    if steps < most:
        most = step_bound(queue, matrix, fewest, jobs, matrix.rows)
    return most, fewest_rows(queue, matrix, fewest, jobs, most)
