"""Boxes on a torus, with a scan window and migration for large jobs."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, ClassVar, Literal, cast

import numpy as np

from optsched.boxes.box import Box
from optsched.errors import InputError
from optsched.machines.torus import Torus
from optsched.metrics.measure import Group, measures_in
from optsched.models.migration import Migration, Plan
from optsched.models.partition_mkp import PartitionMKP
from optsched.models.reconfiguration import Arrangement, Reconfiguration
from optsched.models.torus import LONGEST_SIDE
from optsched.policies._torus import (
    MEASURES,
    BoxReservation,
    Fitting,
    Prepared,
    Reason,
    Scan,
    forecast,
)
from optsched.registry import policies
from optsched.settings import later
from optsched.simulator.policy import Action, Answers, Migrate, Policy, Start
from optsched.simulator.system import System

PLACING = {
    "bins": {"partition-mkp": Answers("migration-based", "direct-placement")},
    "boxes": {"box-placement": Answers("direct-placement", "direct-placement")},
}
MIGRATING = {"migration": Answers("migration-based", "migration-based")}
JOINTLY = {"reconfiguration": Answers("migrate-then-place", "migrate-then-place")}

MOST_WORTH = 10**7
"""Largest `worth`, more than any job runs, at which objectives stay exact."""


Protected = tuple[Sequence[Box], Collection[int]]
"""Free routers, as boxes, and running jobs that no migration may touch."""


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
    that will still run at its expected start are migrated, and a box is reserved for it; with a
    `worth`, for other jobs before it, too. A box is given up if the queue head fits nowhere else,
    or if other jobs still come first at the reserved time.

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
    preparations : int or None
        Most large jobs that are prepared at a time; None without a limit.
    moves : int or None
        Most jobs that a plan may move to be executed; None without a limit.
    worth : int or None
        Seconds of run time that moving a node may lose for another node to start. With it, a large
        job is admitted, or prepared, together with other jobs of the window, as one problem over
        running and waiting jobs; None for a migration problem of its own.

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
    preparations: int | None = later(1)
    moves: int | None = later(None)
    worth: int | None = later(None)

    machines: ClassVar[frozenset[str]] = frozenset({"torus"})
    models: ClassVar[Mapping[str, Answers]] = (
        PLACING["bins"] | PLACING["boxes"] | MIGRATING | JOINTLY
    )
    execution: ClassVar[str] = "migration"

    def __post_init__(self) -> None:
        least = {"depth": 1, "large": 1, "shapes": 1, "preparations": 1, "moves": 0}
        for name, number in least.items():
            value = getattr(self, name)
            if value is not None and value < number:
                none = ", or None" if name in ("preparations", "moves") else ""
                raise InputError(f"{name} {value}; expected a whole number from {number}{none}")
        if self.worth is not None and not 0 <= self.worth <= MOST_WORTH:
            expected = f"expected a whole number from 0 to {MOST_WORTH:,}, or None"
            raise InputError(f"worth {self.worth}; {expected}")
        if not self.interval >= 0:
            raise InputError(f"interval {self.interval}; expected seconds from 0")

    def large_from(self) -> int:
        """Return the least number of nodes of a large job."""
        return self.large + 1

    def posed(self) -> Mapping[str, Answers]:
        """Return the models posed: placement, and migration, with a `worth` reconfiguration."""
        if not self.migrate:
            return PLACING[self.place]
        return PLACING[self.place] | (MIGRATING if self.worth is None else JOINTLY)

    def begin(self, system: System) -> None:
        """Begin without reservations, and choose the way of fitting."""
        torus = system.machine
        assert isinstance(torus, Torus)
        if max(torus.shape) > LONGEST_SIDE:
            few = f"at most {LONGEST_SIDE} routers in each dimension"
            raise InputError(f"policy {self.name!r} places boxes on {few}, not on {torus.spec}")
        self._torus = torus
        best = self.shapes if self.place == "boxes" else None
        self._fitting = Fitting(torus, layered=self.detect == "layered", best=best)
        self._admitted: dict[int, bool] = {}
        self._no_plan = (-1, -1, 0)
        self._reserved: tuple[int, int, BoxReservation] | None = None
        self._protected: tuple[tuple[int, Sequence[Box]], Protected] | None = None
        self._refused = 0
        self._scan: Scan | None = None
        if self.migrate and self.prepare == "ahead":
            self._scan = Scan(self.large, self.preparations)

    measures = MEASURES | measures_in(
        Group.POLICY,
        refused_plans=("refused migration plans", "plans",
            "Plans with more migrations than the setting moves allows."),
    )  # fmt: skip

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
        started, placed = [], system.pose(problem)
        boxes = problem.boxes(placed) if isinstance(problem, PartitionMKP) else placed
        for job, box in zip(jobs, boxes):
            if box is not None:
                started.append(job)
                yield Start(job, box)
        return started

    def _reserve(self, system: System) -> BoxReservation:
        """Return the reservation of the queue head, as long as no box is taken, freed or moved."""
        head, changes = system.queue[0], self._torus.boxes.changes
        if self._scan is not None and (prepared := self._scan.prepared.get(head)) is not None:
            return BoxReservation(prepared.at, lambda: prepared.box)
        if self._reserved is None or self._reserved[:2] != (head, changes):
            routers = self._fitting.routers(system.processors[head])
            self._reserved = head, changes, self._fitting.reserve(system, routers)
        return self._reserved[2]

    def _admit_large(
        self, system: System, window: Sequence[int], blocked: bool
    ) -> Generator[Action, None, bool]:
        """Migrate running jobs for the first large job, unless that moves a blocked head."""
        torus, place = self._torus, self._first_large(system, window)
        job = window[place]
        if system.processors[job] <= self.large or system.processors[job] > torus.free:
            return False
        if self._no_plan[:2] == (job, place) and torus.free <= self._no_plan[2]:
            return False
        if self._scan is not None and job in self._scan.prepared:
            return False
        is_behind = bool(place) and blocked
        beside = () if self.worth is None else self._beside(system, window, place, is_behind)
        running = sorted(system.held)
        plan = self._plan(system, [job, *beside], running, (), self._kept(system, is_behind))
        if plan is None:
            self._no_plan = (job, place, torus.free)
            return False
        moves, boxes = plan
        yield from self._execute(moves, running, system, ahead=False)
        for one, box in boxes.items():
            yield Start(one, box)
        return True

    def _beside(
        self, system: System, window: Sequence[int], place: int, is_behind: bool
    ) -> list[int]:
        """Return the jobs up to the next large one that may start with that at a place."""
        large = window[place]
        left = self._torus.free - system.processors[large]
        others = [job for job in window if job != large]
        others = others[: self._first_large(system, others) + 1]
        # the reserved box is protected in any case
        if is_behind and self.backfill != "easy":
            head = others[0]
            shadow = max(self._reserve(system).earliest, system.now)
            others = [
                job
                for job in others
                if job == head
                or (self.backfill == "shadow" and system.now + system.requested_time[job] <= shadow)
            ]
        return [job for job in others if system.processors[job] <= left]

    def _kept(self, system: System, blocked: bool) -> Protected:
        """Return what is protected for a `blocked` queue head and for prepared jobs."""
        boxes = [self._reserve(system).box] if blocked else []
        if self._scan is not None:
            boxes += [prepared.box for prepared in self._scan.prepared.values()]
        if not boxes:
            return [], frozenset()
        state = self._torus.boxes.changes, boxes
        if self._protected is None or self._protected[0] != state:
            self._protected = state, self._parts_of(system, boxes)
        return self._protected[1]

    def _parts_of(self, system: System, boxes: Sequence[Box]) -> Protected:
        """Return the free routers of boxes, as boxes, and the running jobs that overlap them."""
        grid, held = self._torus.grid, system.held
        sides = np.fromiter(chain.from_iterable(held.values()), np.int64, 6 * len(held))
        inside = grid.overlapping(sides.reshape(-1, 6), boxes).tolist()
        return self._fitting.free_parts(boxes), frozenset(compress(held, inside))

    def _plan(
        self,
        system: System,
        jobs: Sequence[int],
        running: Sequence[int],
        ending: Sequence[int],
        protected: Protected,
    ) -> tuple[Plan | Arrangement, dict[int, Box]] | None:
        """Pose the migration for a large job, or with a worth, the reconfiguration for some jobs.

        The large job is the first of `jobs`; of the others, the first has priority. The `ending`
        jobs end before these start, and the `protected` routers and running jobs stay as they are.
        The plan, if it may be executed, is returned with the boxes of the jobs that get one.
        """
        kept, inside = protected
        nodes = tuple([system.processors[job] for job in jobs])
        now, start = system.now, cast("list[float]", system.start)  # running jobs have started
        fields = self._fitting.fields(kept) | {
            "running": tuple([system.held[one] for one in running]),
            "sizes": tuple([system.processors[one] for one in running]),
            "elapsed": tuple([max(0, int(now - start[one])) for one in running]),
            "movable": tuple([at for at, one in enumerate(running) if one not in inside]),
            "ending": tuple([system.held[one] for one in ending]),
            "shapes": self.shapes,
            "running_jobs": tuple([system.job_id[one] for one in running]),
        }
        if self.worth is None:
            label = system.job_id[jobs[0]]
            found = system.pose(Migration.trusted(**fields, incoming=nodes[0], incoming_job=label))
            boxes = [] if found is None else [found.place]
        else:
            profits = list(nodes)
            if len(jobs) > 1:
                profits[1] += sum(profits[1:])
            found = system.pose(
                Reconfiguration.trusted(
                    **fields,
                    waiting=nodes,
                    profits=tuple(profits),
                    required=(0,),
                    worth=self.worth,
                    waiting_jobs=tuple([system.job_id[job] for job in jobs]),
                )
            )
            boxes = [] if found is None else found.boxes
        if found is None:
            return None
        if self.moves is not None and len(found.destinations) > self.moves:
            self._refused += 1
            return None
        return found, {job: box for job, box in zip(jobs, boxes) if box is not None}

    def _execute(
        self, plan: Plan | Arrangement, running: Sequence[int], system: System, *, ahead: bool
    ) -> Generator[Action, None, None]:
        """Migrate the running jobs as planned, `ahead` of the start of the large job or at it."""
        moves = {running[one]: box for one, box in plan.destinations.items()}
        if self._scan is not None:
            self._scan.migrate(moves, system, ahead=ahead)
        if moves:
            parked = frozenset(running[step.job] for step in plan.steps if step.box is None)
            yield Migrate(moves, parked)

    def _prepare(
        self, scan: Scan, system: System, window: Sequence[int], blocked: bool
    ) -> Generator[Action, None, bool]:
        """Prepare the system for a detected large job, unless there is no plan.

        A job of the window is scheduled in each cycle, so that its place states its turn. With a
        worth, jobs before the large one that would run beside it get a box in the same plan.
        """
        for place in scan.candidates(window, system):
            job = window[place]
            protected = kept, inside = self._kept(system, blocked and place > 0)
            routers = self._fitting.routers(system.processors[job])
            free = self._fitting.routers(self._torus.free) - sum(box.volume for box in kept)
            turn = system.now + place * self.interval
            expected = forecast(system, routers, free, turn, inside)
            if expected is None or expected.free <= scan.failed.get(job, -1):
                continue  # no more routers are free than when there was no plan
            jobs = [job]
            if self.worth is not None:
                left = expected.free - routers
                for at in range(blocked, place):  # a blocked head has its reserved box
                    other, turn = window[at], system.now + at * self.interval
                    is_beside = turn + system.requested_time[other] > expected.at
                    fits = self._fitting.routers(system.processors[other]) <= left
                    if is_beside and fits and other not in scan.prepared:
                        jobs.append(other)
            plan = self._plan(system, jobs, expected.staying, expected.ending, protected)
            if plan is None:
                scan.fail(job, expected.free)
                return False
            moves, boxes = plan
            yield from self._execute(moves, expected.staying, system, ahead=True)
            scan.prepare(boxes, expected.at, system.now)
            return True
        return False

    def _start_prepared(self, scan: Scan, system: System) -> Generator[Action, None, bool]:
        """Start a job in a prepared box: the one that it is for, or a queue head that needs it.

        The first starts if no job before it is put off. The second gives up the boxes in which it
        would not end in time, the last job's first.
        """
        head, torus = system.queue[0], self._torus
        fits, others = self._fits(system, head), scan.others(head)
        own = [scan.prepared[head]] if head in scan.prepared else []
        for one in [*own, *([] if fits else others)]:
            if not torus.boxes.free[torus.grid.routers_of(one.box)].all():
                continue
            if one.job != head:
                reserved = self._reserve(system)
                ends = system.now + system.requested_time[one.job]
                if ends > reserved.earliest and torus.grid.overlap(one.box, reserved.box):
                    if system.now >= one.at:
                        scan.give_up(one.job, Reason.RESERVED)
                    continue
            scan.start(one.job)
            yield Start(one.job, one.box)
            return True
        if not fits or self._fits_beside(system, head, others):
            return False
        ends = system.now + system.requested_time[head]
        late = [one for one in others if ends > one.at]
        while late and not self._fits_beside(system, head, late):
            scan.give_up(late.pop().job, Reason.HEAD)
        return bool((yield from self._start(system, [head], [one.box for one in late])))

    def _fits_beside(self, system: System, job: int, prepared: Sequence[Prepared]) -> bool:
        """Return whether a box that is free now, outside of prepared ones, holds a job."""
        if not prepared:
            return self._fits(system, job)
        free = self._torus.boxes.free & self._torus.grid.free_of([one.box for one in prepared])
        return self._fitting.fits(free, self._fitting.routers(system.processors[job]))

    def _place(
        self, system: System, jobs: Sequence[int], kept: Sequence[Box] = ()
    ) -> Generator[Action, None, list[int]]:
        """Start jobs beside `kept` boxes, and in prepared boxes only those that end in time."""
        prepared = [] if self._scan is None else self._scan.others(system.queue[0])
        prepared.sort(key=lambda one: -one.at)
        boxes = [one.box for one in prepared]
        started = yield from self._start(system, jobs, [*kept, *boxes])
        for number, one in enumerate(prepared, start=1):
            in_time = [
                job
                for job in jobs
                if job not in started and system.now + system.requested_time[job] <= one.at
            ]
            started += yield from self._start(system, in_time, [*kept, *boxes[number:]])
        return started

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
                started += yield from self._place(system, late, [reserved.box])
            if group[-1] not in started:
                return
