"""Large jobs that a scan window detects, and those for which the system is prepared."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.metrics.measure import Group, Measure
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.boxes.box import Box

MEASURES = {
    name: Measure(label, unit, Group.LARGE, text, *by)
    for name, label, unit, text, *by in (
        ("large_detected", "large jobs detected in the window", "jobs",
         "Large jobs that were in the scan window before their turn."),
        ("large_mean_buffer", "mean buffer period of large jobs", "seconds",
         "Mean time from the detection of a large job to its start."),
        ("large_mean_ahead", "jobs before a detected large job", "jobs",
         "Mean number of jobs before a large job in the window when it was detected."),
        ("prepared", "large jobs prepared", "jobs", "Large jobs for which a box was prepared."),
        ("prepared_starts", "starts in the prepared box", "jobs",
         "Large jobs that started in the box prepared for them."),
        ("prepared_mean_buffer", "mean time from preparation to start", "seconds",
         "Mean time from the preparation of the box to the start of the large job."),
        ("not_prepared", "detected, but not prepared", "jobs",
         "Large jobs detected in the window for which no box was prepared, by the reason.",
         "reason"),
        ("given_up", "prepared boxes given up", "jobs",
         "Large jobs that did not start in the box prepared for them, by the reason.", "reason"),
        ("prepared_beside", "other jobs prepared", "jobs",
         "Other jobs of the window that got a box in the plan for a large one."),
        ("migrations_at_start", "migrations as a large job starts", "migrations",
         "Migrations for a large job that starts at once."),
        ("migrations_ahead", "migrations ahead of a start", "migrations",
         "Migrations that prepare a box for a large job."),
    )
}  # fmt: skip


class Reason(StrEnum):
    """Why a detected large job has no box of its own, or does not start in it."""

    AT_ONCE = "started when detected"
    OTHERS = "others were prepared"
    NO_PLAN = "no plan"
    NO_ATTEMPT = "no attempt"
    ELSEWHERE = "started elsewhere"
    HEAD = "taken by the queue head"
    RESERVED = "reserved for the queue head"


class Prepared(NamedTuple):
    """A waiting job with a box of its own."""

    job: int
    at: float  # no other job is placed in the box that may run for longer
    box: Box


class Forecast(NamedTuple):
    """The running jobs at the time at which a large job is expected to start."""

    at: float
    free: int  # routers, for the large job
    ending: list[int]  # running jobs whose routers are free by that time
    staying: list[int]


def forecast(
    system: System, routers: int, free: int, turn: float, kept: Collection[int]
) -> Forecast | None:
    """Return the forecast for a large job; None if too few routers can ever be free.

    Jobs are scheduled at a fixed rate, so the large job expects to start at its `turn`, in seconds.
    If too few routers are free by then, it starts at the first estimated end at which enough are.
    The running jobs whose routers are `kept` for another job count as staying.
    """
    running = [one for one in system.running.by_estimated_end if one[1] not in kept]
    ending = []
    for end, job in running:
        if end > turn and free >= routers:
            break
        turn = max(turn, end)
        free += system.held[job].volume
        ending.append(job)
    staying = [*kept, *[job for _, job in running[len(ending) :]]]
    return None if free < routers else Forecast(turn, free, sorted(ending), sorted(staying))


class Scan:
    """Record of the large jobs that entered the scan window, and of prepared jobs."""

    def __init__(self, large: int, most: int | None) -> None:
        self.large = large  # most processors of a job that is not large
        self.most = most  # large jobs that are prepared at a time; None without a limit
        self.prepared: dict[int, Prepared] = {}
        self._last = -1
        self._detected: dict[int, tuple[float, int]] = {}
        self._waiting: list[int] = []
        self._why_not: dict[int, Reason] = {}
        self._failed: dict[int, int] = {}
        self._since: dict[int, float] = {}
        self._own: set[int] = set()  # large jobs with the box that was prepared for them
        self._given_up: Counter[Reason] = Counter()
        self._in_box = self._beside = 0
        self._is_ahead: dict[tuple[float, int], bool] = {}

    def look(self, window: Sequence[int], system: System) -> None:
        """Detect the large jobs that entered the window, at its tail, since the last call."""
        for place in range(bisect_right(window, self._last), len(window)):
            job = window[place]
            if system.processors[job] > self.large:
                self._detected[job] = system.now, place
                self._waiting.append(job)
                self._why_not[job] = Reason.AT_ONCE
        self._last = max(self._last, window[-1])
        self._release_started(system)

    def others(self, head: int) -> list[Prepared]:
        """Return the prepared jobs but for the queue head, in the order of the queue."""
        return [self.prepared[job] for job in sorted(self.prepared) if job != head]

    def candidates(self, window: Sequence[int], system: System) -> list[int]:
        """Return the places of detected jobs to prepare, in order; none if enough are prepared."""
        self._waiting = [job for job in self._waiting if system.start[job] is None]
        prepared = sum(job in self._since for job in self.prepared)
        is_full = self.most is not None and prepared >= self.most
        for job in self._waiting:
            if is_full or self._why_not[job] is Reason.AT_ONCE:
                self._note(job, Reason.OTHERS if is_full else Reason.NO_ATTEMPT)
        return [] if is_full else [bisect_left(window, job) for job in self._waiting]

    def may_try(self, job: int, free: int) -> bool:
        """Return whether more routers are free, as expected, than when there was no plan."""
        return free > self._failed.get(job, -1)

    def fail(self, job: int, free: int) -> None:
        """Note that there was no plan for a job with that many free routers."""
        self._failed[job] = free
        self._note(job, Reason.NO_PLAN)

    def prepare(self, boxes: Mapping[int, Box], at: float, now: float) -> None:
        """Note the boxes of a large job, the first one, and of others, reserved for a time."""
        job = next(iter(boxes))
        self.prepared |= {one: Prepared(one, at, box) for one, box in boxes.items()}
        self._beside += len(boxes) - 1
        self._since[job] = now
        self._own.add(job)
        self._waiting.remove(job)
        del self._why_not[job]

    def give_up(self, job: int, reason: Reason) -> None:
        """Release the box of a prepared job, which is not prepared again."""
        del self.prepared[job]
        self._given_up[reason] += job in self._own
        self._own.discard(job)  # it may get another box beside a later large job

    def start(self, job: int) -> None:
        """Note that a prepared job starts in its box."""
        del self.prepared[job]
        self._in_box += job in self._own

    def migrate(self, jobs: Iterable[int], system: System, *, ahead: bool) -> None:
        """Note migrations; a job that moves twice at one time, or starts then, has one or none."""
        for job in jobs:
            if (system.start[job] or 0.0) < system.now:
                self._is_ahead.setdefault((system.now, job), ahead)

    def figures(self, system: System) -> dict[str, Any]:
        """Return the figures of `MEASURES`."""
        self._release_started(system)
        buffers = _periods(system, {job: since for job, (since, _) in self._detected.items()})
        ahead = sum(self._is_ahead.values())
        return {
            "large_detected": len(self._detected),
            "large_mean_buffer": _mean(buffers),
            "large_mean_ahead": _mean([ahead for _, ahead in self._detected.values()]),
            "prepared": len(self._since),
            "prepared_starts": self._in_box,
            "prepared_mean_buffer": _mean(_periods(system, self._since)),
            "not_prepared": _counts(Counter(self._why_not.values())),
            "given_up": _counts(self._given_up),
            "prepared_beside": self._beside,
            "migrations_at_start": len(self._is_ahead) - ahead,
            "migrations_ahead": ahead,
        }

    def _release_started(self, system: System) -> None:
        """Release the boxes of prepared jobs that have started elsewhere."""
        for job in [job for job in self.prepared if system.start[job] is not None]:
            self.give_up(job, Reason.ELSEWHERE)

    def _note(self, job: int, reason: Reason) -> None:
        """Note why a job is not prepared; what a solver said counts most."""
        if self._why_not[job] is not Reason.NO_PLAN:
            self._why_not[job] = reason


def _counts(found: Counter[Reason]) -> dict[str, int]:
    return {str(reason): found[reason] for reason in Reason if found[reason]}


def _periods(system: System, since: dict[int, float]) -> list[float]:
    """Return the seconds from given times to the starts of the jobs that started."""
    starts = [(system.start[job], at) for job, at in since.items()]
    return [start - at for start, at in starts if start is not None]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
