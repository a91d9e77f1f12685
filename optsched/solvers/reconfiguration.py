"""Reconfiguration by two decisions in turn, and by Algorithm 3 of Li et al. (2015).

The two decisions are migrations for the required jobs, and free boxes for the other ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from optsched.arrays import Flags
from optsched.boxes.box import Box
from optsched.models.box_placement import BoxPlacement
from optsched.models.migration import Migration, Plan
from optsched.models.reconfiguration import Arrangement, Reconfiguration
from optsched.registry import solvers
from optsched.solvers.box_placement import BoxSearch, DirectPlacement
from optsched.solvers.migration import rules
from optsched.solvers.migration.position_search import PositionSearch
from optsched.solvers.migration.subproblems import NEVER
from optsched.solvers.result import Budget
from optsched.solvers.solver import Heuristic, Solver


class Stage:
    """State of a reconfiguration after some waiting jobs have got a box.

    A waiting job with a box can be moved free of charge, as it has not started yet, and so can a
    running job that moves in any case. A waiting job that takes routers of an ending job stays,
    since a migration moves jobs at once.
    """

    def __init__(self, problem: Reconfiguration) -> None:
        self.problem = problem
        # present box of each job that has one: running jobs by number, then waiting ones
        self.boxes: dict[int, Box] = dict(enumerate(problem.running))

    def migration(self, job: int) -> Migration:
        """Return the problem of admitting a waiting job by moving jobs that have a box."""
        old = self.problem.running
        changed = [(at, box) for at, box in self.boxes.items() if at >= len(old) or box != old[at]]
        return _migration(self.problem, job, tuple(changed))

    def carry_out(self, job: int, plan: Plan) -> None:
        """Move jobs as in a plan of `migration`, and give the waiting job its box."""
        assert plan.place is not None
        jobs = list(self.boxes)
        for at, box in plan.destinations.items():
            self.boxes[jobs[at]] = box
        self.boxes[len(self.problem.running) + job] = plan.place

    def arrangement(self) -> Arrangement:
        """Return the arrangement in which all jobs have their present boxes."""
        running = self.problem.running
        moved = {job: self.boxes[job] for job, box in enumerate(running) if self.boxes[job] != box}
        waiting = range(len(running), len(running) + len(self.problem.waiting))
        return self.problem.arrangement(moved, [self.boxes.get(job) for job in waiting])


@lru_cache
def _migration(
    problem: Reconfiguration, job: int, changed: tuple[tuple[int, Box], ...]
) -> Migration:
    # cached, because a solver and its fallback begin with one stage, which then is solved once
    running, state = len(problem.running), dict(enumerate(problem.running)) | dict(changed)
    boxes = [*state.values()]
    admitted = [problem.waiting[at - running] for at in [*state][running:]]
    further = [
        at
        for at, box in enumerate(boxes[running:], running)
        if _beside_ending(problem)[problem.grid.routers_of(box)].all()
    ]
    own = zip(problem.elapsed, boxes, problem.running)
    return Migration.trusted(
        **problem.torus_fields,
        running=tuple(boxes),
        sizes=(*problem.sizes, *admitted),
        elapsed=(*[time if box == old else 0 for time, box, old in own], *[0] * len(admitted)),
        movable=(*sorted(problem.movers), *further),
        shapes=problem.shapes,
        running_jobs=None,
        incoming=problem.waiting[job],
        incoming_job=None,
        ending=problem.ending,  # a waiting job that takes a part of them stays
    )


@lru_cache
def _beside_ending(problem: Reconfiguration) -> Flags:
    return problem.grid.free_of(problem.ending)


PAIRS: dict[str, tuple[Solver, Solver]] = {
    "heuristic": (rules.MigrationBased(), DirectPlacement()),
    "exact": (PositionSearch(), BoxSearch()),
}
"""Solvers of the two decisions: a migration problem, and a box placement."""


class ByMigrations(Heuristic):
    """Base class of heuristics that admit jobs by migrations; work is counted in jobs."""

    models = frozenset({"reconfiguration"})
    work_unit = "jobs"
    seconds_per_work = 5e-5

    def effort(self, problem: Reconfiguration) -> int:
        """Return the number of jobs."""
        return len(problem.running) + len(problem.waiting)


@solvers.register("migrate-then-place")
@dataclass(frozen=True)
class MigrateThenPlace(ByMigrations):
    """Migrations for the required jobs one by one, then free boxes for the others without moves.

    This is how a policy decides that poses a migration problem for a large job, and afterwards
    places the other jobs of the window, see `place`. Work is counted in jobs.
    """

    # Whether `migration-based` and `direct-placement` take the two decisions, or the exact
    # solvers `position-search` and `box-search`, with their default work limits
    decisions: Literal["heuristic", "exact"] = "heuristic"

    def place(self, problem: Reconfiguration) -> Arrangement | None:
        """Return the arrangement, or None if there is no plan for a required job.

        Of a required job only the migrations count. The other jobs are then placed among the
        running jobs, which have their new boxes, and the required ones.
        """
        migrating, placing = PAIRS[self.decisions]
        stage = Stage(problem)
        for job in problem.required:
            plan = _answer(migrating, stage.migration(job))
            if plan is None:
                return None
            stage.carry_out(job, plan)
        others = [job for job in range(len(problem.waiting)) if job not in problem.required]
        placement = BoxPlacement(
            **problem.torus_fields,
            running=list(stage.boxes.values()),
            waiting=[problem.waiting[job] for job in others],
            profits=[problem.profits[job] for job in others],
            shapes=problem.shapes,
        )
        for job, box in zip(others, _answer(placing, placement)):
            if box is not None:
                stage.boxes[len(problem.running) + job] = box
        return stage.arrangement()


def _answer(solver: Solver, problem: Migration | BoxPlacement) -> Any:
    return solver.solve(problem, budget=Budget(work=solver.default_work)).solution


@solvers.register("migration-based")
@dataclass(frozen=True)
class MigrationBased(ByMigrations):
    """Each waiting job in turn by Algorithm 3, if its profit outweighs the moves.

    Algorithm 3 of Li et al. 2015 over running and waiting jobs. Waiting jobs are admitted one by
    one, the required ones first, otherwise in the order of the queue. The bins are the boxes of all
    jobs that have one, waiting jobs admitted before among them, and the free routers. The priority
    of a bin is the reciprocal of the cost of the jobs that are displaced there, see
    `optsched.solvers.migration.rules.find_plan`. The migration constraint of the paper is that the
    worth of the job exceeds the cost of its moves; a required job is admitted at any cost. Work is
    counted in jobs.

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015, section 6.
    """

    def place(self, problem: Reconfiguration) -> Arrangement | None:
        """Return the arrangement, or None if a required job is not admitted."""
        stage = Stage(problem)
        others = (job for job in range(len(problem.waiting)) if job not in problem.required)
        for job in [*problem.required, *others]:
            is_required = job in problem.required
            worth = NEVER if is_required else problem.worth * problem.profits[job]
            plan = rules.find_plan(stage.migration(job), below=worth)
            if plan is not None:
                stage.carry_out(job, plan)
            elif is_required:
                return None
        return stage.arrangement()
