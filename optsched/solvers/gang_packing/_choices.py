"""Which waiting jobs to try to place together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate


class Choices:
    """Sets of jobs that are large enough together, each no larger than it must be.

    If a set of jobs has no place, no set has that holds a job at least as large for each of them.
    So small sets go first, and what failed rules out others.

    Parameters
    ----------
    sizes : sequence of int
        Of the jobs, falling.
    room : sequence of int, length rows + 1
        The most that jobs in any 0, 1, ... rows can measure.
    """

    def __init__(self, sizes: Sequence[int], room: Sequence[int]) -> None:
        self._sizes = sizes
        self._room = room
        self._rest = [*reversed(list(accumulate(reversed(sizes), initial=0)))]
        within = (2 << room[-1]) - 1
        self._sums = [1]
        for size in reversed(sizes):
            self._sums.append(self._sums[-1] | self._sums[-1] << size & within)
        self._sums.reverse()
        self._failed: list[list[int]] = []

    def fail(self, chosen: Sequence[int]) -> None:
        """Note that jobs, by number, have no place together."""
        self._failed.append([self._sizes[job] for job in chosen])

    def of(self, total: int, step: Callable[[], None]) -> Iterator[list[int]]:
        """Yield jobs, by number, that measure at least `total` together; `step` counts the work."""
        open_sets: list[tuple[int, list[int], int]] = [(0, [], total)]
        while open_sets:
            step()
            job, chosen, wanted = open_sets.pop()
            if self._is_hopeless([self._sizes[one] for one in chosen]):
                continue
            if wanted <= 0:
                yield chosen
                continue
            most = self._room[-1] - (total - wanted)
            if most < wanted or not self._sums[job] >> wanted & ((2 << (most - wanted)) - 1):
                continue
            open_sets.append((job + 1, [*chosen, job], wanted - self._sizes[job]))
            other = job
            while other < len(self._sizes) and self._sizes[other] == self._sizes[job]:
                other += 1
            open_sets.append((other, chosen, wanted))

    def _is_hopeless(self, sizes: Sequence[int]) -> bool:
        """Return whether jobs of falling sizes are known to have no place together."""
        rows = len(self._room) - 1
        for together, most in zip(accumulate(sizes), self._room[1:]):
            if together > most:
                return True
        if len(sizes) > rows and sizes[rows - 1] + sizes[rows] > self._room[1]:
            return True
        return any(
            len(failed) <= len(sizes) and all(map(int.__le__, failed, sizes))
            for failed in self._failed
        )
