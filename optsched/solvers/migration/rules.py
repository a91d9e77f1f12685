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
    comes_before,
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


FEW, GROWTH = 64, 8
"""Least number of places that are examined first, and factor by which it grows."""

HOSTS = 64
"""Largest number of new boxes of a victim that are kept for the next places."""


@kernel(allocates=False)
def bound_of(costs: Ints, count: int, fewest: int, most: int) -> int:
    """Return a bound with `fewest` to `most` costs below it.

    If equal costs prevent that, it is the highest bound with fewer.
    """
    low, high = 0, 0
    for one in range(count):
        high = max(high, costs[one] + 1)
    while high - low > 1:
        bound = (low + high) // 2
        below = 0
        for one in range(count):
            below += costs[one] < bound
        if below < fewest:
            low = bound
        elif below > most:
            high = bound
        else:
            return bound
    return low


@kernel(allocates=False)
def cut(costs: Ints, numbers: Ints, kept: Ints, fewest: int, most: int) -> None:
    """Keep the cheapest places, `fewest` to `most`, in their order; of equal ones, the first.

    `kept` has the number of places, and the cost from which on places are left out.
    """
    if kept[0] <= most:
        return
    bound = bound_of(costs, kept[0], fewest, most)
    equal = fewest
    for one in range(kept[0]):
        equal -= costs[one] < bound
    count = 0
    for one in range(kept[0]):
        cost = costs[one]
        costs[count], numbers[count] = cost, numbers[one]
        if cost == bound:
            count += equal > 0
            equal -= 1
        else:
            count += cost < bound
    kept[0], kept[1] = count, bound


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


@kernel(allocates=False)
def keep_cheap(
    number: int, starts: Words, table: Ints, costs: Ints, numbers: Ints, kept: Ints, most: int
) -> None:
    """Append the places of a shape to the cheapest ones, by the cost at each anchor.

    A place has a number with six bits for each coordinate. See `cut` for `kept`.
    """
    sx, sy = starts.shape
    for x in range(sx):
        for y in range(sy):
            word = starts[x, y]
            if word == NONE:
                continue
            least = table[x, y, 0]
            for z in range(1, table.shape[2] - 1):
                least = min(least, table[x, y, z])
            if least >= kept[1]:
                continue
            if kept[0] + 64 > len(costs):
                cut(costs, numbers, kept, most, 2 * most)
            count = kept[0]
            while word != NONE:
                z = lowest(word)
                word &= word - ONE
                costs[count] = table[x, y, z]
                numbers[count] = ((number << 6 | x) << 6 | y) << 6 | z
                count += table[x, y, z] < kept[1]
            kept[0] = count


@kernel(allocates=False)
def find_cheapest(
    costs: Ints, numbers: Ints, count: int, large: Ints, met: Words, cheapest: Ints, seen: Words
) -> None:
    """Find cost and number of the cheapest of the places over each job, and over none.

    Cheap places are examined first, so that only jobs that none of them has `seen` are looked at
    behind them.
    """
    cheapest[:] = NEVER
    seen[:] = NONE
    begin, few = 0, FEW
    while begin < NEVER:
        end = bound_of(costs, count, few, 2 * few) if count > 2 * few else NEVER
        few *= GROWTH
        for one in range(count):
            cost, number = costs[one], numbers[one]
            if not begin <= cost < end:
                continue
            shape, x, y, z = number >> 18, number >> 12 & 63, number >> 6 & 63, number & 63
            nx, ny, nz = large[shape, 0] - 1, large[shape, 1] - 1, large[shape, 2] - 1
            is_free = True
            for word in range(len(seen)):
                jobs = met[0, nx, x, word] & met[1, ny, y, word] & met[2, nz, z, word]
                is_free = is_free and jobs == NONE
                jobs &= ~seen[word]
                while jobs != NONE:
                    job = 64 * word + lowest(jobs)
                    jobs &= jobs - ONE
                    if cost < cheapest[job, 0]:
                        cheapest[job, 0], cheapest[job, 1] = cost, number
            if is_free and cost < cheapest[-1, 0]:
                cheapest[-1, 0], cheapest[-1, 1] = cost, number
        for job in range(len(cheapest) - 1):
            if cheapest[job, 0] != NEVER:
                seen[job >> 6] |= ONE << np.uint64(job & 63)
        begin = end


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


@kernel
def first_plan(
    large: Ints,  # shapes of the large job, shape (shapes, 3)
    moving: Jobs,  # in the order in which victims get hosts
    costs: Ints,  # of these
    usable: Words,  # routers that the large job may take
    free: Words,  # those that are free now
    below: int,  # cost from which on places are left out
    most: int,  # number of cheapest places that may be examined
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
    table = np.empty((sx + 1, sy + 1, side + 1), dtype=np.int64)
    starts = np.empty((sx, sy), dtype=np.uint64)
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    plan = np.zeros((1 + jobs, 6), dtype=np.int64)
    room_for = 4 * most + 64
    place_costs, numbers = np.empty(room_for, np.int64), np.empty(room_for, np.int64)
    kept = np.array([0, below])
    for number in range(len(large)):
        shape = large[number]
        if find_anchors(usable, shape[0], shape[1], shape[2], side, wrap, starts, room):
            sum_up(shape, boxes, costs, side, wrap, table)
            keep_cheap(number, starts, table, place_costs, numbers, kept, most)
    cut(place_costs, numbers, kept, most, most)
    met = jobs_met(boxes, sides)
    cheapest = np.empty((jobs + 1, 2), dtype=np.int64)
    seen = np.empty(met.shape[3], dtype=np.uint64)
    find_cheapest(place_costs, numbers, kept[0], large, met, cheapest, seen)
    # new boxes of each job, of which the first victim of a place may take those beside it: few
    # jobs are the first victims of many places, and most places fail with theirs
    hosts = np.empty((jobs, HOSTS, 6), dtype=np.int64)
    known = np.full(jobs, -1)
    cost, number = -1, -1
    while True:
        next_cost, following = NEVER, NEVER
        for one in range(jobs + 1):
            if comes_before(cost, number, cheapest[one, 0], cheapest[one, 1]) and comes_before(
                cheapest[one, 0], cheapest[one, 1], next_cost, following
            ):
                next_cost, following = cheapest[one, 0], cheapest[one, 1]
        if next_cost == NEVER:
            plan[:] = 0
            return plan
        cost, number = next_cost, following
        shape, x, y, z = large[number >> 18], number >> 12 & 63, number >> 6 & 63, number & 63
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
    every = subproblems.jobs
    moving = every._replace(boxes=every.boxes[jobs], kinds=every.kinds[jobs])
    plan = first_plan(
        *(subproblems.large, moving, subproblems.costs[jobs]),
        *(subproblems.usable, subproblems.free, subproblems.below, most),
    )
    if not plan[0, 3]:
        return None
    moved = np.flatnonzero(plan[1:, 3])
    moves = dict(zip(jobs[moved].tolist(), map(_box, plan[1 + moved])))
    return problem.plan(moves, _box(plan[0]))
