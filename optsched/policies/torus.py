"""Boxes on a torus, with a scan window and migration for large jobs."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from optsched.errors import InputError
from optsched.registry import policies
from optsched.simulator.actions import Action, Migrate, Start
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.boxes.box import Box
    from optsched.policies.parts.torus_fitting import BoxReservation, Fitting

PLACING = {
    "bins": {"partition-mkp": Answers("migration-based", "direct-placement")},
    "boxes": {"box-placement": Answers("direct-placement", "direct-placement")},
}
MIGRATING = {"migration": Answers("migration-based", "migration-based")}


@policies.register("torus")
@dataclass
class TorusBoxes(Policy):
    """Each job gets a box; running jobs are migrated to free a box for a large one.

    A decision considers the first `depth` jobs of the queue, the scan window. Those up to the first
    large job are placed together, as one problem, in which the queue head counts more than all
    others. If no more can be placed, and enough routers but no box are free for a large job of the
    window, running jobs are migrated if the solver finds a plan; otherwise the problem is posed
    again once more routers are free. A queue head that still waits has a reservation, at the
    earliest estimated end at which a box is free for it. Later jobs are backfilled up to the next
    large job that cannot be placed, the pause point.

    Parameters
    ----------
    depth : int
        Jobs of the scan window, D in the paper.
    interval : float
        Seconds of a schedule cycle.
    large : int
        Most nodes of a job that is not large.
    detect : {"layered", "exact"}
        Detection of free bins: by the paper's layers, or exactly and with wrap-around.
    place : {"bins", "boxes"}
        Whether jobs are placed in disjoint bins, as in the paper, or in any free box.
    migrate : bool
        Whether running jobs may be migrated.
    backfill : {"none", "shadow", "easy"}
        Jobs that may start behind a waiting queue head: no job; jobs that end by its shadow time,
        as in the paper; or also jobs that avoid its reserved box.
    pause : bool
        Whether backfilling stops at the next large job that cannot be placed, as in the paper.
    shapes : int
        Number of best shapes that are tried, for jobs in any free box and in migration problems.

    Raises
    ------
    InputError
        If a number is less than 1, or the interval is negative.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive queue
    scanning and migration-based job placement", JSSPP 2015, sections 3 to 6.
    """

    depth: int = 100
    interval: float = 60.0
    large: int = 1024
    detect: Literal["layered", "exact"] = "layered"
    place: Literal["bins", "boxes"] = "bins"
    migrate: bool = True
    backfill: Literal["none", "shadow", "easy"] = "shadow"
    pause: bool = True
    shapes: int = 8

    machines: ClassVar[frozenset[str]] = frozenset({"torus"})
    models: ClassVar[Mapping[str, Answers]] = PLACING["bins"] | PLACING["boxes"] | MIGRATING
    execution: ClassVar[str] = "migration"

    def __post_init__(self) -> None:
        for name in ("depth", "large", "shapes"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}; expected a whole number from 1")
        if not self.interval >= 0:
            raise InputError(f"interval {self.interval}; expected seconds from 0")

    def large_from(self) -> int:
        """Return the least number of nodes of a large job."""
        return self.large + 1

    def posed(self) -> Mapping[str, Answers]:
        """Return the models posed: placement, and migration unless that is switched off."""
        return PLACING[self.place] | (MIGRATING if self.migrate else {})

    def begin(self, system: System) -> None:
        """Begin without reservations, and choose the way of fitting."""
        from optsched.machines.torus import Torus
        from optsched.models.torus_fields import LONGEST_SIDE
        from optsched.policies.parts.torus_fitting import InBins, InBoxes

        torus = system.machine
        assert isinstance(torus, Torus)
        if max(torus.shape) > LONGEST_SIDE:
            few = f"at most {LONGEST_SIDE} routers in each dimension"
            raise InputError(f"policy {self.name!r} places boxes on {few}, not on {torus.spec}")
        self._torus = torus
        self._fitting: Fitting = (
            InBoxes(torus, self.shapes)
            if self.place == "boxes"
            else InBins(torus, self.detect == "layered")
        )
        self._admitted: dict[int, bool] = {}
        self._no_plan = (-1, -1, 0)
        self._reserved: tuple[int, int, BoxReservation] | None = None

    def admits(self, job: int, system: System) -> bool:
        """Return whether the job fits on the empty machine."""
        routers = self._fitting.routers(system.processors[job])
        if routers not in self._admitted:
            empty = self._torus.emptied().boxes.free
            self._admitted[routers] = self._fitting.fits(empty, routers)
        return self._admitted[routers]

    def decide(self, system: System) -> Iterable[Action]:
        """Place the window, migrate for a large job, reserve for the head, backfill later jobs."""
        while system.queue:
            window = system.queue[: self.depth]
            if self._fits(system, window[0]):
                front = window[: self._first_large(system, window) + 1]
                if (yield from self._start(system, front)):
                    continue
            blocked = not self._fits(system, window[0])  # else the solver left the head out
            if self.migrate and (yield from self._admit_large(system, window, blocked)):
                continue
            if self.backfill != "none" and blocked:
                yield from self._backfill(system, window)
            return

    def _is_large(self, system: System, job: int) -> bool:
        return system.processors[job] > self.large

    def _fits(self, system: System, job: int) -> bool:
        nodes = system.processors[job]
        return nodes <= self._torus.free and self._fitting.fits_now(self._fitting.routers(nodes))

    def _may_place(self, system: System, jobs: Sequence[int]) -> bool:
        """Return whether there is a problem of placing some of the jobs."""
        if not jobs:
            return False
        least = min(system.processors[job] for job in jobs)
        return least <= self._torus.free and self._fitting.may_place(self._fitting.routers(least))

    def _first_large(self, system: System, jobs: Sequence[int]) -> int:
        """Return the index of the first large job, or of the last job without one."""
        processors, most = system.processors, self.large
        large = (place for place, job in enumerate(jobs) if processors[job] > most)
        return next(large, len(jobs) - 1)

    def _start(
        self, system: System, jobs: Sequence[int], kept: Sequence[Box] = ()
    ) -> Generator[Action, None, list[int]]:
        """Pose the placement of jobs beside `kept` boxes; start and return the placed ones."""
        processors = system.processors
        if not self._may_place(system, jobs):
            return []
        jobs = [job for job in jobs if processors[job] <= self._torus.free]
        profits = [processors[job] for job in jobs]
        profits[0] += sum(profits)  # the first job has priority
        problem = self._fitting.problem(system, jobs, profits, kept)
        if problem is None:
            return []
        started = []
        for job, box in zip(jobs, self._fitting.boxes(problem, system.pose(problem))):
            if box is not None:
                started.append(job)
                yield Start(job, box)
        return started

    def _reserve(self, system: System) -> BoxReservation:
        """Return the reservation of the queue head, which does not fit now.

        It stays the same until a box is taken, freed or moved.
        """
        head, changes = system.queue[0], self._torus.boxes.changes
        if self._reserved is None or self._reserved[:2] != (head, changes):
            routers = self._fitting.routers(system.processors[head])
            self._reserved = head, changes, self._fitting.reserve(system, routers)
        return self._reserved[2]

    def _admit_large(
        self, system: System, window: Sequence[int], blocked: bool
    ) -> Generator[Action, None, bool]:
        """Migrate running jobs for the first large job of the window, if that frees a box.

        If the queue head is `blocked`, it has a reservation, which stays as it is.
        """
        from optsched.models.migration import Migration

        torus, place = self._torus, self._first_large(system, window)
        job = window[place]
        if not self._is_large(system, job) or system.processors[job] > torus.free:
            return False
        if self._no_plan[:2] == (job, place) and torus.free <= self._no_plan[2]:
            return False
        kept: Sequence[Box] = ()
        inside: Sequence[int] = ()
        running = sorted(system.held)
        if place and blocked:
            box = self._reserve(system).box
            kept = self._free_part(box)
            inside = [one for one in running if torus.grid.overlap(system.held[one], box)]
        problem = Migration.trusted(
            running=tuple([system.held[one] for one in running]),
            sizes=tuple([system.processors[one] for one in running]),
            elapsed=tuple([_elapsed(system, one) for one in running]),
            movable=tuple([place for place, one in enumerate(running) if one not in inside]),
            incoming=system.processors[job],
            **self._fitting.fields(kept),
            shapes=self.shapes,
            running_jobs=tuple([system.job_id[one] for one in running]),
            incoming_job=system.job_id[job],
        )
        plan = system.pose(problem)
        if plan is None:
            self._no_plan = (job, place, torus.free)
            return False
        moves = {running[one]: box for one, box in plan.destinations.items()}
        if moves:
            parked = frozenset(running[step.job] for step in plan.steps if step.box is None)
            yield Migrate(moves, parked)
        yield Start(job, plan.place)
        return True

    def _backfill(self, system: System, window: Sequence[int]) -> Generator[Action, None, None]:
        """Start jobs that do not delay the queue head, up to the pause point."""
        behind = window[1:]
        reserved: BoxReservation | None = None
        while behind:
            cut = self._first_large(system, behind) + 1 if self.pause else len(behind)
            group, behind = behind[:cut], behind[cut:]
            if not self._may_place(system, group):
                return  # no need for the reservation
            reserved = reserved or self._reserve(system)
            shadow = max(reserved.earliest, system.now)
            in_time = [job for job in group if system.now + system.requested_time[job] <= shadow]
            started = yield from self._start(system, in_time)
            if self.backfill == "easy":
                late = [job for job in group if job not in in_time]
                started += yield from self._start(system, late, self._free_part(reserved.box))
            if group[-1] not in started:
                return

    def _free_part(self, box: Box) -> tuple[Box, ...]:
        """Return the free routers of a box, as boxes."""
        from optsched.boxes.free_boxes import disjoint_bins

        torus = self._torus
        inside = np.zeros(torus.shape, np.bool_)
        inside[torus.grid.routers_of(box)] = True
        return disjoint_bins(inside & torus.boxes.free, torus.grid)


def _elapsed(system: System, job: int) -> int:
    """Return the whole seconds that a running job has run, at least 0."""
    start = system.start[job]
    assert start is not None
    return max(0, int(system.now - start))
