"""Direct placement for the partition knapsack: Algorithm 2 of Li et al. (2015)."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.models.partition_mkp import PartitionMKP, Placement
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.partition_mkp.bins import fill


@solvers.register("direct-placement")
@dataclass(frozen=True)
class DirectPlacement(Heuristic):
    """Each job in turn, into the first bin that accepts it (Algorithm 2 of Li et al. 2015).

    Bins are tried in the order of the job's preference: the fewest idle routers, then the least
    remaining capacity, then the number. Work is counted in jobs.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

    Examples
    --------
    >>> problem = PartitionMKP((8, 2, 1), ["4x2x1@0,0,0", "3x2x1@4,0,0"], waiting=[6])
    >>> DirectPlacement().place(problem)
    (Place(bin=1, layer=0, shelf=0),)
    """

    models = frozenset({"partition-mkp"})
    work_unit = "jobs"
    seconds_per_work = 2e-5

    def place(self, problem: PartitionMKP) -> Placement:
        """Return the placement by Algorithm 2."""
        return fill(problem, migrating=False)

    def effort(self, problem: PartitionMKP) -> int:
        """Return the number of waiting jobs."""
        return len(problem.waiting)
