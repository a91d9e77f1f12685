"""Migration of victims one by one: Algorithm 3 of Li et al. (2015), as applied in section 6."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from optsched.boxes.box import Box
from optsched.models.migration import Migration, Plan
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.migration._first_plan import first_plan
from optsched.solvers.migration.subproblems import NEVER, Subproblems

PLACES = 4096
"""Number of cheapest places of the large job that are examined."""


@solvers.register("migration-based")
@dataclass(frozen=True)
class MigrationBased(Heuristic):
    """Move the jobs in the way of the large one, the first of its places where all find hosts.

    Algorithm 3 of Li et al. 2015 as their section 6 applies it, see `find_plan`. Work is counted in
    jobs.

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.
    """

    models = frozenset({"migration"})
    work_unit = "jobs"
    seconds_per_work = 5e-5

    def place(self, problem: Migration) -> Plan | None:
        """Return the plan, if there is one, by Algorithm 3."""
        return find_plan(problem)

    def effort(self, problem: Migration) -> int:
        """Return the number of jobs that may be migrated."""
        return len(problem.running)


@lru_cache
def find_plan(problem: Migration, most: int = PLACES, below: int = NEVER) -> Plan | None:
    """Return the plan of Algorithm 3, or None if the algorithm fails or the plan costs too much.

    The bins are the boxes of running jobs and the free routers around them, with those of jobs that
    end before the large one starts. Each bin is represented
    by the cheapest place of the large job that takes routers of the bin. Bins are examined by
    increasing cost of that place, which is 0 if it overlaps no job. A bin is qualified if its
    victims, the jobs that overlap the place, find hosts one by one, largest first: the first free
    box of their best shapes outside the place. A victim may use its own routers and those of
    victims that have moved; no job is moved twice or on behalf of a victim. The first qualified bin
    is chosen. Only the `most` cheapest places are examined, and those that cost `below` a limit.
    """
    subproblems = Subproblems(problem, below)
    if not subproblems.may_fit():
        return None
    jobs = np.array(subproblems.in_order, dtype=np.int64)
    plan = first_plan(
        subproblems.large,
        subproblems.boxes[jobs],
        subproblems.costs[jobs],
        subproblems.kinds[jobs],
        subproblems.first,
        subproblems.shapes,
        subproblems.usable,
        subproblems.free,
        subproblems.side,
        subproblems.wrap,
        subproblems.below,
        most,
    )
    if not plan[0, 3]:
        return None
    moved = np.flatnonzero(plan[1:, 3])
    boxes = plan[1 + moved].tolist()
    moves = {job: Box(*box) for job, box in zip(jobs[moved].tolist(), boxes)}
    return problem.plan(moves, Box(*plan[0].tolist()))
