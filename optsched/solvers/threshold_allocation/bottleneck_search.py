"""Exact threshold allocation: the cheapest processes at one time after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.problem import Problem
from optsched.models.threshold_allocation import Placement, ThresholdAllocation
from optsched.models.threshold_allocation.presolve import NEVER, most_penalised
from optsched.models.threshold_allocation.problem import GOALS
from optsched.registry import solvers
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Result
from optsched.solvers.solver import OnIncumbent, Solver
from optsched.solvers.threshold_allocation.posing import posed, starts_in_turn

TURN = 64
"""Times to start between two looks at the clock."""


@solvers.register("bottleneck-search")
@dataclass(frozen=True)
class BottleneckSearch(Solver):
    """At each time, from the earliest on, the best placement by sorting.

    At one time each node is a choice of its own: A_n(k), what the job loses with k processes on
    node n, depends on no other node, and does not fall with k. So at most P is lost by just those
    placements that give each node at most as many processes as have A_n(k) <= P, and the least P is
    the asked-th smallest of all A_n(1), A_n(2), ... The threshold caps the processes of each node
    likewise.

    What k processes add for everybody on a node is a sum of (m + k) max(0, D + k b - c) over
    windows and resources, less what is lost without them. Both factors are convex, do not fall with
    k and are not negative, so their product is convex: each further process costs no less than the
    one before. Hence the asked smallest of all these steps make up a placement, and none is
    cheaper.

    For the earliest start the first time that is within the threshold is the answer, with the least
    P there; the least response ends at the first time that alone is no better than the best found.
    Ties go to the earliest time and to the nodes of lowest number. Work is counted in times.

    Examples
    --------
    >>> held, job = [[0, 2, 0, 300, 2000]], {"asked": 4, "walltime": 100, "demand": [2000]}
    >>> problem = ThresholdAllocation(2, 4, [6000], held, **job, goal="penalty")
    >>> result = BottleneckSearch().solve(problem, budget=Budget())
    >>> result.status.value, result.objective, result.solution
    ('optimal', 0, Placement(start=0, processes=array([1, 3])))
    """

    models = frozenset({"threshold-allocation"})
    work_unit = "times to start"
    seconds_per_work = 2e-5
    default_work = 10_000

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels, or load them where they have been compiled before."""
        _compile()

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Placement | None = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Answer a threshold allocation; nothing is drawn by `seed`."""
        assert isinstance(problem, ThresholdAllocation)
        from optsched.solvers.threshold_allocation._bottleneck import best_placement

        progress = Progress(budget, on_incumbent, problem.sense)
        events, job = posed(problem)
        goal = (GOALS.index(problem.goal), problem.unit, most_penalised(problem))
        solution, objective = hint, NEVER
        if hint is not None:
            objective = problem.objective(hint)
            progress.note(objective, 0)
        work, limit, bound = 0, None, 0
        for starts in _in_turns(problem):
            limit = progress.exhausted(work) if work else None
            if limit is not None:
                bound = min(objective, _least_from(problem, int(starts[0])))
                break
            objective, start, processes, looked_at, done = best_placement(
                events, job, *goal, starts, objective
            )
            work += looked_at
            if start >= 0:
                processes.flags.writeable = False
                solution = Placement(start, processes)
                progress.note(objective, 0)
            if done:
                break
        if limit is None:
            bound = objective
        return progress.result(self.name, solution, objective, bound, limit, work=work, seed=seed)


def _in_turns(problem: ThresholdAllocation) -> Iterator[NDArray[np.int64]]:
    """Yield the times to start in parts between which a budget is looked at."""
    for starts in starts_in_turn(problem):
        for first in range(0, len(starts), TURN):
            yield starts[first : first + TURN]


def _least_from(problem: ThresholdAllocation, start: int) -> int:
    """Return a bound on the objective from a time on."""
    if problem.goal == "start":
        return start
    return start * problem.unit if problem.goal == "response" else 0


@cache
def _compile() -> None:
    problem = ThresholdAllocation(1, 1, [1], [], 1, 1, [1])
    BottleneckSearch().solve(problem, budget=Budget())
