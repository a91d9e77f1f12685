"""Direct placement: each job into the bin that it prefers of those that accept it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic


@solvers.register("direct-placement")
@dataclass(frozen=True)
class DirectPlacement(Heuristic):
    """Place the jobs one by one, in the order of the queue (Algorithm 2 of Li et al. 2015).

    Of the bins that accept a job it takes the one where it leaves the fewest routers idle. Where
    jobs may have any free box it takes the first of its ranked shapes that is free somewhere, where
    that touches most. Work is counted in jobs.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.

    Examples
    --------
    >>> from optsched.models import PartitionMKP
    >>> problem = PartitionMKP((8, 2, 1), ["4x2x1@0,0,0", "3x2x1@4,0,0"], waiting=[6])
    >>> DirectPlacement().place(problem)
    (Place(bin=1, layer=0, shelf=0),)
    """

    models = frozenset({"partition-mkp", "box-placement"})
    work_unit = "jobs"
    seconds_per_work = 2e-5

    def place(self, problem: Any) -> Any:
        """Return the placement by Algorithm 2."""
        if problem.name == "box-placement":
            from optsched.solvers.box_placement.direct import place_directly

            return place_directly(problem)
        from optsched.solvers.partition_mkp.direct import placed_directly

        return placed_directly(problem)

    def effort(self, problem: Any) -> int:
        """Return the number of waiting jobs."""
        return len(problem.waiting)
