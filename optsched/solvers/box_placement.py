"""Solvers of box placement: directly, job by job with as many contacts as possible, and exactly.

The exact search takes direct placement, the area bound and CP-SAT.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from optsched.arrays import Words
from optsched.boxes._rows import NONE, ONE, ahead, fill, find_anchors, full, lowest, ones, run_of
from optsched.boxes.box import Box, Triple
from optsched.boxes.free_boxes import words_of
from optsched.compiled import kernel
from optsched.errors import InputError
from optsched.models.box_placement import BoxPlacement, Placement
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress, StoppedError
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.result import Budget, Limit
from optsched.solvers.solver import Heuristic

Wrap = tuple[bool, bool, bool]


@kernel
def free_at(words: Words, shape: Triple, side: int, wrap: Wrap) -> Words:
    """Return the anchors of free boxes of a shape; 0 alone in a dimension that the shape fills."""
    sx, sy = words.shape
    nx, ny, nz = shape
    found = np.zeros((sx, sy), dtype=np.uint64)
    room = np.empty((2 * sx, 2 * sy), dtype=np.uint64)
    find_anchors(words, nx, ny, nz, side, wrap, found, room)
    return found


@kernel
def cornered(words: Words, shape: Triple, side: int, wrap: Wrap) -> Words:
    """Return the anchors of free boxes of a shape that cannot slide in any dimension."""
    sx, sy = words.shape
    nx, ny, nz = shape
    stays: Words = free_at(words, shape, side, wrap)
    if not stays.any():
        return stays
    if nx < sx:
        # a face is open if all of its routers are free
        face = free_at(words, (1, ny, nz), side, wrap)
        for x in range(sx):
            if wrap[0] or 0 < x < sx - nx:
                for y in range(sy):
                    stays[x, y] &= ~(face[(x - 1) % sx, y] & face[(x + nx) % sx, y])
    if ny < sy:
        face = free_at(words, (nx, 1, nz), side, wrap)
        for y in range(sy):
            if wrap[1] or 0 < y < sy - ny:
                for x in range(sx):
                    stays[x, y] &= ~(face[x, (y - 1) % sy] & face[x, (y + ny) % sy])
    if nz < side:
        face = free_at(words, (nx, ny, 1), side, wrap)
        for x in range(sx):
            for y in range(sy):
                open_above = ahead(face[x, y], nz, side, wrap[2])
                stays[x, y] &= ~(open_above & behind(face[x, y], side, wrap[2]))
    return stays


@kernel
def behind(word: np.uint64, side: int, ring: bool) -> np.uint64:
    """Return the bits whose lower neighbor is set."""
    over = word >> np.uint64(side - 1) if ring else NONE
    following: np.uint64 = ((word << ONE) | over) & full(side)
    return following


@kernel
def busiest(words: Words, at: Words, shape: Triple, side: int, wrap: Wrap) -> Triple:
    """Return the first of the anchors `at` with the most contacts, x = -1 without anchors."""
    sx, sy = words.shape
    most = -1
    best = (-1, 0, 0)
    for x in range(sx):
        for y in range(sy):
            rest = at[x, y]
            while rest != NONE:
                z = lowest(rest)
                rest &= rest - ONE
                touched = touching(words, (x, y, z), shape, side, wrap)
                if touched > most:
                    most = touched
                    best = (x, y, z)
    return best


@kernel
def touching(words: Words, at: Triple, shape: Triple, side: int, wrap: Wrap) -> int:
    """Return the number of contacts of a box: router faces next to a used router or a border."""
    sx, sy = words.shape
    x, y, z = at
    nx, ny, nz = shape
    row = run_of(z, nz, side)
    count = 0
    if nx < sx:
        for beside in (x - 1, x + nx):
            if not wrap[0] and not 0 <= beside < sx:
                count += ny * nz
                continue
            for j in range(y, y + ny):
                count += ones(row & ~words[beside % sx, j - sy if j >= sy else j])
    if ny < sy:
        for beside in (y - 1, y + ny):
            if not wrap[1] and not 0 <= beside < sy:
                count += nx * nz
                continue
            for i in range(x, x + nx):
                count += ones(row & ~words[i - sx if i >= sx else i, beside % sy])
    if nz < side:
        ends = NONE
        for beside in (z - 1, z + nz):
            if not wrap[2] and not 0 <= beside < side:
                count += nx * ny
            else:
                ends |= ONE << np.uint64(beside % side)
        # both ends may be the same router
        twice = 2 if ends != NONE and nz == side - 1 and wrap[2] else 1
        for i in range(x, x + nx):
            for j in range(y, y + ny):
                held = ~words[i - sx if i >= sx else i, j - sy if j >= sy else j]
                count += twice * ones(ends & held)
    return count


@solvers.register("direct-placement")
@dataclass(frozen=True)
class DirectPlacement(Heuristic):
    """Each waiting job in queue order, into its first shape that is free.

    Algorithm 2 of Li et al. 2015 without bins, see `place_directly`. Work is counted in jobs.

    K. Li, M. Malawski, J. Nabrzyski, "Topology-aware scheduling on Blue Waters with proactive
    queue scanning and migration-based job placement", JSSPP 2015.
    """

    models = frozenset({"box-placement"})
    work_unit = "jobs"
    seconds_per_work = 2e-5

    def place(self, problem: BoxPlacement) -> Placement:
        """Return the placement by Algorithm 2."""
        return place_directly(problem)

    def effort(self, problem: BoxPlacement) -> int:
        """Return the number of waiting jobs."""
        return len(problem.waiting)


def place_directly(problem: BoxPlacement, *, largest_first: bool = False) -> Placement:
    """Place the waiting jobs in the order of the queue, each into its first shape that is free.

    This is Algorithm 2 of Li et al. 2015 without bins: the ranked shapes of a job replace the
    preferred bins. Of the free candidates of a shape, the one with the most contacts is chosen,
    that is router faces next to a used router or a border; of equal ones, the first in row-major
    order. A job that does not fit is skipped. If `largest_first`, jobs are placed by decreasing
    size instead; of equal sizes, in the order of the queue.

    >>> from optsched.models import BoxPlacement
    >>> problem = BoxPlacement((4, 2, 1), running=["1x2x1@1,0,0"], waiting=[2, 5, 4])
    >>> place_directly(problem)
    (Box(x=0, y=0, z=0, nx=1, ny=2, nz=1), None, Box(x=2, y=0, z=0, nx=2, ny=2, nz=1))
    """
    sizes = problem.waiting.tolist()
    order = sorted(range(len(sizes)), key=lambda job: -sizes[job] if largest_first else job)
    anchors = _FreeAnchors(problem)
    placement: list[Box | None] = [None] * len(sizes)
    without: set[int] = set()
    for job in order:
        routers = problem.routers_of(sizes[job])
        if routers <= anchors.free and routers not in without:
            placement[job] = anchors.take(problem.admitted(sizes[job]))
            if placement[job] is None:
                without.add(routers)
    return tuple(placement)


class _FreeAnchors:
    """Free anchors of shapes; a shape that has failed is not tried again."""

    def __init__(self, problem: BoxPlacement) -> None:
        self.side = problem.grid.shape[2]
        self.wrap = problem.grid.wrap
        self.corners = problem.anchors == "corners"
        self.words = words_of(problem.free, problem.grid)
        self.free = int(problem.free.sum())
        self._initial = self.words.copy()
        self._corner_anchors: dict[Triple, Any] = {}
        self._failed: set[tuple[Triple, bool]] = set()

    def take(self, shapes: tuple[Triple, ...]) -> Box | None:
        """Take and return a box of the first shape that is free, or return None."""
        corners = self.corners and any(self._corners(shape) is not None for shape in shapes)
        for shape in shapes:
            if (shape, corners) in self._failed or (corners and self._corners(shape) is None):
                continue
            at = free_at(self.words, shape, self.side, self.wrap)
            if corners:
                at &= self._corners(shape)
            place = busiest(self.words, at, shape, self.side, self.wrap)
            if place[0] >= 0:
                box = Box(*(*place, *shape))
                fill(self.words, np.array(box), self.side, False)
                self.free -= box.volume
                return box
            self._failed.add((shape, corners))
        return None

    def _corners(self, shape: Triple) -> Any:
        """Return the anchors of a shape in corners of the initial state, or None without any.

        The admitted boxes of a job do not depend on jobs placed in this decision.
        """
        if shape not in self._corner_anchors:
            at = cornered(self._initial, shape, self.side, self.wrap)
            self._corner_anchors[shape] = at if at.any() else None
        return self._corner_anchors[shape]


@solvers.register("box-search")
@dataclass(frozen=True)
class BoxSearch(AnytimeSolver):
    """Direct placement, proven optimal by the area bound, or else improved by CP-SAT.

    Jobs are placed directly twice: in the order of the queue, and largest first. The better
    placement is optimal if its profit equals `area_bound`, which takes milliseconds. Otherwise it
    is the hint of CP-SAT, unless the program is too large.
    """

    models = frozenset({"box-placement"})
    work_unit = CpSat.work_unit
    seconds_per_solve = 5e-3
    seconds_per_work = CpSat.seconds_per_work
    default_work = CpSat.default_work
    requires = CpSat.requires

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import OR-Tools, and compile the kernels."""
        CpSat().prepare(problem)
        _solve_examples()

    def search(
        self, problem: BoxPlacement, progress: Progress, hint: Placement | None, seed: int
    ) -> None:
        """Search with CP-SAT, unless a rule or the hint meets a bound of the area."""
        known = [place_directly(problem), place_directly(problem, largest_first=True)]
        best = max(known if hint is None else [hint, *known], key=problem.objective)
        bound = area_bound(problem, _in_best_shapes(problem))
        progress.offer(best, problem.objective(best), bound)
        if not progress.is_proven:
            try:
                progress.prove(area_bound(problem, _in_candidates(problem)))
            except InputError:
                raise StoppedError(Limit.MEMORY) from None
        if not progress.is_proven:
            progress.go_on(CpSat(), problem, seed)


Needs = Iterable[tuple[int, int]]
"""Least routers of a job, and its profit, for each job."""


def area_bound(problem: BoxPlacement, jobs: Needs) -> int:
    """Return the optimum of the knapsack of jobs in all free routers.

    >>> from optsched.models import BoxPlacement
    >>> problem = BoxPlacement((4, 2, 1), ["1x2x1@1,0,0"], [5, 4, 4])
    >>> area_bound(problem, [(6, 5), (4, 4), (4, 4)])
    5
    """
    free = int(np.count_nonzero(problem.free))
    most = np.zeros(free + 1, dtype=np.int64)
    for routers, profit in jobs:
        if routers <= free:
            most[routers:] = np.maximum(most[routers:], most[:-routers] + profit)
    return int(most[-1])


def _in_best_shapes(problem: BoxPlacement) -> Needs:
    for size, profit in zip(problem.waiting.tolist(), problem.profits.tolist()):
        for shape in problem.admitted(size)[:1]:  # the shape with the fewest idle routers
            yield shape[0] * shape[1] * shape[2], profit


def _in_candidates(problem: BoxPlacement) -> Needs:
    found = problem.candidates
    least: dict[int, int] = {}
    for number, volume in zip(found.class_of.tolist(), found.shapes.prod(axis=1).tolist()):
        least[number] = min(volume, least.get(number, volume))
    for number, volume in least.items():
        for job in found.jobs[number]:
            yield volume, int(problem.profits[job])


@cache
def _solve_examples() -> None:
    """Call all kernels, once."""
    for anchors in ("all", "corners"):
        example = BoxPlacement((4, 4, 4), ["1x1x1@0,0,0"], [2, 8], anchors=anchors)
        placed = place_directly(example)
        CpSat().solve(example, budget=Budget(work=CpSat.default_work), hint=placed)
