"""Jobs on a torus: the fitting into bins or boxes, and the record of those in the scan window."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from optsched.arrays import Flags
from optsched.boxes.box import Box, Triple, shapes
from optsched.boxes.free_boxes import disjoint_bins, first_fit, fullest_box, holds
from optsched.boxes.layer_shapes import largest_layered_box, layered_bins, write
from optsched.machines.torus import Torus
from optsched.metrics.measure import Group, measures_in
from optsched.models.box_placement import BoxPlacement
from optsched.models.fields import read_only
from optsched.models.partition_mkp import PartitionMKP
from optsched.models.torus import routers_for
from optsched.simulator.system import System


@dataclass
class BoxReservation:
    """Reservation of a box for a blocked job."""

    earliest: float  # estimated end at which a large enough box is free
    choose: Callable[[], Box]

    @cached_property
    def box(self) -> Box:
        """Box reserved for the job."""
        return self.choose()


class Fitting:
    """Way of fitting jobs into the free routers of a torus, with the problem of placing them.

    Jobs are placed in disjoint bins, each the largest free box beside the earlier ones, or in any
    free box of their best shapes.
    """

    def __init__(self, torus: Torus, *, layered: bool, best: int | None) -> None:
        self.torus = torus
        self._layered = layered  # bins are found by the paper's layers, else exactly
        self._best = best  # shapes of a job that are tried; None for bins
        self._changes = -1
        self._fits_now: dict[int, bool] = {}
        self._earliest = 0.0  # of the last reservation

    def routers(self, nodes: int) -> int:
        """Return the number of routers that a job of `nodes` nodes needs."""
        return routers_for(nodes, self.torus.nodes_per_router)

    def fields(self, kept: Sequence[Box] = ()) -> dict[str, Any]:
        """Return the fields of the torus in the models; the routers of `kept` count as held."""
        torus = self.torus
        return {
            "torus": torus.shape,
            "wrap": torus.grid.wrap,
            "nodes_per_router": torus.nodes_per_router,
            "holes": (*torus.holes, *kept),
            "links": torus.links,
            "convex": torus.grid.convex,
        }

    def free_parts(self, boxes: Sequence[Box]) -> list[Box]:
        """Return the free routers of boxes, as boxes."""
        torus, parts = self.torus, list[Box]()
        for box in boxes:
            inside = np.zeros(torus.shape, np.bool_)
            inside[torus.grid.routers_of(box)] = True
            parts += disjoint_bins(inside & torus.boxes.free, torus.grid)
        return parts

    def fits(self, free: Flags, routers: int) -> bool:
        """Return whether a free box, or the largest bin, holds a job of `routers` routers."""
        grid = self.torus.grid
        if self._best is not None:
            return first_fit(free, grid, self._shapes(routers)) is not None
        if self._layered:
            return largest_layered_box(free, grid, routers) is not None
        return holds(free, grid, routers)

    def fits_now(self, routers: int) -> bool:
        """Return whether a box that is free now holds a job of `routers` routers."""
        boxes = self.torus.boxes
        if self._changes != boxes.changes:
            self._changes = boxes.changes
            self._fits_now.clear()
        if routers not in self._fits_now:
            self._fits_now[routers] = self.fits(boxes.free, routers)
        return self._fits_now[routers]

    def may_place(self, routers: int) -> bool:
        """Return whether there is a bin for a job of `routers` routers; a solver finds boxes."""
        return self._best is not None or self.fits_now(routers)

    def reserve(self, system: System, routers: int) -> BoxReservation:
        """Return the reservation of a job of `routers` routers (section 6 of Li, steps 1 to 3).

        Free routers only increase, so the first estimated end at which the job fits is found by
        bisection.
        """
        now = self.torus.boxes.free.copy()
        held_until = np.where(now, -np.inf, np.inf)
        running, boxes = system.running.by_estimated_end, system.held
        sides = chain.from_iterable([boxes[job] for _, job in running])
        held = np.fromiter(sides, np.int64, 6 * len(running)).reshape(-1, 6)
        until = np.array([end for end, _ in running])
        write(held_until, held, until)
        released = held[:, 3:].prod(axis=1).cumsum()
        least = int(np.searchsorted(released, routers - np.count_nonzero(now)))
        ends = sorted(set(until[least:].tolist()))

        def is_free(end: float) -> bool:
            return self.fits(held_until <= end, routers)

        low, high = 0, len(ends)
        guess = bisect_left(ends, self._earliest)
        for at in (guess, guess - 1):  # mostly, the job fits as early as the last one
            if low <= at < high:
                low, high = (low, at) if is_free(ends[at]) else (at + 1, high)
        first = bisect_left(ends, True, low, high, key=is_free)
        if first == len(ends):
            raise ValueError(f"no box of {routers} routers, even when all running jobs have ended")
        self._earliest = ends[first]
        then = held_until <= self._earliest
        return BoxReservation(earliest=self._earliest, choose=lambda: self._box(now, then, routers))

    def _box(self, free: Flags, free_then: Flags, routers: int) -> Box:
        """Return the box to reserve for a job that fits later, by what is free now and then."""
        grid = self.torus.grid
        if self._best is None and self._layered:  # a whole bin, since a part might not be found
            found = largest_layered_box(free_then, grid)
            assert found is not None
            return found
        # the best shape that is free then, where the fewest routers are free now
        first = first_fit(free_then, grid, self._shapes(routers))
        assert first is not None
        return fullest_box(free, grid, first.extent, free_then)

    def _shapes(self, routers: int) -> tuple[Triple, ...]:
        """Return the shapes of a job of `routers` routers that are tried, the best first."""
        return shapes(routers, self.torus.grid, self.torus.links)[: self._best]

    def problem(
        self, system: System, jobs: Sequence[int], profits: Sequence[int], kept: Sequence[Box]
    ) -> PartitionMKP | BoxPlacement | None:
        """Return the problem of placing waiting jobs beside `kept` boxes; None if no job fits."""
        torus, sizes = self.torus, [system.processors[job] for job in jobs]
        labels = tuple([system.job_id[job] for job in jobs])
        if self._best is not None:
            running = sorted(system.held)
            return BoxPlacement.trusted(
                running=tuple([system.held[job] for job in running]),
                waiting=read_only(np.array(sizes, np.int64)),
                profits=read_only(np.array(profits, np.int64)),
                shapes=self._best,
                anchors="all",
                **self.fields(self.free_parts(kept)),
                running_jobs=tuple([system.job_id[job] for job in running]),
                waiting_jobs=labels,
            )
        free = torus.boxes.free & torus.grid.free_of(kept) if kept else torus.boxes.free
        find = layered_bins if self._layered else disjoint_bins
        bins = find(free, torus.grid, self.routers(min(sizes)))
        if not bins:
            return None
        return PartitionMKP.trusted(
            bins=bins,
            waiting=tuple(sizes),
            profits=tuple(profits),
            **self.fields(),
            waiting_jobs=labels,
        )


MEASURES = measures_in(
    Group.LARGE,
    large_detected=("large jobs detected in the window", "jobs",
        "Large jobs that were in the scan window before their turn."),
    large_mean_buffer=("mean buffer period of large jobs", "seconds",
        "Mean time from the detection of a large job to its start."),
    large_mean_ahead=("jobs before a detected large job", "jobs",
        "Mean number of jobs before a large job in the window when it was detected."),
    prepared=("large jobs prepared", "jobs", "Large jobs for which a box was prepared."),
    prepared_starts=("starts in the prepared box", "jobs",
        "Large jobs that started in the box prepared for them."),
    prepared_mean_buffer=("mean time from preparation to start", "seconds",
        "Mean time from the preparation of the box to the start of the large job."),
    not_prepared=("detected, but not prepared", "jobs",
        "Large jobs detected in the window for which no box was prepared, by the reason.",
        "reason"),
    given_up=("prepared boxes given up", "jobs",
        "Large jobs that did not start in the box prepared for them, by the reason.", "reason"),
    prepared_beside=("other jobs prepared", "jobs",
        "Other jobs of the window that got a box in the plan for a large one."),
    migrations_at_start=("migrations as a large job starts", "migrations",
        "Migrations for a large job that starts at once."),
    migrations_ahead=("migrations ahead of a start", "migrations",
        "Migrations that prepare a box for a large job."),
)  # fmt: skip


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
    """Return the forecast for a large job, from its `turn` on; None if it can never start."""
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
        self.failed: dict[int, int] = {}  # free routers when there was no plan for a job
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

    def fail(self, job: int, free: int) -> None:
        """Note that there was no plan for a job with that many free routers."""
        self.failed[job] = free
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
