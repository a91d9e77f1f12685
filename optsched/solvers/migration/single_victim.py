"""Migration of one victim: Algorithm 3 of Li et al. (2015) as printed, for running jobs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optsched.boxes.box import Box, Triple
from optsched.boxes.free_boxes import anchors
from optsched.models.migration import Migration, Plan
from optsched.registry import solvers
from optsched.solvers.heuristic import Heuristic
from optsched.solvers.migration._cheapest_boxes import least_pair, sum_up

Ints = NDArray[np.int64]

NOBODY = -1
"""The job that a box without running jobs overlaps."""


@solvers.register("single-victim")
@dataclass(frozen=True)
class SingleVictim(Heuristic):
    """Move one job, the cheapest one whose routers suffice and that finds another box.

    Algorithm 3 of Li et al. 2015 as printed, with the profits of their section 6, see `find_plan`.
    It is a rule: in a simulation, no other heuristic replaces its answer. Work is counted in jobs.

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.
    """

    models = frozenset({"migration"})
    is_rule = True
    work_unit = "jobs"
    seconds_per_work = 3e-5

    def place(self, problem: Migration) -> Plan | None:
        """Return the plan with at most one victim, if there is one."""
        return find_plan(problem)

    def effort(self, problem: Migration) -> int:
        """Return the number of jobs that may be migrated."""
        return len(problem.movers)


def find_plan(problem: Migration) -> Plan | None:
    """Return the plan of Algorithm 3 with one victim, or None if no job is a qualified victim.

    There is a bin for each running job that may be moved: its routers, with the free ones around
    them and those of ending jobs. The job is the only one on its bin that could be a victim. Bins
    are ranked by decreasing priority, which is the reciprocal of the migration cost of the job; of
    equal bins, the first in number precedes. A job is a qualified victim if

    1. the large job has a box of one of its shapes on the bin (line 5);
    2. the victim then has a free box of one of its shapes elsewhere (lines 6 and 7), which may
       include routers of its own that the large job leaves;
    3. the total profit is larger with the migration than without (line 8).

    The first bin with a qualified victim is chosen. Of several boxes for the large job and hosts
    for the victim there, those with the least increase of idle routers are taken; of equal ones,
    the first.

    Profits are those of section 6: a placement has as profit the reciprocal of the migration cost
    that it causes, and a job that is not placed has none. A running job that stays causes no
    cost, and counts neither with nor without the migration. So a large job in a box without a
    running job has an infinite profit, which no migration exceeds: it is placed there. If it has no
    such box, the profit without migration is 0, less than that of any migration. Read so, the
    constraint excludes the migrations for a large job that fits without them, and no others.
    """
    places, jobs = _places(problem)
    if (jobs == NOBODY).any():
        return Plan((), _box(places[int((jobs == NOBODY).argmax())]))
    room = problem.grid.free_of([*problem.holes, *problem.ending, *problem.running])
    victims = np.unique(jobs).tolist()
    for job in sorted(victims, key=lambda job: (problem.costs[job], job)):
        found = _migration(problem, job, places[jobs == job], room)
        if found is not None:
            return problem.plan({job: found.host}, found.place)
    return None


class _Migration(NamedTuple):
    """A box for the large job, and the new box of the victim."""

    place: Box
    host: Box


def _places(problem: Migration) -> tuple[Ints, Ints]:
    """Return the boxes of the large job that overlap at most one running job, and this job.

    Shapes (boxes, 6) and (boxes,). Boxes are in the order of the shapes, then of the anchors. The
    jobs that each box overlaps are counted by a table of differences, see `sum_up`, and their
    numbers are added: the sum over a single job is its number.
    """
    grid, movers = problem.grid, np.array(problem.movers, dtype=np.int64)
    boxes = np.array([problem.running[job] for job in movers], dtype=np.int64).reshape(-1, 6)
    room = problem.place_room()
    counts, numbers = np.empty((2, *(side + 1 for side in grid.shape)), dtype=np.int64)
    places, jobs = [np.empty((0, 6), dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for extent in problem.place_extents:
        at = anchors(room, grid, extent)
        for values, table in ((np.ones_like(movers), counts), (movers, numbers)):
            sum_up(np.array(extent), boxes, values, grid.shape[2], grid.wrap, table)
        at = at[counts[tuple(at.T)] <= 1]
        there = tuple(at.T)
        places.append(_boxes(at, extent))
        jobs.append(np.where(counts[there] > 0, numbers[there], NOBODY))
    return np.concatenate(places), np.concatenate(jobs)


def _migration(
    problem: Migration, job: int, places: Ints, room: NDArray[np.bool_]
) -> _Migration | None:
    """Return the migration of a victim with the fewest idle routers, None if it finds no host.

    `room`: the routers that no job has. What the jobs need is the same in all migrations, so the
    fewest idle routers are the fewest in both boxes.
    """
    grid, room = problem.grid, room.copy()
    room[grid.routers_of(problem.running[job])] = True
    extents = sorted(problem.extents(job), key=math.prod)
    hosts = np.vstack([_boxes(anchors(room, grid, extent), extent) for extent in extents])
    place, host = least_pair(places, hosts, np.array(grid.shape))
    return None if place < 0 else _Migration(_box(places[place]), _box(hosts[host]))


def _boxes(at: Ints, extent: Triple) -> Ints:
    """Return the boxes of an extent at anchors, shape (boxes, 6)."""
    return np.hstack((at, np.broadcast_to(extent, at.shape)))


def _box(row: Ints) -> Box:
    x, y, z, nx, ny, nz = row.tolist()
    return Box(x, y, z, nx, ny, nz)
