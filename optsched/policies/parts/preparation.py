"""Large jobs that a scan window detects, and the one for which the system is prepared."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.metrics.measure import Group, Measure
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.boxes.box import Box

MEASURES = {
    "large_detected": Measure(
        "large jobs detected in the window", "jobs", Group.LARGE,
        "Large jobs that were in the scan window before their turn.",
    ),
    "large_mean_buffer": Measure(
        "mean buffer period of large jobs", "seconds", Group.LARGE,
        "Mean time from the detection of a large job to its start.",
    ),
    "large_mean_ahead": Measure(
        "jobs before a detected large job", "jobs", Group.LARGE,
        "Mean number of jobs before a large job in the window when it was detected.",
    ),
    "prepared": Measure(
        "large jobs prepared", "jobs", Group.LARGE, "Large jobs for which a box was prepared."
    ),
    "prepared_starts": Measure(
        "starts in the prepared box", "jobs", Group.LARGE,
        "Large jobs that started in the box prepared for them.",
    ),
    "prepared_mean_buffer": Measure(
        "mean time from preparation to start", "seconds", Group.LARGE,
        "Mean time from the preparation of the box to the start of the large job.",
    ),
}  # fmt: skip
"""The measures of `Scan.figures`."""


class Prepared(NamedTuple):
    """A waiting large job with a box of its own.

    Parameters
    ----------
    job : int
        Row of the job in the trace.
    at : float
        Reserved time in seconds: no other job is placed in the box that may run for longer.
    box : Box
        The reserved box.
    """

    job: int
    at: float
    box: Box


class Forecast(NamedTuple):
    """The running jobs at the time at which a large job is expected to start.

    Parameters
    ----------
    at : float
        The time in seconds.
    free : int
        Routers that are free for the large job at that time.
    ending, staying : list of int
        Running jobs whose routers are free by that time, and the future running jobs.
    """

    at: float
    free: int
    ending: list[int]
    staying: list[int]


def forecast(
    system: System, routers: int, free: int, turn: float, kept: Collection[int]
) -> Forecast | None:
    """Return the forecast for a large job.

    Jobs are scheduled at a fixed rate, so the large job expects to start at its `turn`. If too few
    routers are free by then, it starts at the first estimated end at which enough are.

    Parameters
    ----------
    system : System
        The state of the simulation.
    routers : int
        Routers of the large job.
    free : int
        Routers that are free for it now.
    turn : float
        Time in seconds at which all jobs before the large one are scheduled at a fixed rate.
    kept : collection of int
        Running jobs whose routers are reserved for another job; they count as staying.

    Returns
    -------
    Forecast or None
        None if too few routers are free even when all other jobs have ended.
    """
    ending, staying = [], list(kept)
    for end, job in system.running.by_estimated_end:
        if job in kept:
            continue
        if end <= turn or free < routers:
            turn = max(turn, end)
            free += system.held[job].volume
            ending.append(job)
        else:
            staying.append(job)
    return None if free < routers else Forecast(turn, free, sorted(ending), sorted(staying))


class Scan:
    """Record of the large jobs that entered the scan window.

    Parameters
    ----------
    large : int
        Most processors of a job that is not large.

    Attributes
    ----------
    prepared : Prepared or None
        The job for which the system is prepared: one at a time.
    """

    def __init__(self, large: int) -> None:
        self.large = large
        self.prepared: Prepared | None = None
        self._last = -1
        self._detected: dict[int, tuple[float, int]] = {}
        self._waiting: list[int] = []
        self._failed: dict[int, int] = {}
        self._since: dict[int, float] = {}
        self._in_box = 0

    def look(self, window: Sequence[int], system: System) -> None:
        """Detect the large jobs that entered the window since the last call.

        A job enters at the tail; jobs leave the window only by their start.
        """
        for place in range(bisect_right(window, self._last), len(window)):
            job = window[place]
            if system.processors[job] > self.large:
                self._detected[job] = system.now, place
                self._waiting.append(job)
        self._last = max(self._last, window[-1])
        if self.prepared is not None and system.start[self.prepared.job] is not None:
            self.prepared = None

    def candidates(self, window: Sequence[int], system: System) -> list[int]:
        """Return the places of the jobs to prepare, in order; none beside a prepared one.

        They are the detected jobs that wait and were not prepared before.
        """
        if self.prepared is not None:
            return []
        waiting = [job for job in self._waiting if system.start[job] is None]
        self._waiting = waiting
        return [bisect_left(window, job) for job in waiting]

    def may_try(self, job: int, free: int) -> bool:
        """Return whether more routers are free, as expected, than when there was no plan."""
        return free > self._failed.get(job, -1)

    def fail(self, job: int, free: int) -> None:
        """Note that there was no plan for a job with that many free routers."""
        self._failed[job] = free

    def prepare(self, prepared: Prepared, now: float) -> None:
        """Note that the system is prepared for a job."""
        self.prepared = prepared
        self._since[prepared.job] = now
        self._waiting.remove(prepared.job)

    def give_up(self) -> None:
        """Release the box of the prepared job, which is not prepared again."""
        self.prepared = None

    def start(self) -> None:
        """Note that the prepared job starts in its box."""
        self.prepared = None
        self._in_box += 1

    def figures(self, system: System) -> dict[str, Any]:
        """Return the figures of the buffer periods, for the summary.

        ``large_mean_buffer`` is the mean number of seconds from the detection of a large job to its
        start, and ``large_mean_ahead`` the mean number of jobs before it in the window when it was
        detected. ``prepared_mean_buffer`` is the same from the preparation, over the ``prepared``
        jobs, of which ``prepared_starts`` started in the box prepared for them.
        """
        buffers = _periods(system, {job: since for job, (since, _) in self._detected.items()})
        return {
            "large_detected": len(self._detected),
            "large_mean_buffer": _mean(buffers),
            "large_mean_ahead": _mean([ahead for _, ahead in self._detected.values()]),
            "prepared": len(self._since),
            "prepared_starts": self._in_box,
            "prepared_mean_buffer": _mean(_periods(system, self._since)),
        }


def _periods(system: System, since: dict[int, float]) -> list[float]:
    """Return the seconds from given times to the starts of the jobs that started."""
    starts = [(system.start[job], at) for job, at in since.items()]
    return [start - at for start, at in starts if start is not None]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
