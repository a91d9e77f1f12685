"""Exact migration by a best-first search over sets of jobs to move.

Generic solvers on a large torus get a restriction of the problem to few movable jobs.
"""

from __future__ import annotations

import heapq
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from optsched.models.migration import Migration
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress
from optsched.solvers.migration.subproblems import PackingResult, Subproblem, Subproblems
from optsched.solvers.result import Budget

PATIENCE = 200
"""Limit of boxes to try in a packing subproblem of the first round."""

FIRST_ROUND = 2000
"""Work limit of the first round."""

DIVING = 4
"""Work limit of the dives for a first plan, as a multiple of that of the first round."""

GROWTH = 8
"""Factor by which limits grow from one round to the next."""


@solvers.register("position-search")
@dataclass(frozen=True)
class PositionSearch(AnytimeSolver):
    """Best-first search over sets of jobs to move, with packing subproblems.

    A *subproblem* is a place of the large job and a set of jobs to move, which includes those that
    overlap the place: is there a packing of these jobs into the routers that become free? If the
    cheapest open subproblem is feasible, its plan is optimal. An infeasible subproblem leads to a
    *family* of larger ones: one of the jobs that do not fit must get a box that overlaps further
    jobs, which then move, too. Subproblems are solved by depth-first search. Those that reach the
    limit are deferred to a round with a larger one, and so are the larger subproblems of the first
    round until there is a plan.

    Work is counted in boxes that depth-first search tries, one more for each subproblem, and in
    shapes whose boxes are enumerated over the torus.

    >>> problem = Migration((4, 1, 1), ["1x1x1@1,0,0"], [1], [60], 3, wrap=(False,) * 3)
    >>> result = PositionSearch().solve(problem, budget=Budget())
    >>> result.objective, problem.describe(result.solution)[0][1]
    (60, 'move job 1 (1) from 1x1x1@1,0,0 to 1x1x1@3,0,0')
    """

    models = frozenset({"migration"})
    work_unit = "boxes tried or shapes looked at"
    seconds_per_solve = 5e-3
    seconds_per_work = 7e-5
    default_work = 2_000

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, and import the package that orders moves."""
        import networkx  # noqa: F401

        line, running = (6, 1, 1), ["1x1x1@1,0,0", "2x1x1@2,0,0"]
        # the large job fits only if both jobs move, so that every kernel is called
        example = Migration(line, running, [1, 2], [1, 1], 3, wrap=(False,) * 3)
        self.solve(example, budget=Budget())

    def search(self, problem: Migration, progress: Progress, hint: Any, seed: int) -> None:
        """Search for a cheaper plan until there is none; `seed` has no effect."""
        if hint is not None:
            progress.offer(hint, problem.objective(hint))
        search = _Search(problem, progress, self.seconds_per_work)
        try:
            search.run()
        finally:
            progress.bound = search.bound()


class _Entry(NamedTuple):
    """An open subproblem or family, ordered by cost, then subproblems first, then by age."""

    cost: int
    is_family: bool
    number: int
    item: Any


class _Search:
    """State of the search: open entries, cheapest first."""

    def __init__(self, problem: Migration, progress: Progress, seconds_per_work: float) -> None:
        self._problem = problem
        self._progress = progress
        self._seconds_per_work = seconds_per_work
        self._subproblems = Subproblems(problem)
        self._asked: set[tuple[tuple[int, ...], int]] = set()
        self._heap: list[_Entry] = []
        self._deferred: list[_Entry] = []
        self._found = 0
        self._patience = PATIENCE
        self._enough: float = FIRST_ROUND
        if self._subproblems.may_fit():
            self._push(self._subproblems.places())

    def bound(self) -> int | None:
        """Return a lower bound of the cost, or None if the problem is infeasible."""
        costs = [self._heap[0].cost] if self._heap else []
        costs += [entry.cost for entry in self._deferred]
        if self._progress.value is not None:
            costs.append(self._progress.value)
        return min(costs, default=None)

    def run(self) -> None:
        """Search until the incumbent is proven, or a limit is reached."""
        while True:
            is_over = not self._heap or not self._may_be_better(self._heap[0])
            if is_over or self._progress.work > self._enough:
                self._deferred = [entry for entry in self._deferred if self._may_be_better(entry)]
                if is_over and not self._deferred:
                    return
                self._begin_round()
            self._progress.check()
            self._step(heapq.heappop(self._heap))

    def _begin_round(self) -> None:
        progress = self._progress
        if progress.value is None and self._patience == PATIENCE:
            for entry in sorted(self._deferred):
                if progress.value is None and progress.work < DIVING * self._enough:
                    self._dive(entry.item)
        for entry in self._deferred:
            heapq.heappush(self._heap, entry)
        self._deferred = []
        progress.prove(self.bound())
        self._patience *= GROWTH
        self._enough = GROWTH * progress.work

    def _dive(self, item: Any) -> None:
        """Solve the cheapest subproblem of each family in turn, to find a first plan."""
        if not item.is_family:
            return
        family = copy(item)  # the subproblems of a dive are still solved in order later
        while self._progress.exhausted() is None:
            self._progress.work += 1 + len(family.shapes)
            cheapest = family.cheapest(self._progress.value, 1)
            if not cheapest:
                return
            result = self._solve(cheapest[0])
            if result.plan is not None or result.is_open:
                return
            family = self._subproblems.wider(cheapest[0], result.needed)
            if family.cost is None:
                return

    def _may_be_better(self, entry: _Entry) -> bool:
        return self._progress.value is None or entry.cost < self._progress.value

    def _push(self, item: Any) -> None:
        floor = self._subproblems.floor(item.jobs)
        if item.cost is None or floor is None:
            return
        self._found += 1
        entry = _Entry(max(item.cost, floor), item.is_family, self._found, item)
        if self._may_be_better(entry):
            heapq.heappush(self._heap, entry)

    def _step(self, entry: _Entry) -> None:
        item, progress = entry.item, self._progress
        progress.work += 1
        floor = self._subproblems.floor(item.jobs)
        if floor is None or entry.cost < floor:
            self._push(item)  # the floor has risen since
        elif not entry.is_family:
            result = self._solve(item)
            if result.is_open:
                self._deferred.append(entry)
            elif result.plan is None:
                self._push(self._subproblems.wider(item, result.needed))
        elif item.is_wider and self._patience == PATIENCE and progress.value is None:
            self._deferred.append(entry)
        else:
            progress.work += len(item.shapes)
            for subproblem in item.cheapest(progress.value):
                if (subproblem.place, subproblem.jobs) not in self._asked:
                    self._asked.add((subproblem.place, subproblem.jobs))
                    self._push(subproblem)
            self._push(item)

    def _solve(self, subproblem: Subproblem) -> PackingResult:
        """Solve a subproblem, and keep its plan if that improves the incumbent."""
        progress = self._progress
        remaining = progress.left(self._seconds_per_work)
        result = self._subproblems.solve(subproblem, int(min(self._patience, max(remaining, 1))))
        progress.work += result.tried
        if result.plan is not None:
            # a job that gets its old box again costs nothing
            cost = self._problem.objective(result.plan)
            if progress.value is None or cost < progress.value:
                progress.solution, progress.value = result.plan, cost
                progress.prove(self.bound())
        return result


def restricted(problem: Migration, places: int) -> Migration:
    """Return the problem with only the jobs movable that overlap the cheapest places.

    `places` is the number of these places of the large job. Plans that move further jobs are
    excluded, so the restricted problem may have a worse optimum, or be infeasible.
    """
    obstacles = 0
    for place in Subproblems(problem).places().cheapest(None, places):
        obstacles |= place.jobs
    movable = tuple(job for job in problem.movers if obstacles >> job & 1)
    return replace(problem, movable=movable)
