"""Boxes at a glance where a simple bound is met, and by CP-SAT where it is not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
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
    """Place directly, which is proven best if it meets the bound on room; else ask CP-SAT.

    Jobs are placed directly twice: as they queue, and the largest first. The better placement is
    the optimum where it meets `room_bound`, in milliseconds. Otherwise CP-SAT begins with it,
    unless the program is too large to be stated.
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
        for anchors in ("all", "corners"):
            example = BoxPlacement((4, 4, 4), ["1x1x1@0,0,0"], [2, 8], anchors=anchors)
            placed = place_directly(example)
            CpSat().solve(example, budget=Budget(work=self.default_work), hint=placed)

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Placement | None = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Answer `problem` within `budget`; never worse than the feasible solution `hint`."""
        assert isinstance(problem, BoxPlacement)
        progress = Progress(budget, on_incumbent)
        known = [place_directly(problem), place_directly(problem, largest_first=True)]
        best = max(known if hint is None else [hint, *known], key=problem.objective)
        objective = problem.objective(best)
        bound, limit = room_bound(problem, _in_best_shapes(problem)), None
        if objective < bound:
            try:
                bound = room_bound(problem, _in_candidates(problem))
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


Room = Iterable[tuple[int, int]]
"""Routers that a job takes at least, and its profit."""


def room_bound(problem: BoxPlacement, jobs: Room) -> int:
    """Return the most profit of jobs that take no more routers together than are free.

    Examples
    --------
    >>> from optsched.models import BoxPlacement
    >>> problem = BoxPlacement((4, 2, 1), ["1x2x1@1,0,0"], [5, 4, 4])
    >>> room_bound(problem, [(6, 5), (4, 4), (4, 4)])
    5
    """
    free = int(np.count_nonzero(problem.free))
    most = np.zeros(free + 1, dtype=np.int64)
    for routers, profit in jobs:
        if routers <= free:
            most[routers:] = np.maximum(most[routers:], most[:-routers] + profit)
    return int(most[-1])


def _in_best_shapes(problem: BoxPlacement) -> Room:
    for size, profit in zip(problem.waiting.tolist(), problem.profits.tolist()):
        for shape in problem.admitted(size)[:1]:  # it leaves the fewest routers idle
            yield shape[0] * shape[1] * shape[2], profit


def _in_candidates(problem: BoxPlacement) -> Room:
    found = problem.candidates
    least: dict[int, int] = {}
    for number, volume in zip(found.class_of.tolist(), found.shapes.prod(axis=1).tolist()):
        least[number] = min(volume, least.get(number, volume))
    for number, volume in least.items():
        for job in found.jobs[number]:
            yield volume, int(problem.profits[job])
