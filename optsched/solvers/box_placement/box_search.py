"""Exact box placement by direct placement, the area bound and CP-SAT."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.models.box_placement import BoxPlacement, Placement
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.box_placement.direct_placement import place_directly
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Incumbent, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver


@solvers.register("box-search")
@dataclass(frozen=True)
class BoxSearch(Solver):
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

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Placement | None = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Solve `problem` within `budget`, at least as well as the feasible solution `hint`."""
        assert isinstance(problem, BoxPlacement)
        progress = Progress(budget, on_incumbent)
        known = [place_directly(problem), place_directly(problem, largest_first=True)]
        best = max(known if hint is None else [hint, *known], key=problem.objective)
        objective = problem.objective(best)
        bound, limit = area_bound(problem, _in_best_shapes(problem)), None
        if objective < bound:
            try:
                bound = area_bound(problem, _in_candidates(problem))
            except InputError:
                limit = Limit.MEMORY
        if objective == bound or limit is not None:
            progress.note(objective, bound)
            return progress.result(self.name, best, objective, bound, limit, work=0.0, seed=seed)

        def note(found: Incumbent) -> None:
            nearer = bound if found.bound is None else min(bound, round(found.bound))
            progress.note(found.objective, nearer)

        seconds = budget.seconds
        if seconds is not None:
            seconds = max(1e-6, seconds - progress.seconds())
        answer = CpSat().solve(
            problem,
            budget=replace(budget, seconds=seconds),
            hint=best,
            seed=seed,
            on_incumbent=note,
        )
        if answer.objective is not None:
            bound = bound if answer.bound is None else min(bound, round(answer.bound))
            answer = replace(answer, bound=bound)
            if answer.objective == bound:
                answer = replace(answer, status=Status.OPTIMAL, limit=None)
        incumbents, seconds = tuple(progress.incumbents), progress.seconds()
        return replace(answer, solver=self.name, incumbents=incumbents, seconds=seconds)


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
