"""Direct placement for the partition knapsack: Algorithm 2 of Li et al. (2015)."""

from __future__ import annotations

from optsched.models.partition_mkp import PartitionMKP, Placement
from optsched.solvers.partition_mkp.filling import Fillings


def placed_directly(problem: PartitionMKP) -> Placement:
    """Put each job, in the order of the queue, into the first bin that accepts it (Algorithm 2).

    Bins are tried in the order of the job's preference: the fewest idle routers, then the least
    remaining capacity, then the number.
    """
    bins = Fillings(problem)
    hopeless: set[int] = set()
    for job, routers in enumerate(problem.routers):
        if routers not in hopeless:
            direct = bins.direct(routers)
            if direct is None:
                hopeless.add(routers)
                continue
            choice, spot = direct
            bins.fillings[choice.bin].put(job, choice.shape, spot)
    return bins.places(len(problem.routers))
