"""Packing subproblems of a migration problem, and families of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain
from operator import attrgetter
from typing import ClassVar, NamedTuple

import numpy as np

from optsched.arrays import Flags, Ints, Words
from optsched.boxes._rows import (
    NONE,
    ONE,
    Wrap,
    fill,
    find_anchors,
    find_first_fit,
    first_fit,
    lowest,
    put,
    run_of,
    words_outside,
)
from optsched.boxes.box import Box, Grid, Triple
from optsched.boxes.free_boxes import largest_box
from optsched.compiled import kernel
from optsched.models.migration import Migration, Plan
from optsched.models.torus import extents_of, routers_for
from optsched.solvers.migration._cheapest_boxes import cheapest_boxes, mark_overlaps

AT_ONCE = 16
"""Number of shapes to try before the largest free box is computed."""

NO, YES, OPEN = 0, 1, 2
"""Outcomes of a search; `OPEN` if the limit of boxes to try is reached."""


@kernel(allocates=False)
def is_free(words: Words, box: Ints, side: int) -> bool:
    """Return whether all routers of a box are free."""
    sx, sy = words.shape
    run = run_of(box[2], box[5], side)
    for x in range(box[0], box[0] + box[3]):
        for y in range(box[1], box[1] + box[4]):
            if ~words[x % sx, y % sy] & run != NONE:
                return False
    return True


@kernel
def fits(
    words: Words,
    shapes: Ints,
    least: int,
    side: int,
    wrap: Wrap,
    box: Ints,
    starts: Words,
    room: Words,
) -> bool:
    """Return whether a box of any of `shapes`, with at least `least` routers each, is free.

    The first one overwrites `box`; see `find_first_fit` for `starts` and `room`.
    """
    if find_first_fit(words, shapes[:AT_ONCE], side, wrap, box, starts, room) >= 0:
        return True
    if len(shapes) <= AT_ONCE:
        return False
    # before the other shapes: is any free box large enough?
    sides = words.shape[0], words.shape[1], side
    if largest_box(words, least - 1, least, side, wrap, sides)[3] == 0:
        return False
    return bool(find_first_fit(words, shapes[AT_ONCE:], side, wrap, box, starts, room) >= 0)


class Jobs(NamedTuple):
    """Jobs that may move, and the torus."""

    boxes: Ints  # present box of each job, shape (jobs, 6)
    kinds: Ints  # kind of each job, shape (jobs,)
    # Offsets: a job of kind k may take ``shapes[first[k]:first[k + 1]]``, shape (kinds + 1,)
    first: Ints
    shapes: Ints  # routers of each shape in each dimension, shape (shapes, 3)
    needs: Ints  # least number of routers of the shapes of each kind, shape (kinds,)
    side: int
    wrap: Wrap  # whether each dimension wraps around


@kernel
def pack(
    words: Words,  # routers that are free while the jobs are in their boxes
    moving: Jobs,
    jobs: Ints,  # numbers of the jobs to place, shape (placed,)
    place: Ints,  # box that is taken, shape (6,)
    most: int,  # largest number of boxes to try
    levels: Words,  # overwritten: free routers and remaining anchors; (more than placed, 2, X, Y)
) -> tuple[int, int, Ints, Flags]:
    """Search for disjoint new boxes of jobs, in the order of jobs, beside a place.

    A job tries its shapes in order, and the anchors of each in row-major order. Of consecutive jobs
    of one kind, each takes a later box in that order than its predecessor (symmetry breaking). The
    search backtracks if any later job has no free box.

    Results: `answer`: `YES`, `NO` or `OPEN`; `tried`: number of boxes tried; `placed`:
    boxes of the jobs, for `YES`; `needed`: for `NO`, a set of jobs that together do not fit.
    """
    boxes, kinds, first, shapes, needs, side, wrap = moving
    count = len(jobs)
    sx, sy = words.shape
    placed = np.zeros((count, 6), dtype=np.int64)
    needed = np.zeros(count, dtype=np.bool_)
    fitting = np.zeros((len(needs), 6), dtype=np.int64)  # a box of each kind that was free once
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    scratch = np.empty((sx, sy), dtype=np.uint64)
    # position of each job in its list: shape, layer, row
    at = np.zeros((count, 3), dtype=np.int64)
    free = levels[0, 0]
    for x in range(sx):
        for y in range(sy):
            free[x, y] = words[x, y]
    for job in jobs:
        fill(free, boxes[job], side, True)
    fill(free, place, side, False)
    tried = 0
    job = 0
    entered = True
    while True:
        if entered:
            entered = False
            free = levels[job, 0]
            blocked = -1
            for other in range(job, count):
                kind = kinds[jobs[other]]
                if other > job and kind == kinds[jobs[other - 1]]:
                    continue
                box = fitting[kind]
                if box[3] > 0 and is_free(free, box, side):
                    continue
                own = shapes[first[kind] : first[kind + 1]]
                if not fits(free, own, needs[kind], side, wrap, box, scratch, room):
                    blocked = other
                    break
            if blocked >= 0:
                needed[blocked] = True
                job -= 1
            elif job == count:
                return YES, tried, placed, needed
            else:
                kind = kinds[jobs[job]]
                follows = job > 0 and kind == kinds[jobs[job - 1]]
                at[job, 0], at[job, 1], at[job, 2] = first[kind], 0, 0
                if follows:
                    at[job] = at[job - 1]
                starts, shape = levels[job, 1], shapes[at[job, 0]]
                if not find_anchors(free, shape[0], shape[1], shape[2], side, wrap, starts, room):
                    at[job, 1] = sx
                elif follows:
                    behind = placed[job - 1, 2] + 1
                    if behind > 63:
                        starts[at[job, 1], at[job, 2]] = NONE
                    else:
                        starts[at[job, 1], at[job, 2]] &= ~NONE << np.uint64(behind)
        if job < 0:
            return NO, tried, placed, needed
        # next box in the list
        free, starts = levels[job, 0], levels[job, 1]
        last = first[kinds[jobs[job]] + 1] - 1
        while at[job, 1] == sx or starts[at[job, 1], at[job, 2]] == NONE:
            if at[job, 1] < sx:
                at[job, 2] += 1
                if at[job, 2] == sy:
                    at[job, 1] += 1
                    at[job, 2] = 0
            elif at[job, 0] == last:
                break
            else:
                at[job, 0] += 1
                shape = shapes[at[job, 0]]
                if find_anchors(free, shape[0], shape[1], shape[2], side, wrap, starts, room):
                    at[job, 1], at[job, 2] = 0, 0
        if at[job, 1] == sx:
            needed[job] = True
            job -= 1
            continue
        if tried >= most:
            return OPEN, tried, placed, needed
        tried += 1
        x, y = at[job, 1], at[job, 2]
        word = starts[x, y]
        shape = shapes[at[job, 0]]
        put(placed[job], x, y, lowest(word), shape[0], shape[1], shape[2])
        starts[x, y] = word & (word - ONE)
        levels[job + 1, 0] = free
        fill(levels[job + 1, 0], placed[job], side, False)
        job += 1
        entered = True


NEVER = np.iinfo(np.int64).max
"""Cost beyond that of any plan."""

BATCH = 64
"""Number of boxes in the first batch of a family."""


@dataclass(frozen=True, slots=True)
class Subproblem:
    """A packing subproblem: new boxes for given jobs beside the large job.

    `cost` is that of moving the jobs, a bit mask; `place` is the box of the large job.
    """

    is_family: ClassVar[bool] = False

    cost: int
    place: tuple[int, ...]
    jobs: int


class PackingResult(NamedTuple):
    """Result of a packing subproblem: its plan, if it is feasible, and the number of boxes tried.

    An infeasible subproblem has a set of jobs that together do not fit, in `needed`. It is open if
    the limit was reached.
    """

    plan: Plan | None
    is_open: bool
    needed: tuple[int, ...]
    tried: int


class Subproblems:
    """Generator and solver of the packing subproblems of a migration problem.

    With a limit `below`, jobs that cost as much do not move.
    """

    def __init__(self, problem: Migration, below: int | None = None) -> None:
        self.problem = problem
        grid = problem.grid
        self.side, self.wrap = grid.shape[2], grid.wrap
        self.sides = np.array(grid.shape)
        self.boxes = _table(problem.running, 6)
        self.costs = np.array(problem.costs, dtype=np.int64)
        self.large = _table(problem.place_extents, 3)
        holes, kept = _table(problem.holes, 6), np.ones(len(self.boxes), np.bool_)
        # as words: what the large job may take, also without a move, and what a moved job may take
        vacant = words_outside(np.concatenate((holes, self.boxes)), *grid.shape)
        self.movers, self.below = problem.movers, below
        if below is not None:
            if first_fit(vacant, self.large, self.side, self.wrap)[3]:
                self.below = below = min(below, 1)  # a free place needs no move that costs anything
            self.movers = tuple([job for job in problem.movers if problem.costs[job] < below])
        kept[list(self.movers)] = False
        self.usable = words_outside(np.concatenate((holes, self.boxes[kept])), *grid.shape)
        self._beside_ending = words_outside(_table(problem.ending, 6), *grid.shape)
        self.free = vacant & self._beside_ending
        kind_of = _kinds(grid, problem.links, problem.shapes, problem.nodes_per_router)
        sizes, running = problem.sizes, problem.running
        own = [kind_of(sizes[job], running[job][3:]) for job in self.movers]
        self._kind_of = dict(zip(self.movers, own))
        kinds = sorted(set(own), key=attrgetter("order"))
        number = {kind: place for place, kind in enumerate(kinds)}
        self.kinds = np.full(len(self.boxes), -1)
        self.kinds[list(self.movers)] = [number[kind] for kind in own]
        tables = self.first, self.shapes, self._needs = _tables_of(tuple(kinds))
        self.jobs = Jobs(self.boxes, self.kinds, *tables, self.side, self.wrap)
        self.in_order = sorted(self.movers, key=self.kinds.tolist().__getitem__)
        self._floors: dict[int, int] = {}

    @cached_property
    def room(self) -> Words:
        """What a moved job may take once other jobs have moved, too."""
        room: Words = self.usable & self._beside_ending
        return room

    @cached_property
    def _levels(self) -> Words:
        return np.empty((len(self.movers) + 1, 2, *self.free.shape), dtype=np.uint64)

    def may_fit(self) -> bool:
        """Return whether the area bound admits a plan: enough routers for all movable jobs."""
        if not len(self.large):
            return False
        routers = int(np.bitwise_count(self.usable).sum())
        needed = int(self._needs[self.kinds[self.in_order]].sum())
        return int(self.large[0].prod()) + needed <= routers

    def floor(self, jobs: int) -> int | None:
        """Return a lower bound on the cost of plans that move the jobs of a bit mask.

        The bound is None if one of the jobs cannot be moved at all. Floors are known for jobs that
        did not fit in a subproblem.
        """
        known = [least for job, least in self._floors.items() if jobs >> job & 1]
        least = max(known, default=0)
        return least if least < NEVER else None

    def places(self) -> Family:
        """Return the family of all places, each with the jobs that it overlaps."""
        return Family(self, self.large, self.usable, 0, 0, None)

    def wider(self, subproblem: Subproblem, needed: Sequence[int]) -> Family:
        """Return the family of larger subproblems that follow from an infeasible one.

        One of the jobs in `needed`, which do not fit together, needs a box that overlaps further
        jobs.
        """
        if len(needed) == 1 and needed[0] not in self._floors:
            self._floors[needed[0]] = self._floor_of(needed[0])
        free = self.room.copy()
        fill(free, np.array(subproblem.place), self.side, False)
        shapes = _table(
            sorted({shape for job in needed for shape in self._kind_of[job].extents}), 3
        )
        return Family(self, shapes, free, subproblem.cost, subproblem.jobs, subproblem.place)

    def _floor_of(self, job: int) -> int:
        """Return the least cost of moving a job, with the jobs that its new box overlaps."""
        kind = self.kinds[job]
        shapes = self.shapes[self.first[kind] : self.first[kind + 1]]
        # the first of the cheapest boxes is the present one
        boxes = Family(self, shapes, self.room, 0, 1 << job, None).boxes(None, 2)
        return self.problem.costs[job] + int(boxes[1, 0]) if len(boxes) > 1 else NEVER

    def solve(self, subproblem: Subproblem, most: int) -> PackingResult:
        """Solve a subproblem with at most `most` boxes tried."""
        jobs = [job for job in self.in_order if subproblem.jobs >> job & 1]
        numbers = np.array(jobs, dtype=np.int64)
        place = np.array(subproblem.place, dtype=np.int64)
        outcome, tried, placed, needed = pack(
            self.free, self.jobs, numbers, place, most, self._levels
        )
        if outcome == YES:
            found = {job: Box(*box) for job, box in zip(jobs, placed.tolist())}
            moves = {j: box for j, box in found.items() if box != self.problem.running[j]}
            return PackingResult(self.problem.plan(moves, Box(*subproblem.place)), False, (), tried)
        which = tuple(job for job, is_needed in zip(jobs, needed) if is_needed)
        return PackingResult(None, outcome == OPEN, which, tried)


class Family:
    """Subproblems that move the jobs overlapped by boxes of some shapes, cheapest first."""

    is_family = True

    def __init__(
        self,
        subproblems: Subproblems,  # the problem with its jobs
        shapes: Ints,  # shapes of the boxes, shape (shapes, 3)
        free: Words,  # routers that the boxes may take, rows along Z as bits, shape (X, Y)
        cost: int,  # cost of the jobs that move in any case
        jobs: int,  # bit mask of the jobs that move in any case
        # Box of the large job; without it, the boxes of the family are the places
        place: tuple[int, ...] | None,
    ) -> None:
        self._subproblems = subproblems
        self.shapes = shapes
        self._usable = free
        self._base = cost
        self.jobs = jobs
        self._place = place
        # Whether the family follows from an infeasible subproblem
        self.is_wider = place is not None
        self._after = np.array([-1, -1])
        self._size = 0
        others = [job for job in subproblems.movers if not jobs >> job & 1]
        self._others = np.array(others, dtype=np.int64)
        # Least cost of the remaining subproblems; None if there are no more
        self.cost: int | None = cost
        if self.is_wider:
            costs = subproblems.problem.costs
            self.cost = min((cost + costs[job] for job in others), default=None)

    def cheapest(self, below: int | None, most: int = BATCH) -> list[Subproblem]:
        """Return the next subproblems, and drop those that cost `below` or more.

        The first batch has at most `most` subproblems, each later one four times as many.
        """
        self._size = self._size * 4 or most
        found = self.boxes(below, self._size + 1)
        self.cost = None
        if len(found) > self._size:
            self.cost = self._base + int(found[-1, 0])
            found = found[:-1]
            self._after = found[-1]
        return self._of_boxes(found)

    def boxes(self, below: int | None, most: int) -> Ints:
        """Return costs and numbers of the next boxes; see `cheapest_boxes`."""
        subproblems = self._subproblems
        found: Ints = cheapest_boxes(
            *(self.shapes, subproblems.boxes[self._others], subproblems.costs[self._others]),
            *(self._usable, subproblems.side, subproblems.wrap, self.is_wider, self._after),
            *(NEVER if below is None else below - self._base, most),
        )
        return found

    def _of_boxes(self, chosen: Ints) -> list[Subproblem]:
        """Return the subproblems of boxes from a result of `boxes`."""
        subproblems = self._subproblems
        grid = (len(self.shapes), *subproblems.problem.torus)
        number, x, y, z = np.unravel_index(chosen[:, 1], grid)
        boxes = np.column_stack((x, y, z, self.shapes[number]))
        overlaps = np.empty((len(boxes), len(self._others)), np.bool_)
        mark_overlaps(boxes, subproblems.boxes[self._others], subproblems.sides, overlaps)
        met = np.zeros((len(boxes), len(subproblems.boxes)), np.bool_)
        met[:, self._others] = overlaps
        masks = np.packbits(met, axis=1, bitorder="little")
        found = []
        for box, cost, row in zip(boxes.tolist(), chosen[:, 0].tolist(), masks):
            further = int.from_bytes(row.tobytes(), "little")
            if self._place is None:
                found.append(Subproblem(cost, tuple(box), further))
            else:
                found.append(Subproblem(self._base + cost, self._place, self.jobs | further))
        return found


class _Kind:
    """The extents of a job that may be moved."""

    def __init__(self, extents: tuple[Triple, ...]) -> None:
        self.extents = extents
        self.table = _table(extents, 3)
        self.least = int(self.table.prod(axis=1).min())
        self.order = (-self.least, extents)  # large jobs first


_kind_of = cache(_Kind)  # kinds of equal extents are one object


@lru_cache
def _tables_of(kinds: tuple[_Kind, ...]) -> tuple[Ints, Ints, Ints]:
    """Return `first`, `shapes` and `needs` of some kinds, see `Jobs`; they recur often."""
    tables = [_table((), 3), *[kind.table for kind in kinds]]
    needs = np.array([kind.least for kind in kinds], dtype=np.int64)
    return np.cumsum([*map(len, tables)]), np.concatenate(tables), needs


@cache
def _kinds(
    grid: Grid, links: Triple, most: int | None, nodes_per_router: int
) -> Callable[[int, Triple], _Kind]:
    """Return the function of the kind of a job, by its size and its present extent."""

    @cache
    def kind(size: int, extent: Triple) -> _Kind:
        return _kind_of(extents_of(routers_for(size, nodes_per_router), extent, grid, links, most))

    return kind


def _table(rows: Sequence[Sequence[int]], columns: int) -> Ints:
    """Return boxes or extents as rows of an array; much faster than `numpy.array`."""
    numbers = np.fromiter(chain.from_iterable(rows), np.int64, columns * len(rows))
    return numbers.reshape(-1, columns)
