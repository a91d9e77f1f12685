"""Step functions of time, exact or downsampled to means and quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.report.durations import at_least

Floats = NDArray[np.float64]


TAIL = 0.1
"""Share of the time of a bin below its low value, and above its high value."""


class Binned(NamedTuple):
    """Step function by bins: time-weighted mean, 10 % and 90 % quantile of each bin.

    `width` is the width of a bin in seconds; 0 if each bin is a step, without averaging.
    """

    edges: Floats
    mean: Floats
    low: Floats
    high: Floats
    width: float


@dataclass(frozen=True, eq=False)
class Steps:
    """Function of time that is constant between changes."""

    times: Floats
    # Value ``i`` holds from time ``i`` up to the next one, the last up to `end`, shape (n,)
    values: Floats
    end: float  # end of the function; after the last of `times`

    @classmethod
    def from_changes(cls, times: ArrayLike, changes: ArrayLike, begin: float, end: float) -> Steps:
        """Return the running sum of `changes`, 0 before the first.

        The times of the changes, shape (n,), are in any order, from `begin` to a later `end`.
        """
        at = np.append(times, begin)
        order = np.argsort(at, kind="stable")  # fast for a few ascending stretches
        at = at[order]
        last = np.append(at[1:] != at[:-1], True)
        values = np.cumsum(np.append(changes, 0)[order], dtype=np.float64)
        kept = last & (at < end)
        return cls(at[kept], values[kept], end)

    @classmethod
    def from_stays(
        cls, since: ArrayLike, until: ArrayLike, amounts: ArrayLike, begin: float, end: float
    ) -> Steps:
        """Return the sum of amounts of which each counts from a time until another, shape (n,)."""
        changes = np.asarray(amounts)
        return cls.from_changes(np.append(since, until), np.append(changes, -changes), begin, end)

    def integral(self, until: ArrayLike) -> Floats:
        """Return the integral from the beginning to each given time, in value x seconds."""
        at = np.clip(np.asarray(until, dtype=np.float64), self.times[0], self.end)
        step = np.searchsorted(self.times, at, side="right") - 1
        integral: Floats = self._until[step] + self.values[step] * (at - self.times[step])
        return integral

    @cached_property
    def _until(self) -> Floats:
        """The integral until each change."""
        return np.append(0.0, np.cumsum(self.values[:-1] * np.diff(self.times)))

    def between(self, begin: float, end: float) -> Steps:
        """Return the function from `begin`, which may not precede it, to `end`."""
        first = np.searchsorted(self.times, begin, side="right") - 1
        rows = slice(first, np.searchsorted(self.times, end))
        times = np.maximum(self.times[rows], begin)
        return Steps(times, self.values[rows], end)

    def binned(self, most: int) -> Binned:
        """Return the function in at most `most` bins of a round width, or exactly if it is short.

        The last bin is cut off at the end of the function.
        """
        begin = float(self.times[0])
        if len(self.times) <= most:
            edges = np.append(self.times, self.end)
            return Binned(edges, self.values, self.values, self.values, 0.0)
        width = at_least((self.end - begin) / most)
        edges = np.append(np.arange(begin, self.end, width), self.end)
        mean = np.diff(self.integral(edges)) / np.diff(edges)
        low, high = self._quantiles(edges, (TAIL, 1 - TAIL))
        return Binned(edges, mean, low, high, width)

    def _quantiles(self, edges: Floats, shares: Sequence[float]) -> Floats:
        """Return the time-weighted quantiles of each bin, shape (shares, bins)."""
        found = np.empty((len(shares), len(edges) - 1))
        first = np.searchsorted(self.times, edges[:-1], side="right") - 1
        stop = np.searchsorted(self.times, edges[1:])
        for place, steps in enumerate(map(slice, first, stop)):
            begins = np.maximum(self.times[steps], edges[place])
            spans = np.diff(np.append(begins, edges[place + 1]))
            order = np.argsort(self.values[steps])
            spent = np.cumsum(spans[order])
            reached = np.searchsorted(spent, np.multiply(shares, spent[-1]))
            found[:, place] = self.values[steps][order][reached]
        return found


def thinned(x: Floats, most: int) -> NDArray[np.int64]:
    """Return the indices of at most `most` points, at least 2, to show a curve on a log axis.

    The positions `x`, shape (n,), increase and are above 0. The last point in each cell of the axis
    is kept, and so are the first and the last of all.
    """
    if len(x) <= most:
        return np.arange(len(x))
    grid = np.geomspace(x[0], x[-1], most)
    last_in_cell = np.searchsorted(x, grid[1:-1], side="right") - 1
    return np.unique(np.concatenate(([0], last_in_cell, [len(x) - 1])))


def extended(x: Floats, y: Floats, origin: tuple[float, float], right: float) -> list[Floats]:
    """Return a step curve that begins at `origin` and goes on with its last value to `right`."""
    begin, first = origin
    last = y[-1] if len(y) else first
    return [np.concatenate(([begin], x, [right])), np.concatenate(([first], y, [last]))]
