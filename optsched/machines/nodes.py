"""Line of identical nodes, ``nodes:N``, and its free nodes as maximal runs, the slots."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from optsched.column_sets import runs_text
from optsched.errors import InputError
from optsched.machines.machine import SizedMachine
from optsched.numbers import MOST_PROCESSORS
from optsched.registry import machines

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


@machines.register("nodes")
class Nodes(SizedMachine):
    """Identical nodes in a line, numbered from 0; a job may hold any of them.

    The line is the processor ordering: consecutive nodes are contiguous, and the maximal free runs
    are the slots. By default a job gets the first free nodes.

    >>> machine = Nodes(20)
    >>> held = machine.allocate(3), machine.allocate(2)
    >>> machine.release(held[0])
    >>> machine.slots.starts, machine.slots.stops
    ([0, 5], [3, 20])
    >>> machine.resources(machine.allocate(4))
    '0-2 5'
    """

    usage = "nodes:NUMBER"
    unit = "nodes"

    def __init__(self, size: int) -> None:
        if type(size) is not int or not 1 <= size <= MOST_PROCESSORS:
            expected = f"expected a whole number from 1 to {MOST_PROCESSORS:,}"
            raise InputError(f"machine of {size!r} nodes; {expected}")
        super().__init__(size)
        self.free = size
        self.slots = FreeRuns(size)

    def allocate(self, processors: int) -> tuple[Run, ...]:
        """Allocate the first free nodes; return their runs."""
        runs = self.slots.take_first(processors)
        self.free -= processors
        return runs

    def claim(self, place: tuple[Run, ...], processors: int) -> tuple[Run, ...]:
        """Allocate the runs of nodes that a policy chose; return the runs merged, in order."""
        size = sum(stop - start for start, stop in place)
        if size != processors:
            raise ValueError(f"a place of {size} nodes for a job of {processors}")
        for start, stop in place:
            self.slots.take(start, stop)
            self.free -= stop - start
        return place if len(place) == 1 else merged(place)

    def release(self, allocation: tuple[Run, ...]) -> None:
        """Free the runs of a job."""
        give = self.slots.give
        for start, stop in allocation:
            give(start, stop)
            self.free += stop - start

    def is_contiguous(self, allocation: tuple[Run, ...]) -> bool:
        """Return whether the nodes are one run."""
        return len(allocation) == 1

    def resources(self, allocation: tuple[Run, ...]) -> str:
        """Return the nodes of an allocation as an interval set."""
        return runs_text(sorted(allocation) if len(allocation) > 1 else allocation)

    def violations(self, held: Mapping[int, tuple[Run, ...]]) -> list[str]:
        """Compare the free runs with those that the running jobs hold."""
        free = list(self.slots)
        claims = [(run, f"job {job}") for job, runs in held.items() for run in runs]
        claims += [(run, "nobody") for run in free]
        found = []
        covered, holder = 0, ""
        for (start, stop), other in sorted([*claims, ((self.size, self.size), "")]):
            if start > covered:
                found.append(f"nodes {covered}-{start - 1} are lost")
            elif start < min(covered, stop):
                last = min(covered, stop) - 1
                found.append(f"nodes {start}-{last} are held by {holder} and by {other}")
            if stop > covered:
                covered, holder = stop, other
        if covered > self.size:
            found.append(f"nodes from {self.size} are held by {holder}; there are none")
        if (total := sum(stop - start for start, stop in free)) != self.free:
            found.append(f"{self.free} nodes counted free, {total} are")
        found += [f"free runs touch at node {a}" for (_, a), (b, _) in pairwise(free) if a >= b]
        return found


def merged(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return disjoint runs with adjacent ones merged."""
    found: list[Run] = []
    for start, stop in sorted(runs):
        if found and found[-1][1] == start:
            start, _ = found.pop()
        found.append((start, stop))
    return tuple(found)
