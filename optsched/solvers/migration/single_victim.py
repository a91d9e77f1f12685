"""Migration of one victim: Algorithm 3 of Li et al. (2015) as printed, for running jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from optsched.boxes.box import Box
from optsched.boxes.free_boxes import Free, anchors, first_fit
from optsched.models.migration import Migration, Plan
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic


@solvers.register("single-victim")
@dataclass(frozen=True)
class SingleVictim(Heuristic):
    """Move one job, the cheapest one whose routers suffice and that finds another box.

    Algorithm 3 of Li et al. 2015 as printed, with the profits of their section 6, see `find_plan`.
    Work is counted in jobs.

    References
    ----------
    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.
    """

    models = frozenset({"migration"})
    work_unit = "jobs"
    seconds_per_work = 2e-4

    def place(self, problem: Migration) -> Plan | None:
        """Return the plan with at most one victim, if there is one."""
        return find_plan(problem)

    def effort(self, problem: Migration) -> int:
        """Return the number of jobs that may be migrated."""
        return len(problem.movers)


def find_plan(problem: Migration) -> Plan | None:
    """Return the plan of Algorithm 3 with one victim, or None if no job is a qualified victim.

    There is a bin for each running job that may be moved: its routers, with the free ones around
    them. The job is the only one on its bin. Bins are ranked by decreasing priority, which is the
    reciprocal of the migration cost of the job; of equal bins, the first in number precedes. A job
    is a qualified victim if

    1. the large job has a box of one of its shapes on the bin (line 5);
    2. the victim then has a free box of one of its shapes elsewhere (lines 6 and 7), which may
       include routers of its own that the large job leaves;
    3. the total profit is larger with the migration than without (line 8).

    The first bin with a qualified victim is chosen. Of several boxes for the large job and hosts
    for the victim there, those with the least increase of idle routers are taken; of equal ones,
    the first.

    Profits are those of section 6: a placement has as profit the reciprocal of the migration cost
    that it causes, and a job that is not placed has none. A running job that stays causes no
    cost, and counts neither with nor without the migration. So a large job in a free box has an
    infinite profit, which no migration exceeds: it is placed there. If the large job has no free
    box, the profit without migration is 0, less than that of any migration. Read so, the constraint
    excludes the migrations for a large job that fits without them, and no others.
    """
    grid = problem.grid
    free = grid.free_of([*problem.holes, *problem.running])
    direct = first_fit(free, grid, problem.place_extents)
    if direct is not None:
        return Plan((), direct)
    for job in sorted(problem.movers, key=problem.costs.__getitem__):
        found = min(_migrations(problem, free, job), default=None, key=_idle)
        if found is not None:
            return problem.plan({job: found.host}, found.place)
    return None


class _Migration(NamedTuple):
    """A box for the large job, and the new box of the victim."""

    place: Box
    host: Box


def _idle(found: _Migration) -> int:
    """Return the routers that both boxes take; what the jobs need is the same in all of them."""
    return found.place.volume + found.host.volume


def _migrations(problem: Migration, free: Free, job: int) -> Iterator[_Migration]:
    """Yield the migrations of a victim, a host with the fewest idle routers for each place."""
    grid, box = problem.grid, problem.running[job]
    room = free.copy()
    room[grid.routers_of(box)] = True
    extents = sorted(problem.extents(job), key=math.prod)
    for extent in problem.place_extents:
        for x, y, z in anchors(room, grid, extent).tolist():
            place = Box(x, y, z, *extent)
            left = room.copy()
            left[grid.routers_of(place)] = False
            host = first_fit(left, grid, extents)
            if host is not None:
                yield _Migration(place, host)
