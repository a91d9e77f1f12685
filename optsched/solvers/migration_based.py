"""Migration-based placement: a placed job makes room for the next one by moving elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic


@solvers.register("migration-based")
@dataclass(frozen=True)
class MigrationBased(Heuristic):
    """Place jobs directly, or where another one makes room (Algorithm 3 of Li et al. 2015).

    Before a job goes into a bin that it does not prefer, or into none, each job that this decision
    has placed in a preferred bin is asked whether it could go elsewhere at fewer idle routers in
    all. To admit a large job beside running ones, those in the way of it are moved, see
    `optsched.solvers.migration.victims`. Work is counted in jobs.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

    Examples
    --------
    The second job takes the layers of four where the first was, so that the third fits, too:

    >>> from optsched.models import PartitionMKP
    >>> bins = ["4x2x1@0,0,0", "3x3x1@4,0,0"]
    >>> problem = PartitionMKP((8, 4, 1), bins, waiting=[8, 4, 4])
    >>> [place.bin for place in MigrationBased().place(problem)]
    [1, 0, 0]
    """

    models = frozenset({"partition-mkp", "migration"})
    work_unit = "jobs"
    seconds_per_work = 5e-5

    def place(self, problem: Any) -> Any:
        """Return the placement, or the plan if there is one, by Algorithm 3."""
        if problem.name == "migration":
            from optsched.solvers.migration.victims import find_plan

            return find_plan(problem)
        from optsched.solvers.partition_mkp.migration import placed_by_migration

        return placed_by_migration(problem)

    def effort(self, problem: Any) -> int:
        """Return the number of jobs that are placed or may be migrated."""
        return len(problem.running if problem.name == "migration" else problem.waiting)
