"""Migration-based placement for the partition knapsack: Algorithm 3 of Li et al. (2015)."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.partition_mkp import PartitionMKP, Placement
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.partition_mkp.bins import fill


@solvers.register("migration-based")
@dataclass(frozen=True)
class MigrationBased(Heuristic):
    """Direct placement with migrations of placed jobs (Algorithm 3 of Li et al. 2015).

    For each job, the bins that it prefers to the one that accepts it directly, if any, are examined
    in the order of preference. A job there, placed in this decision, is a qualified victim if the
    incoming job fits without it, if another bin accepts it, and if the migration leaves fewer
    routers idle than direct placement. If no bin accepts the incoming job directly, the last
    condition is dropped. In the first bin with qualified victims, the one with the least increase
    of idle routers moves; of equal victims, the smallest, then the first. Work is counted in jobs.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

    Examples
    --------
    The second job takes the layers of four where the first was, so that the third fits, too:

    >>> bins = ["4x2x1@0,0,0", "3x3x1@4,0,0"]
    >>> problem = PartitionMKP((8, 4, 1), bins, waiting=[8, 4, 4])
    >>> [place.bin for place in MigrationBased().place(problem)]
    [1, 0, 0]
    """

    models = frozenset({"partition-mkp"})
    work_unit = "jobs"
    seconds_per_work = 5e-5

    def place(self, problem: PartitionMKP) -> Placement:
        """Return the placement by Algorithm 3."""
        return fill(problem, migrating=True)

    def effort(self, problem: PartitionMKP) -> int:
        """Return the number of waiting jobs."""
        return len(problem.waiting)
