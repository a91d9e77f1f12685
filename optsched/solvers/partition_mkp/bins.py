"""Placement into the bins of a partition knapsack, job by job.

Algorithm 2 of Li et al. (2015), direct placement, and Algorithm 3, based on migration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.models.partition_mkp import PartitionMKP, Place, Placement
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic


def fill(problem: PartitionMKP, *, migrating: bool) -> Placement:
    """Return the placement of the jobs in the order of the queue, which may migrate or not."""
    from optsched.solvers.partition_mkp._bins import placed

    sizes = sorted(set(problem.routers))
    number = {size: kind for kind, size in enumerate(sizes)}
    kinds = np.array([number[size] for size in problem.routers], dtype=np.int64)
    extents, routers, grid = problem.bin_table[:, 3:], np.array(sizes, np.int64), problem.grid
    places = placed(extents, routers, kinds, grid.shape, grid.longest, migrating).tolist()
    return tuple(None if place[0] < 0 else Place(*place) for place in places)


@solvers.register("direct-placement")
@dataclass(frozen=True)
class DirectPlacement(Heuristic):
    """Each job in turn, into the first bin that accepts it (Algorithm 2 of Li et al. 2015).

    Bins are tried in the order of the job's preference: the fewest idle routers, then the least
    remaining capacity, then the number. Work is counted in jobs.

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

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

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

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
