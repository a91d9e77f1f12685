"""Direct placement for the partition knapsack: Algorithm 2 of Li et al. (2015)."""

from __future__ import annotations

from optsched.models.partition_mkp import PartitionMKP, Placement
from optsched.solvers.partition_mkp.bins import Bins


def placed_directly(problem: PartitionMKP) -> Placement:
    """Return the placement by Algorithm 2: each job in turn, into the first bin that accepts it.

    Bins are tried in the order of the job's preference: the fewest idle routers, then the least
    remaining capacity, then the number.
    """
    bins = Bins(problem)
    hopeless: set[int] = set()
    for job, routers in enumerate(problem.routers):
        if routers not in hopeless:
            direct = bins.direct(routers)
            if direct is None:
                hopeless.add(routers)
                continue
            choice, spot = direct
            bins.bins[choice.bin].put(job, choice.shape, spot)
    return bins.places(len(problem.routers))
