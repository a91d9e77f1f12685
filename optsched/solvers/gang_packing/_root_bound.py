"""The bound of row search before any search node, compiled.

The readable statement is `optsched.solvers.gang_packing.row_search.Subproblems.bound` with the
functions beside it. A set of sums is a row of words of 64 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.by_reference import by_reference
from optsched.compiled import kernel

Numbers = NDArray[np.int64]
Sums = NDArray[np.uint64]

WORD = 64
NONE, ONE = np.uint64(0), np.uint64(1)
ALL = ~NONE


class Matrix(NamedTuple):
    """The matrix and the rules for the jobs in it."""

    columns: int
    rows: int
    skips: bool
    moves: bool


@by_reference
class Queue(NamedTuple):
    """The free columns, the waiting jobs, and scratch."""

    free: Numbers  # of the rows that running jobs take at least, in descending order
    size: Numbers  # of each waiting job
    # scratch
    most: Numbers  # free columns in 0, 1, ... of some rows at most
    largest: Numbers  # sizes
    together: Numbers  # columns of all jobs of each size so far
    fits: Numbers  # 1 for each job of `needed`
    sums: Sums  # of so many jobs larger than half a row, shape (rows + 1, words)
    every: Sums
    single: Sums  # sums that one row might hold


def words_of_sums(matrix: Matrix) -> int:
    """Return the number of words of a set of sums."""
    return matrix.rows * matrix.columns // WORD + 1


def empty_queue(matrix: Matrix, jobs: int) -> Queue:
    """Return an empty queue with room for so many jobs."""

    def numbers(length: int) -> Numbers:
        return np.zeros(length, dtype=np.int64)

    words = words_of_sums(matrix)
    return Queue(
        free=numbers(matrix.rows),
        size=numbers(jobs),
        most=numbers(matrix.rows + 1),
        largest=numbers(matrix.rows + 2),
        together=numbers(matrix.columns + 1),
        fits=numbers(jobs),
        sums=np.zeros((matrix.rows + 1, words), dtype=np.uint64),
        every=np.zeros(words, dtype=np.uint64),
        single=np.zeros(words, dtype=np.uint64),
    )


@kernel(allocates=False)
def free_in(queue: Queue, matrix: Matrix, fewest: int, rows: int, row: int) -> int:
    """Return the free columns of a row, the emptiest first, if `rows` are in use."""
    empty = rows - fewest
    return matrix.columns if row < empty else int(queue.free[row - empty])


@kernel(allocates=False)
def longest_prefix(queue: Queue, jobs: int, rows: int) -> int:
    """Return the result of `row_search.longest_prefix` for the first jobs."""
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
        together = 0
        for place in range(min(kept, rows)):
            together += largest[place]
            if together > most[place + 1]:
                return job
        if kept > rows and largest[rows - 1] + largest[rows] > most[1]:
            return job
    return jobs


@kernel(allocates=False)
def add_shifted(sums: Sums, others: Sums, size: int, most: int) -> None:
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
def largest_below(sums: Sums, most: int) -> int:
    """Return the largest sum of at most `most`; 0 is one."""
    for total in range(most, 0, -1):
        if (sums[total // WORD] >> np.uint64(total % WORD)) & ONE:
            return total
    return 0


@kernel(allocates=False)
def find_needed(queue: Queue, jobs: int, rows: int) -> None:
    """Mark the jobs of `row_search.needed`."""
    for job in range(jobs):
        queue.together[queue.size[job]] = 0
    for job in range(jobs):
        size = queue.size[job]
        queue.fits[job] = 0
        if rows > 0 and size <= queue.most[1]:
            queue.together[size] += size
            queue.fits[job] = queue.together[size] <= queue.most[rows]


@kernel(allocates=False)
def largest_sum(queue: Queue, matrix: Matrix, fewest: int, jobs: int, rows: int) -> int:
    """Return the result of `row_search.largest_sum` for the first jobs."""
    most, sums, every, single = queue.most, queue.sums, queue.every, queue.single
    find_needed(queue, jobs, rows)
    for word in range(most[rows] // WORD + 1):
        for count in range(rows + 1):
            sums[count, word] = NONE
        every[word] = single[word] = NONE
    sums[0, 0] = every[0] = single[0] = ONE
    for job in range(jobs):
        if queue.fits[job] and 2 * queue.size[job] > most[1]:
            for count in range(rows, 0, -1):
                add_shifted(sums[count], sums[count - 1], queue.size[job], most[count])
    for count in range(1, rows + 1):
        for word in range(most[rows] // WORD + 1):
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
def step_bound(queue: Queue, matrix: Matrix, fewest: int, jobs: int, rows: int) -> int:
    """Return an upper bound on the steps of the first jobs in so many rows."""
    queue.most[0] = 0
    for row in range(rows):
        queue.most[row + 1] = queue.most[row] + free_in(queue, matrix, fewest, rows, row)
    if matrix.skips:
        return int(largest_sum(queue, matrix, fewest, jobs, rows))
    return int(longest_prefix(queue, jobs, rows))


@kernel(allocates=False)
def root_bound(queue: Queue, matrix: Matrix, fewest: int, jobs: int, steps: int) -> tuple[int, int]:
    """Return bounds of the columns of placed jobs, and of the rows in use, at least `fewest`."""
    total = 0
    for job in range(jobs):
        total += queue.size[job]
    highest = total if matrix.skips else jobs
    if steps < highest:
        highest = step_bound(queue, matrix, fewest, jobs, matrix.rows)
    considered, placed = jobs, highest
    if not matrix.skips:
        considered, placed = highest, 0
        for job in range(highest):
            placed += queue.size[job]
    rows = fewest
    while rows < matrix.rows and step_bound(queue, matrix, fewest, considered, rows) < highest:
        rows += 1
    return placed, rows
