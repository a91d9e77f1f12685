"""Load of a run over time, as step functions, exact or downsampled; and axes of durations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optsched.arrays import Flags, Floats, Ints
from optsched.errors import InputError
from optsched.numbers import DAY, HOUR, MINUTE, UNITS
from optsched.schedule import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from optsched.simulator.run import Run

ROUND = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR),
    *(DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 56 * DAY, 112 * DAY, 364 * DAY),
)
"""Round durations in seconds, each at most about three times the previous one."""

_LOG_TICKS = (
    *((1e-7, "0.1 µs"), (1e-6, "1 µs"), (1e-5, "10 µs"), (1e-4, "0.1 ms"), (1e-3, "1 ms")),
    *((1e-2, "10 ms"), (0.1, "0.1 s"), (1.0, "1 s"), (10.0, "10 s")),
    *((MINUTE, "1 min"), (10 * MINUTE, "10 min")),
    *((HOUR, "1 h"), (6 * HOUR, "6 h"), (DAY, "1 d"), (3 * DAY, "3 d"), (7 * DAY, "7 d")),
    *((30 * DAY, "30 d"), (100 * DAY, "100 d"), (365 * DAY, "1 year"), (3650 * DAY, "10 years")),
)


def unit_for(span: float) -> tuple[float, str]:
    """Return the unit, in seconds and by name, in which to show a span of `span` seconds."""
    seconds, name = next((u for u in reversed(UNITS) if span >= 2.5 * u[0]), UNITS[0])
    return seconds, f"{name}s"


def at_least(seconds: float) -> float:
    """Return the shortest round duration that is not below `seconds`."""
    return next((duration for duration in ROUND if duration >= seconds), seconds)


def time_axis(axes: Axes, begin: float, end: float, unit: tuple[float, str]) -> None:
    """Show the time from `begin` to `end` along x, in seconds since the first submission.

    Ticks are at round durations in a unit of `unit_for`. Parts of days are decimal, so that a
    position on the axis is one number.
    """
    from matplotlib.ticker import MultipleLocator, ScalarFormatter

    seconds, name = unit
    axes.set_xlabel(f"{name} since the first submission")
    axes.set_xlim(begin / seconds, end / seconds)
    if seconds < DAY:
        axes.xaxis.set_major_locator(MultipleLocator(at_least((end - begin) / 10) / seconds))
    axes.xaxis.set_major_formatter(ScalarFormatter(useOffset=False))


def log_ticks(axis: Axis, low: float, high: float, *, zero: bool = False) -> None:
    """Put ticks from 0.1 microseconds to ten years on a logarithmic axis of seconds, and at 0.

    The scale of the axis is set. Its range is in seconds; `zero` says whether it includes 0.
    """
    from matplotlib.ticker import NullLocator

    ticks = [(place, text) for place, text in _LOG_TICKS if low <= place <= high]
    if zero:
        ticks.insert(0, (0.0, "0"))
    axis.set_ticks([place for place, _ in ticks], [text for _, text in ticks])
    axis.set_minor_locator(NullLocator())


TAIL = 0.1  # share of the time of a bin below its low value, and above its high value


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
    def from_stays(
        cls, since: ArrayLike, until: ArrayLike, amounts: ArrayLike, begin: float, end: float
    ) -> Steps:
        """Return the sum of amounts of which each counts from a time until another, shape (n,).

        It is 0 before the first. The times are in any order, from `begin` to a later `end`.
        """
        at = np.append(np.append(since, until), begin)
        order = np.argsort(at, kind="stable")  # fast for a few ascending stretches
        at = at[order]
        last = np.append(at[1:] != at[:-1], True)
        changes = np.append(np.append(amounts, np.negative(amounts)), 0)
        values = np.cumsum(changes[order], dtype=np.float64)
        kept = last & (at < end)
        return cls(at[kept], values[kept], end)

    def integral(self, until: ArrayLike) -> Floats:
        """Return the integral from the beginning to each given time, in value x seconds."""
        at = np.clip(np.asarray(until, dtype=np.float64), self.times[0], self.end)
        step = np.searchsorted(self.times, at, side="right") - 1
        integral: Floats = self._until[step] + self.values[step] * (at - self.times[step])
        return integral

    @cached_property
    def _until(self) -> Floats:
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


def thinned(x: Floats, most: int) -> Ints:
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


def span_of(begin: float, *times: NDArray[Any]) -> tuple[float, float]:
    """Return a begin, and the last of some times, at least a second later."""
    last = (float(np.max(of[np.isfinite(of)], initial=begin)) for of in times)
    return begin, max(begin + 1.0, *last)


def span(run: Run) -> tuple[float, float]:
    """Return the begin and end of a run, in the trace's own seconds.

    A run lasts from the first submission to the last submission, start or end of a job.
    """
    submit = run.trace.submit
    return span_of(float(np.min(submit)), submit, run.start, run.end)


Days = tuple[float, float]  # period of a run: its begin and end in days since the first submission


def period(run: Run, days: Days | None) -> tuple[float, float]:
    """Return the begin and end of a period of a run, in the trace's own seconds.

    The period ends with the run at the latest; None stands for the whole run.
    """
    begin, end = span(run)
    if days is None:
        return begin, end
    length = (end - begin) / DAY
    try:
        first, last = map(float, days)
    except (TypeError, ValueError):
        first = last = math.nan
    if not 0 <= first < min(last, length):  # nan included
        expected = f"expected two ascending days from 0, of a run of {length:.4g} days"
        raise InputError(f"{days!r}; {expected}", field="days")
    return begin + first * DAY, min(begin + last * DAY, end)


def spoken_days(days: Days) -> str:
    """Return a period in words, ``days 10 to 12.5`` for instance."""
    return f"days {days[0]:g} to {days[1]:g}"


def held_until(run: Run) -> Floats:
    """Return the end of each job; for jobs that never end, the end of the run."""
    return or_end(run.end, span(run)[1])


def or_end(times: Floats, end: float) -> Floats:
    """Return times, with the end of a run in place of those that never come."""
    return np.where(np.isfinite(times), times, end)


def held(
    start: NDArray[Any], finish: NDArray[Any], processors: NDArray[Any], begin: float, end: float
) -> Steps:
    """Return the processors that jobs hold as a function of time, from their starts and ends."""
    ran = np.isfinite(start)
    return Steps.from_stays(start[ran], or_end(finish[ran], end), processors[ran], begin, end)


def processors_in_use(run: Run) -> Steps:
    """Return the processors that jobs hold, as a function of time."""
    return held(run.start, run.end, run.trace.processors, *span(run))


def accepted(state: NDArray[Any]) -> Flags:
    """Return a mask of the jobs that joined the queue: all but the rejected ones."""
    return ~np.isin(state, (State.REJECTED, State.UNSUBMITTED))


def waiting(
    submit: NDArray[Any], start: NDArray[Any], amounts: ArrayLike, begin: float, end: float
) -> Steps:
    """Return the sum of the amounts of jobs that are submitted and have not started."""
    counted = np.broadcast_to(amounts, len(submit))
    return Steps.from_stays(submit, or_end(start, end), counted, begin, end)


def waiting_jobs(run: Run) -> Steps:
    """Return the number of submitted jobs that have not started; rejected ones do not wait."""
    queued = accepted(run.state)
    return waiting(run.trace.submit[queued], run.start[queued], 1, *span(run))


def waiting_work(run: Run) -> Steps:
    """Return the work of the waiting jobs, processors x run time, in processor-seconds."""
    queued = accepted(run.state)
    work = (run.trace.processors * run.trace.runtime)[queued]
    return waiting(run.trace.submit[queued], run.start[queued], work, *span(run))


def subject(run: Run) -> str:
    """Return a title of pictures of the run: trace, jobs, policy, machine."""
    return named(run.trace.name, run.config)


def named(trace: str, config: Mapping[str, Any]) -> str:
    """Return a title of the run of a config, with the name of its trace."""
    jobs = config.get("jobs")
    part = f", jobs {jobs[0]:,} to {jobs[1]:,}" if jobs else ""
    solver = config.get("solver")
    by = f" with {solver}" if solver else ""
    return f"{trace}{part}: {config['policy']}{by} on {config['machine']}"
