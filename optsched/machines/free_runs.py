"""Free positions of a line of processors as maximal runs, the slots."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

Run = tuple[int, int]
"""Run of the positions ``start`` to ``stop - 1``, as in a Python range."""


class FreeRuns:
    """Maximal runs of free positions, in order; at first all of `size` positions are free.

    A run is found by bisection, so taking and giving back need ``O(log r)`` comparisons for ``r``
    runs. Run ``i`` covers the positions ``starts[i]`` to ``stops[i] - 1``; callers only read these.
    """

    __slots__ = ("starts", "stops")

    def __init__(self, size: int) -> None:
        self.starts = [0]
        self.stops = [size]

    def __iter__(self) -> Iterator[Run]:
        return zip(self.starts, self.stops)

    def copy(self) -> FreeRuns:
        """Return a copy."""
        twin = FreeRuns(0)
        twin.starts, twin.stops = self.starts.copy(), self.stops.copy()
        return twin

    def around(self, position: int) -> Run:
        """Return the run of a free position."""
        run = bisect_right(self.starts, position) - 1
        return self.starts[run], self.stops[run]

    def take_first(self, size: int) -> tuple[Run, ...]:
        """Take the first `size` free positions, from any runs."""
        taken = []
        emptied = 0
        for start, stop in self:
            if stop - start > size:
                taken.append((start, start + size))
                self.starts[emptied] = start + size
                break
            taken.append((start, stop))
            emptied += 1
            size -= stop - start
            if size == 0:
                break
        else:
            raise ValueError(f"{size} positions more than are free")
        del self.starts[:emptied], self.stops[:emptied]
        return tuple(taken)

    def take(self, start: int, stop: int) -> None:
        """Take the positions `start` to `stop` - 1, which must lie in one run."""
        starts, stops = self.starts, self.stops
        run = bisect_right(starts, start) - 1
        if run < 0 or stops[run] < stop or start >= stop:
            raise ValueError(f"positions {start} to {stop - 1} are not all free")
        run_start, run_stop = starts[run], stops[run]
        if run_start == start:
            if run_stop == stop:
                del starts[run], stops[run]
            else:
                starts[run] = stop
            return
        stops[run] = start
        if stop < run_stop:
            starts.insert(run + 1, stop)
            stops.insert(run + 1, run_stop)

    def give(self, start: int, stop: int) -> None:
        """Give back the positions `start` to `stop` - 1, merged with adjacent runs."""
        starts, stops = self.starts, self.stops
        after = bisect_left(starts, start)
        touches_next = False
        if after < len(starts):
            if starts[after] < stop:
                raise ValueError(f"position {starts[after]} is free already")
            touches_next = starts[after] == stop
        if after and stops[after - 1] >= start:
            if stops[after - 1] > start:
                raise ValueError(f"position {start} is free already")
            if touches_next:
                stops[after - 1] = stops[after]
                del starts[after], stops[after]
            else:
                stops[after - 1] = stop
        elif touches_next:
            starts[after] = start
        else:
            starts.insert(after, start)
            stops.insert(after, stop)
