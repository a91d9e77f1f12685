"""Algorithm 3 of Li et al. (2015): of one victim as printed, of several as in their section 6."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from optsched.arrays import Flags, Ints, Words
from optsched.boxes._rows import NONE, ONE, Wrap, fill, find_anchors, find_first_fit, lowest, put
from optsched.boxes.box import Box, Triple
from optsched.boxes.free_boxes import anchors
from optsched.compiled import kernel
from optsched.models.migration import Migration, Plan
from optsched.registry import solvers
from optsched.solvers.migration._cheapest_boxes import (
    cheapest_boxes,
    least_pair,
    share_a_router,
    sum_up,
)
from optsched.solvers.migration.subproblems import NEVER, Jobs, Subproblems
from optsched.solvers.solver import Heuristic

NOBODY = -1
"""The job that a box without running jobs overlaps."""


@solvers.register("single-victim")
@dataclass(frozen=True)
class SingleVictim(Heuristic):
    """Move one job, the cheapest one whose routers suffice and that finds another box.

    Algorithm 3 of Li et al. 2015 as printed, with the profits of their section 6. It is a rule: in
    a simulation, no other heuristic replaces its answer. Work is counted in jobs.

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

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.
    """

    models = frozenset({"migration"})
    is_rule = True
    work_unit = "jobs"
    seconds_per_work = 3e-5

    def place(self, problem: Migration) -> Plan | None:
        """Return the plan of Algorithm 3, or None if no job is a qualified victim."""
        places, jobs = _places(problem)
        if (jobs == NOBODY).any():
            return Plan((), _box(places[(jobs == NOBODY).argmax()]))
        room = problem.grid.free_of([*problem.holes, *problem.ending, *problem.running])
        victims = np.unique(jobs).tolist()
        for job in sorted(victims, key=lambda job: (problem.costs[job], job)):
            found = _migration(problem, job, places[jobs == job], room)
            if found is not None:
                place, host = found
                return problem.plan({job: host}, place)
        return None

    def effort(self, problem: Migration) -> int:
        """Return the number of jobs that may be migrated."""
        return len(problem.movers)


def _places(problem: Migration) -> tuple[Ints, Ints]:
    """Return the boxes of the large job that overlap at most one running job, and this job."""
    # numbers of jobs are added up, too: the sum over a single job is its number
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


def _migration(problem: Migration, job: int, places: Ints, room: Flags) -> tuple[Box, Box] | None:
    """Return the boxes of the large job and of the victim with the fewest idle routers, or None."""
    # what the jobs need is the same in all migrations: the fewest routers in both boxes
    grid, room = problem.grid, room.copy()
    room[grid.routers_of(problem.running[job])] = True
    extents = sorted(problem.extents(job), key=math.prod)
    hosts = np.vstack([_boxes(anchors(room, grid, extent), extent) for extent in extents])
    place, host = least_pair(places, hosts, np.array(grid.shape))
    return None if place < 0 else (_box(places[place]), _box(hosts[host]))


def _boxes(at: Ints, extent: Triple) -> Ints:
    """Return the boxes of an extent at anchors, shape (boxes, 6)."""
    return np.hstack((at, np.broadcast_to(extent, at.shape)))


def _box(row: Ints) -> Box:
    return Box(*row.tolist())


HOSTS = 64
"""Largest number of new boxes of a victim that are kept for the next places."""


@kernel
def jobs_met(boxes: Ints, sides: Ints) -> Words:
    """Return the jobs that a run of coordinates meets, as bits [axis, length - 1, start, word].

    A box meets the jobs that it meets in each dimension.
    """
    most = sides.max()
    met = np.zeros((3, most, most, (len(boxes) + 63) // 64), dtype=np.uint64)
    for axis in range(3):
        side = sides[axis]
        for job in range(len(boxes)):
            for at in range(boxes[job, axis], boxes[job, axis] + boxes[job, 3 + axis]):
                met[axis, 0, at % side, job >> 6] |= ONE << np.uint64(job & 63)
        for length in range(1, side):
            for at in range(side):
                for word in range(met.shape[3]):
                    further = met[axis, 0, (at + length) % side, word]
                    met[axis, length, at, word] = met[axis, length - 1, at, word] | further
    return met


@kernel
def list_hosts(free: Words, box: Ints, shapes: Ints, side: int, wrap: Wrap, hosts: Ints) -> int:
    """List the boxes that a job may take once it leaves its own; return how many there are.

    Boxes overwrite `hosts`, in order. If there are more, one more than it has rows is returned.
    """
    sx, sy = free.shape
    left = free.copy()
    starts = np.empty((sx, sy), dtype=np.uint64)
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    fill(left, box, side, True)
    count = 0
    for number in range(len(shapes)):
        nx, ny, nz = shapes[number, 0], shapes[number, 1], shapes[number, 2]
        if not find_anchors(left, nx, ny, nz, side, wrap, starts, room):
            continue
        for x in range(sx):
            for y in range(sy):
                word = starts[x, y]
                while word != NONE:
                    if count == len(hosts):
                        return count + 1
                    put(hosts[count], x, y, lowest(word), nx, ny, nz)
                    count += 1
                    word &= word - ONE
    return count


@kernel(allocates=False)
def first_box(place: Ints, boxes: Ints, overlaps: bool, sides: Ints) -> int:
    """Return the number of the first box that overlaps a place, or does not; or that of boxes."""
    number = 0
    while number < len(boxes) and share_a_router(place, boxes[number], sides) != overlaps:
        number += 1
    return number


@kernel
def find_hosts(place: Ints, free: Words, moving: Jobs, hosts: Ints) -> bool:
    """Find new boxes for the jobs that overlap a place, in order; return whether all have one.

    The boxes overwrite rows of `hosts`, which are zero for jobs that stay.
    """
    boxes, kinds, first, shapes, _, side, wrap = moving
    sx, sy = free.shape
    left = free.copy()
    starts = np.empty((sx, sy), dtype=np.uint64)
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    sides = np.array([sx, sy, side])
    hosts[:] = 0
    fill(left, place, side, False)
    for job in range(len(boxes)):
        if share_a_router(place, boxes[job], sides):
            fill(left, boxes[job], side, True)
            fill(left, place, side, False)
            own = shapes[first[kinds[job]] : first[kinds[job] + 1]]
            if find_first_fit(left, own, side, wrap, hosts[job], starts, room) < 0:
                return False
            fill(left, hosts[job], side, False)
    return True


@kernel(allocates=False)
def is_cheapest(shape: Ints, x: int, y: int, z: int, met: Words, seen: Words) -> bool:
    """Return whether a place overlaps a job that is not `seen`, or is the first over none.

    The jobs that it overlaps count as seen from then on; the last word tells whether a place over
    no job does.
    """
    new, is_free = False, True
    for word in range(len(seen) - 1):
        jobs = met[0, shape[0] - 1, x, word] & met[1, shape[1] - 1, y, word]
        jobs &= met[2, shape[2] - 1, z, word]
        is_free = is_free and jobs == NONE
        new = new or jobs & ~seen[word] != NONE
        seen[word] |= jobs
    if is_free:
        new, seen[-1] = seen[-1] == NONE, ONE
    return new


@kernel
def first_plan(
    large: Ints,  # shapes of the large job, shape (shapes, 3)
    moving: Jobs,  # in the order in which victims get hosts
    places: Ints,  # numbers of the cheapest places as in `cheapest_boxes`, the cheapest first
    free: Words,  # routers that are free now
) -> Ints:
    """Return the place of the first qualified bin, and the new boxes of its victims.

    A place is examined if it is the cheapest one over some job, or over none: another place of the
    same bins comes later.

    Result: box of the large job, and those of the jobs, zero for a job that stays. All zero if no
    bin is qualified.
    """
    boxes, kinds, first, shapes, _, side, wrap = moving
    sx, sy = free.shape
    jobs = len(boxes)
    sides = np.array([sx, sy, side])
    plan = np.zeros((1 + jobs, 6), dtype=np.int64)
    met = jobs_met(boxes, sides)
    seen = np.zeros(met.shape[3] + 1, dtype=np.uint64)
    # new boxes of each job, of which the first victim of a place may take those beside it: few
    # jobs are the first victims of many places, and most places fail with theirs
    hosts = np.empty((jobs, HOSTS, 6), dtype=np.int64)
    known = np.full(jobs, -1)
    for number in places:
        row, z = number // side, number % side
        layer, y = row // sy, row % sy
        shape, x = large[layer // sx], layer % sx
        if not is_cheapest(shape, x, y, z, met, seen):
            continue
        put(plan[0], x, y, z, shape[0], shape[1], shape[2])
        victim = first_box(plan[0], boxes, True, sides)
        if victim < jobs:
            if known[victim] < 0:
                own = shapes[first[kinds[victim]] : first[kinds[victim] + 1]]
                known[victim] = list_hosts(free, boxes[victim], own, side, wrap, hosts[victim])
            count = known[victim]
            if count <= HOSTS and first_box(plan[0], hosts[victim, :count], False, sides) == count:
                continue
        if find_hosts(plan[0], free, moving, plan[1:]):
            return plan
    plan[:] = 0
    return plan


PLACES = 4096
"""Number of cheapest places of the large job that are examined."""

BEFORE_ALL = np.array([-1, -1])
"""Cost and number before those of any box."""


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
    every = subproblems.jobs
    moving = every._replace(boxes=every.boxes[jobs], kinds=every.kinds[jobs])
    cheapest = cheapest_boxes(
        *(subproblems.large, moving.boxes, subproblems.costs[jobs], subproblems.usable),
        *(subproblems.side, subproblems.wrap, False, BEFORE_ALL, subproblems.below, most),
    )
    plan = first_plan(subproblems.large, moving, cheapest[:, 1], subproblems.free)
    if not plan[0, 3]:
        return None
    moved = np.flatnonzero(plan[1:, 3])
    moves = dict(zip(jobs[moved].tolist(), map(_box, plan[1 + moved])))
    return problem.plan(moves, _box(plan[0]))
