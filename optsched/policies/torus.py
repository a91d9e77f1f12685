"""Boxes on a torus, with a scan window and migration for large jobs."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from optsched.errors import InputError
from optsched.metrics.measure import Group, Measure
from optsched.policies.parts.preparation import MEASURES, Prepared, Scan, forecast
from optsched.registry import policies
from optsched.settings import later
from optsched.simulator.actions import Action, Migrate, Start
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.system import System

if TYPE_CHECKING:
    from optsched.boxes.box import Box
    from optsched.models.migration import Plan
    from optsched.models.reconfiguration import Arrangement
    from optsched.policies.parts.torus_fitting import BoxReservation, Fitting

PLACING = {
    "bins": {"partition-mkp": Answers("migration-based", "direct-placement")},
    "boxes": {"box-placement": Answers("direct-placement", "direct-placement")},
}
MIGRATING = {"migration": Answers("migration-based", "migration-based")}
JOINTLY = {"reconfiguration": Answers("migrate-then-place", "migrate-then-place")}

MOST_WORTH = 10**7
"""Largest `worth`, more than any job runs, at which objectives stay exact."""


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

    With `prepare` "ahead", the system is prepared for a large job when it enters the window: jobs
    that will still run at its expected start are migrated, and a box is reserved for it. The box is
    given up if the queue head fits nowhere else, or if other jobs still come first at the reserved
    time.

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
    prepare : {"at-start", "ahead"}
        When running jobs are migrated for a large job: once enough routers are free, so that it
        starts at once; or also when it enters the scan window, as in the paper.
    moves : int or None
        Most jobs that a plan may move to be executed; None without a limit.
    worth : int or None
        Seconds of run time that moving a node may lose for another node to start. With it, a large
        job is admitted together with other jobs of the window, as one problem over running and
        waiting jobs; None to admit it by a migration problem of its own.

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
    prepare: Literal["at-start", "ahead"] = later("at-start")
    moves: int | None = later(None)
    worth: int | None = later(None)

    machines: ClassVar[frozenset[str]] = frozenset({"torus"})
    models: ClassVar[Mapping[str, Answers]] = (
        PLACING["bins"] | PLACING["boxes"] | MIGRATING | JOINTLY
    )
    execution: ClassVar[str] = "migration"

    def __post_init__(self) -> None:
        for name in ("depth", "large", "shapes"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}; expected a whole number from 1")
        if self.moves is not None and self.moves < 0:
            raise InputError(f"moves {self.moves}; expected a whole number from 0, or None")
        if self.worth is not None and not 0 <= self.worth <= MOST_WORTH:
            expected = f"expected a whole number from 0 to {MOST_WORTH:,}, or None"
            raise InputError(f"worth {self.worth}; {expected}")
        if not self.interval >= 0:
            raise InputError(f"interval {self.interval}; expected seconds from 0")

    def large_from(self) -> int:
        """Return the least number of nodes of a large job."""
        return self.large + 1

    def posed(self) -> Mapping[str, Answers]:
        """Return the models posed: placement, and unless that is switched off, migration.

        With a `worth`, migration is posed for preparations alone, otherwise reconfiguration.
        """
        if not self.migrate:
            return PLACING[self.place]
        if self.worth is None:
            return PLACING[self.place] | MIGRATING
        return PLACING[self.place] | JOINTLY | (MIGRATING if self.prepare == "ahead" else {})

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
        self._refused = 0
        self._scan: Scan | None = None
        if self.migrate and self.prepare == "ahead":
            self._scan = Scan(self.large)

    measures = MEASURES | {
        "refused_plans": Measure(
            "refused migration plans", "plans", Group.POLICY,
            "Plans with more migrations than the setting moves allows.",
        ),
    }  # fmt: skip

    def figures(self, system: System) -> dict[str, Any]:
        """Return the plans refused for their number of moves, and the buffer periods."""
        refused = {} if self.moves is None else {"refused_plans": self._refused}
        return refused | ({} if self._scan is None else self._scan.figures(system))

    def admits(self, job: int, system: System) -> bool:
        """Return whether the job fits on the empty machine."""
        routers = self._fitting.routers(system.processors[job])
        if routers not in self._admitted:
            empty = self._torus.emptied().boxes.free
            self._admitted[routers] = self._fitting.fits(empty, routers)
        return self._admitted[routers]

    def decide(self, system: System) -> Iterable[Action]:
        """Place the window, migrate for a large job, reserve for the head, backfill later jobs."""
        scan = self._scan
        while system.queue:
            window = system.queue[: self.depth]
            if scan is not None:
                scan.look(window, system)
                if (yield from self._start_prepared(scan, system)):
                    continue
            if self._fits(system, window[0]):
                if scan is not None and (yield from self._start_head(scan, system)):
                    continue
                front = window[: self._first_large(system, window) + 1]
                if (yield from self._place(system, front)):
                    continue
            blocked = not self._fits(system, window[0])  # else the solver left the head out
            if self.migrate and (yield from self._admit_large(system, window, blocked)):
                continue
            if scan is not None and (yield from self._prepare(scan, system, window, blocked)):
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
        from optsched.policies.parts.torus_fitting import BoxReservation

        head, changes = system.queue[0], self._torus.boxes.changes
        prepared = self._prepared
        if prepared is not None and prepared.job == head:
            return BoxReservation(prepared.at, lambda: prepared.box)
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
        torus, place = self._torus, self._first_large(system, window)
        job = window[place]
        if not self._is_large(system, job) or system.processors[job] > torus.free:
            return False
        if self._no_plan[:2] == (job, place) and torus.free <= self._no_plan[2]:
            return False
        if self._prepared is not None and self._prepared.job == job:
            return False
        is_behind = bool(place) and blocked
        running, (kept, inside) = sorted(system.held), self._kept(system, is_behind)
        plan: Plan | Arrangement | None
        if self.worth is None:
            plan = self._plan(system, job, running, (), kept, inside)
            starts = {} if plan is None else {job: plan.place}
        else:
            jobs = [job, *self._beside(system, window, place, is_behind)]
            plan = self._joint_plan(system, jobs, self.worth, running, kept, inside)
            starts = {} if plan is None else dict(zip(jobs, plan.boxes))
        if plan is None:
            self._no_plan = (job, place, torus.free)
            return False
        yield from self._execute(plan, running)
        for one, box in starts.items():
            if box is not None:
                yield Start(one, box)
        return True

    def _beside(
        self, system: System, window: Sequence[int], place: int, is_behind: bool
    ) -> list[int]:
        """Return the jobs that may start with the large one at a place of the window.

        They are the other jobs of the window up to the next large one. If the large job is behind a
        blocked queue head, they are the head and jobs that may be backfilled.
        """
        large = window[place]
        left = self._torus.free - system.processors[large]
        others = [job for job in window if job != large]
        others = others[: self._first_large(system, others) + 1]
        if is_behind and self.backfill != "easy":  # the reserved box is protected in any case
            head = others[0]
            shadow = max(self._reserve(system).earliest, system.now)
            others = [
                job
                for job in others
                if job == head
                or (self.backfill == "shadow" and system.now + system.requested_time[job] <= shadow)
            ]
        return [job for job in others if system.processors[job] <= left]

    def _kept(self, system: System, blocked: bool) -> tuple[list[Box], frozenset[int]]:
        """Return the free routers, as boxes, and the running jobs that no migration may touch.

        They are those of the reserved boxes of a `blocked` queue head and of the prepared job.
        """
        boxes = [self._reserve(system).box] if blocked else []
        if self._prepared is not None:
            boxes.append(self._prepared.box)
        if not boxes:
            return [], frozenset()
        grid, held = self._torus.grid, system.held
        sides = np.fromiter(chain.from_iterable(held.values()), np.int64, 6 * len(held))
        inside = grid.overlapping(sides.reshape(-1, 6), boxes).tolist()
        parts = [part for box in boxes for part in self._free_part(box)]
        return parts, frozenset(compress(held, inside))

    def _plan(
        self,
        system: System,
        job: int,
        running: Sequence[int],
        ending: Sequence[int],
        kept: Sequence[Box],
        inside: Collection[int],
    ) -> Plan | None:
        """Pose the migration for a large job; return its plan if it may be executed.

        The `ending` jobs end before the large one starts. The free routers `kept` and the running
        jobs `inside` stay as they are.
        """
        from optsched.models.migration import Migration

        problem = Migration.trusted(
            **self._running_fields(system, running, kept, inside),
            ending=tuple([system.held[one] for one in ending]),
            incoming=system.processors[job],
            incoming_job=system.job_id[job],
        )
        plan: Plan | None = system.pose(problem)
        return None if plan is None or self._is_refused(plan) else plan

    def _joint_plan(
        self,
        system: System,
        jobs: Sequence[int],
        worth: int,
        running: Sequence[int],
        kept: Sequence[Box],
        inside: Collection[int],
    ) -> Arrangement | None:
        """Pose the reconfiguration for a large job, the first of `jobs`, and others beside it.

        Of the others, the first has priority. Running jobs and `kept` routers are as in `_plan`.
        """
        from optsched.models.reconfiguration import Reconfiguration

        nodes = [system.processors[job] for job in jobs]
        profits = list(nodes)
        if len(jobs) > 1:
            profits[1] += sum(profits[1:])
        problem = Reconfiguration.trusted(
            **self._running_fields(system, running, kept, inside),
            waiting=tuple(nodes),
            profits=tuple(profits),
            required=(0,),
            worth=worth,
            waiting_jobs=tuple([system.job_id[job] for job in jobs]),
        )
        plan: Arrangement | None = system.pose(problem)
        return None if plan is None or self._is_refused(plan) else plan

    def _running_fields(
        self,
        system: System,
        running: Sequence[int],
        kept: Sequence[Box],
        inside: Collection[int],
    ) -> dict[str, Any]:
        """Return the fields of running jobs on the torus, of which those `inside` stay."""
        return self._fitting.fields(kept) | {
            "running": tuple([system.held[one] for one in running]),
            "sizes": tuple([system.processors[one] for one in running]),
            "elapsed": tuple([_elapsed(system, one) for one in running]),
            "movable": tuple([at for at, one in enumerate(running) if one not in inside]),
            "shapes": self.shapes,
            "running_jobs": tuple([system.job_id[one] for one in running]),
        }

    def _is_refused(self, plan: Plan | Arrangement) -> bool:
        """Return whether a plan moves too many jobs, and count it if so."""
        is_refused = self.moves is not None and len(plan.destinations) > self.moves
        self._refused += is_refused
        return is_refused

    def _execute(
        self, plan: Plan | Arrangement, running: Sequence[int]
    ) -> Generator[Action, None, None]:
        """Migrate the running jobs as planned."""
        moves = {running[one]: box for one, box in plan.destinations.items()}
        if moves:
            parked = frozenset(running[step.job] for step in plan.steps if step.box is None)
            yield Migrate(moves, parked)

    @property
    def _prepared(self) -> Prepared | None:
        """The job for which the system is prepared."""
        return None if self._scan is None else self._scan.prepared

    def _prepare(
        self, scan: Scan, system: System, window: Sequence[int], blocked: bool
    ) -> Generator[Action, None, bool]:
        """Prepare the system for a detected large job, unless there is no plan.

        A job of the window is scheduled in each cycle, so that its place states its turn. The jobs
        that will have ended by its expected start are left in its box, those that will still run
        are migrated now. The reservation of a `blocked` queue head stays as it is.
        """
        places = scan.candidates(window, system)
        if not places:
            return False
        protected = self._kept(system, blocked)
        for place in places:
            job = window[place]
            kept, inside = protected if place else ([], frozenset())
            routers = self._fitting.routers(system.processors[job])
            free = int(self._torus.boxes.free.sum()) - sum(box.volume for box in kept)
            turn = system.now + place * self.interval
            expected = forecast(system, routers, free, turn, inside)
            if expected is None or not scan.may_try(job, expected.free):
                continue
            plan = self._plan(system, job, expected.staying, expected.ending, kept, inside)
            if plan is None or plan.place is None:
                scan.fail(job, expected.free)
                return False
            yield from self._execute(plan, expected.staying)
            scan.prepare(Prepared(job, expected.at, plan.place), system.now)
            return True
        return False

    def _start_prepared(self, scan: Scan, system: System) -> Generator[Action, None, bool]:
        """Start the prepared job in its box, if that is free, and no job before it is put off.

        The box is given up if that is not so at the reserved time.
        """
        prepared, head, torus = scan.prepared, system.queue[0], self._torus
        if prepared is None or not torus.boxes.free[torus.grid.routers_of(prepared.box)].all():
            return False
        if prepared.job != head:
            if self._fits(system, head):
                return False
            reserved = self._reserve(system)
            ends = system.now + system.requested_time[prepared.job]
            if ends > reserved.earliest and torus.grid.overlap(prepared.box, reserved.box):
                if system.now >= prepared.at:
                    scan.give_up()
                return False
        scan.start()
        yield Start(prepared.job, prepared.box)
        return True

    def _start_head(self, scan: Scan, system: System) -> Generator[Action, None, bool]:
        """Start the queue head in the prepared box, if it fits now, but nowhere else.

        The jobs before the large one come first: its box is given up unless the head ends in time.
        """
        prepared, head, torus = scan.prepared, system.queue[0], self._torus
        if prepared is None or prepared.job == head:
            return False
        beside = torus.boxes.free & torus.grid.free_of([prepared.box])
        if self._fitting.fits(beside, self._fitting.routers(system.processors[head])):
            return False
        if system.now + system.requested_time[head] > prepared.at:
            scan.give_up()
        return bool((yield from self._start(system, [head])))

    def _place(
        self, system: System, jobs: Sequence[int], kept: Sequence[Box] = ()
    ) -> Generator[Action, None, list[int]]:
        """Start jobs beside `kept` boxes, and in the prepared box only those that end in time."""
        prepared = self._prepared
        if prepared is None or prepared.job == system.queue[0]:
            return (yield from self._start(system, jobs, kept))
        started = yield from self._start(system, jobs, [*kept, *self._free_part(prepared.box)])
        in_time = [
            job
            for job in jobs
            if job not in started and system.now + system.requested_time[job] <= prepared.at
        ]
        return started + (yield from self._start(system, in_time, kept))

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
            started = yield from self._place(system, in_time)
            if self.backfill == "easy":
                late = [job for job in group if job not in in_time]
                started += yield from self._place(system, late, self._free_part(reserved.box))
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
