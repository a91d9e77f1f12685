"""Bounds of gang packing: free columns in matrix rows, and sets of waiting jobs that fit there."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from optsched.column_sets import loads
from optsched.models.gang_packing import GangPacking


class FreeColumns:
    """Upper bounds on the free columns in any m of k rows.

    If running jobs keep their rows, the m emptiest rows give the bound. If running jobs may move, a
    column that l of them hold is taken in at least l - (k - m) of any m of k rows.
    """

    def __init__(self, problem: GangPacking) -> None:
        self._columns, self._moves = problem.columns, problem.rerow
        # Mask of the columns that every placement of running jobs takes in each of k
        # rows, for each k; 0 if running jobs keep their rows
        self.crowded_columns = [0] * (problem.rows + 1)
        taken = [mask for mask in problem.held if mask]
        if problem.rerow:
            taken = loads(problem.held)
            self.crowded_columns[1 : len(taken) + 1] = taken
        self.fewest_rows = len(taken)  # lower bound on the rows that running jobs take
        self._free = sorted((problem.columns - mask.bit_count() for mask in taken), reverse=True)

    def most(self, rows: int) -> list[int]:
        """Return the most free columns in 0, 1, ... of `rows` rows, at least `fewest_rows`."""
        return list(accumulate(self._emptiest_first(rows), initial=0))

    def per_row(self, rows: int) -> list[int] | None:
        """Return the free columns of each row, or None if running jobs may move."""
        return None if self._moves else self._emptiest_first(rows)

    def _emptiest_first(self, rows: int) -> list[int]:
        return [self._columns] * (rows - self.fewest_rows) + self._free


def longest_prefix(sizes: Sequence[int], most_free: Sequence[int]) -> int:
    """Return an upper bound on the number of jobs from the front of the queue that fit.

    For every m, the m largest jobs take at most m rows; and if there are more jobs than rows, two
    of them share a row. Sizes are in columns; `most_free` is the result of `FreeColumns.most`.
    """
    rows, total = len(most_free) - 1, 0
    largest: list[int] = []  # negative sizes, ascending
    for count, size in enumerate(sizes):
        total += size
        if total > most_free[-1]:
            return count
        insort(largest, -size)
        del largest[rows + 1 :]
        together = 0
        for size_of_next, most in zip(largest, most_free[1:]):
            together -= size_of_next
            if together > most:
                return count
        if len(largest) > rows and -largest[rows - 1] - largest[rows] > most_free[1]:
            return count
    return len(sizes)


def largest_sum(sizes: Sequence[int], most_free: Sequence[int], each: Sequence[int] | None) -> int:
    """Return an upper bound on the columns that waiting jobs can take together.

    Jobs larger than half of every row need a row each. Subset sums are exact: bit s of an integer
    is set if some jobs have s columns together. Sizes are in columns; `most_free` and `each` are
    the results of `FreeColumns.most` and `FreeColumns.per_row`.
    """
    fitting = [sizes[job] for job in needed(sizes, most_free)]
    within = [(1 << (most + 1)) - 1 for most in most_free]
    sums = [1] + [0] * (len(most_free) - 1)
    everything = 1
    for size in fitting:
        if 2 * size > most_free[1]:
            for count in range(len(most_free) - 1, 0, -1):
                sums[count] |= sums[count - 1] << size & within[count]
    for some in sums[1:]:
        everything |= some
    single = 1
    for size in fitting:
        if 2 * size <= most_free[1]:
            everything |= everything << size & within[-1]
        if each is not None:
            single |= single << size & within[1]
    most = everything.bit_length() - 1
    if each is None:
        return most
    fills = sum((single & ((1 << (free + 1)) - 1)).bit_length() - 1 for free in each)
    return min(most, fills)


def needed(sizes: Sequence[int], most_free: Sequence[int]) -> list[int]:
    """Return the jobs that fit into a row, of equal jobs no more than fit together."""
    together: dict[int, int] = {}
    jobs = []
    for job, size in enumerate(sizes):
        if len(most_free) > 1 and size <= most_free[1]:
            together[size] = together.get(size, 0) + size
            if together[size] <= most_free[-1]:
                jobs.append(job)
    return jobs


class JobSets:
    """Minimal sets of jobs with at least a given total size.

    If a set of jobs does not fit, a set with a job at least as large for each of them does not fit
    either (dominance). So small sets are enumerated first, and failed ones exclude others. Sizes
    are nonincreasing; `most_free` is the result of `FreeColumns.most`.
    """

    def __init__(self, sizes: Sequence[int], most_free: Sequence[int]) -> None:
        self._sizes = sizes
        self._most_free = most_free
        within = (2 << most_free[-1]) - 1
        self._sums = [1]
        for size in reversed(sizes):
            self._sums.append(self._sums[-1] | self._sums[-1] << size & within)
        self._sums.reverse()
        self._next_smaller = [len(sizes)] * len(sizes)
        for job in range(len(sizes) - 2, -1, -1):
            equal = sizes[job] == sizes[job + 1]
            self._next_smaller[job] = self._next_smaller[job + 1] if equal else job + 1
        self._failed: list[list[int]] = []

    def fail(self, chosen: Sequence[int]) -> None:
        """Record that jobs, given by number, do not fit together."""
        self._failed.append([self._sizes[job] for job in chosen])

    def with_total(self, total: int, step: Callable[[], None]) -> Iterator[list[int]]:
        """Yield sets of job numbers with a total size of at least `total`; `step` counts work."""
        open_sets: list[tuple[int, list[int], list[int], int]] = [(0, [], [], total)]
        while open_sets:
            step()
            job, chosen, sizes, wanted = open_sets.pop()
            if self._is_infeasible(sizes):
                continue
            if wanted <= 0:
                yield chosen
                continue
            most = self._most_free[-1] - (total - wanted)
            if most < wanted or not self._sums[job] >> wanted & ((2 << (most - wanted)) - 1):
                continue
            size = self._sizes[job]
            open_sets.append((job + 1, [*chosen, job], [*sizes, size], wanted - size))
            open_sets.append((self._next_smaller[job], chosen, sizes, wanted))

    def _is_infeasible(self, sizes: Sequence[int]) -> bool:
        """Return whether jobs of nonincreasing sizes are known not to fit together."""
        rows = len(self._most_free) - 1
        for together, most in zip(accumulate(sizes), self._most_free[1:]):
            if together > most:
                return True
        if len(sizes) > rows and sizes[rows - 1] + sizes[rows] > self._most_free[1]:
            return True
        for failed in self._failed:
            if len(failed) <= len(sizes) and all(map(int.__le__, failed, sizes)):
                return True
        return False
