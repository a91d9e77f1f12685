"""Enumeration of sets of waiting jobs to place together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate


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
