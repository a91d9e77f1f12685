"""Algorithm 3 of Li et al. (2015) over running and waiting jobs, as in their section 6."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.reconfiguration import Arrangement, Reconfiguration
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.migration.migration_based import find_plan
from optsched.solvers.reconfiguration.migrate_then_place import Stage


@solvers.register("migration-based")
@dataclass(frozen=True)
class MigrationBased(Heuristic):
    """Each waiting job in turn by Algorithm 3, if its profit outweighs the moves.

    Algorithm 3 of Li et al. 2015 over running and waiting jobs, see `admit_in_turn`. Work is
    counted in jobs.

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015, section 6.
    """

    models = frozenset({"reconfiguration"})
    work_unit = "jobs"
    seconds_per_work = 5e-5

    def place(self, problem: Reconfiguration) -> Arrangement | None:
        """Return the arrangement, if there is one, by Algorithm 3."""
        return admit_in_turn(problem)

    def effort(self, problem: Reconfiguration) -> int:
        """Return the number of jobs."""
        return len(problem.running) + len(problem.waiting)


def admit_in_turn(problem: Reconfiguration) -> Arrangement | None:
    """Return the arrangement of Algorithm 3, or None if a required job is not admitted.

    Waiting jobs are admitted one by one, the required ones first, otherwise in the order of the
    queue. The bins are the boxes of all jobs that have one, waiting jobs admitted before among
    them, and the free routers. The priority of a bin is the reciprocal of the cost of the jobs that
    are displaced there, see `optsched.solvers.migration.migration_based.find_plan`. The migration
    constraint of the paper is that the worth of the job exceeds the cost of its moves; a required
    job is admitted at any cost.
    """
    stage = Stage(problem)
    others = (job for job in range(len(problem.waiting)) if job not in problem.required)
    for job in [*problem.required, *others]:
        migration = stage.migration(job)
        if job in problem.required:
            plan = find_plan(migration)
            if plan is None:
                return None
        else:
            plan = find_plan(migration, below=problem.worth * problem.profits[job])
        if plan is not None:
            stage.carry_out(job, plan)
    return stage.arrangement()
