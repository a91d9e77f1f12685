"""Two decisions in turn: migrations for the required jobs, then free boxes for the other ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from optsched.models.box_placement import BoxPlacement
from optsched.models.migration import Migration
from optsched.models.reconfiguration import Arrangement, Reconfiguration
from optsched.registry import solvers
from optsched.solvers.box_placement.box_search import BoxSearch, DirectPlacement
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.migration.migration_based import MigrationBased
from optsched.solvers.migration.position_search import PositionSearch
from optsched.solvers.reconfiguration.stage import Stage
from optsched.solvers.result import Budget
from optsched.solvers.solver import Solver

PAIRS: dict[str, tuple[Solver, Solver]] = {
    "heuristic": (MigrationBased(), DirectPlacement()),
    "exact": (PositionSearch(), BoxSearch()),
}
"""Solvers of the two decisions: a migration problem, and a box placement."""


@solvers.register("migrate-then-place")
@dataclass(frozen=True)
class MigrateThenPlace(Heuristic):
    """Migrations for the required jobs one by one, then free boxes for the others without moves.

    This is how a policy decides that poses a migration problem for a large job, and afterwards
    places the other jobs of the window, see `place`. Work is counted in jobs.
    """

    # Whether `migration-based` and `direct-placement` take the two decisions, or the exact
    # solvers `position-search` and `box-search`, with their default work limits
    decisions: Literal["heuristic", "exact"] = "heuristic"

    models = frozenset({"reconfiguration"})
    work_unit = "jobs"
    seconds_per_work = 5e-5

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
        for job, box in zip(others, _answer(placing, _placement(problem, stage, others))):
            if box is not None:
                stage.boxes[len(problem.running) + job] = box
        return stage.arrangement()

    def effort(self, problem: Reconfiguration) -> int:
        """Return the number of jobs."""
        return len(problem.running) + len(problem.waiting)


def _placement(problem: Reconfiguration, stage: Stage, jobs: list[int]) -> BoxPlacement:
    """Return the problem of placing waiting jobs beside all jobs that have a box."""
    return BoxPlacement(
        **problem.torus_fields,
        running=list(stage.boxes.values()),
        waiting=[problem.waiting[job] for job in jobs],
        profits=[problem.profits[job] for job in jobs],
        shapes=problem.shapes,
    )


def _answer(solver: Solver, problem: Migration | BoxPlacement) -> Any:
    return solver.solve(problem, budget=Budget(work=solver.default_work)).solution
