"""The branch and bound of Figure 3 of Yang et al. (2014), in the order of the window."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optsched.models.problem import Problem
from optsched.models.window_mkp import NOT_PLACED, WindowMKP
from optsched.registry import solvers
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Result
from optsched.solvers.solver import OnIncumbent, Solver


@solvers.register("depth-first")
@dataclass(frozen=True)
class DepthFirst(Solver):
    """Depth-first branch and bound in the order of the window (Figure 3 of Yang et al. 2014).

    Jobs are branched on in the order of the queue. Each is put into every slot that can hold it in
    turn, by increasing index, and finally left out. There is no heuristic start, and only a better
    solution replaces another: the result is the first optimal solution of that order. A branch is
    cut off if the surrogate bound (the linear relaxation of one knapsack of all slots) cannot beat
    the incumbent; the search ends when the bound of the whole window is reached, as in the figure.

    It is meant for small windows, for what the paper's algorithm answers where several solutions
    are optimal: run it with ``ties=solver``.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014,
    section III.B.1.

    Examples
    --------
    >>> from optsched.models import WindowMKP
    >>> problem = WindowMKP(weights=[2, 1, 4], capacities=[5, 2])
    >>> DepthFirst().solve(problem, budget=Budget()).solution
    (1, 0, 0)
    """

    models = frozenset({"window-mkp"})
    seconds_per_work = 2e-6
    default_work = 100_000.0

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Solve a window knapsack; `seed` has no effect."""
        assert isinstance(problem, WindowMKP)
        progress = Progress(budget, on_incumbent)
        weights, profits = problem.weights.tolist(), problem.profits.tolist()
        room = problem.capacities.tolist()
        jobs, slots = len(weights), len(room)
        efficient = sorted(range(jobs), key=lambda job: Fraction(-profits[job], weights[job]))

        def bound_from(job: int) -> int:
            """Bound the profit of `job` and the jobs behind it in the room that is left."""
            total, largest, bound = sum(room), max(room, default=0), 0
            for other in efficient:
                if other < job or weights[other] > largest:
                    continue
                if weights[other] > total:
                    return bound + profits[other] * total // weights[other]
                total -= weights[other]
                bound += profits[other]
            return bound

        best = (NOT_PLACED,) * jobs if hint is None else tuple(hint)
        value, bound = problem.objective(best), bound_from(0)
        progress.note(value, bound)
        chosen = [NOT_PLACED] * jobs  # slots by index, then `slots` for a job that is left out
        job, profit, work, limit = 0, 0, 0, None
        while job >= 0 and value < bound:
            if job == jobs or chosen[job] == NOT_PLACED:
                work += 1
                if job == jobs and profit > value:
                    best = tuple(slot if slot < slots else NOT_PLACED for slot in chosen)
                    value = profit
                    progress.note(value, bound)
                if job == jobs or profit + bound_from(job) <= value:
                    job -= 1
                    continue
                limit = progress.exhausted(work)
                if limit is not None:
                    break
            elif chosen[job] < slots:
                room[chosen[job]] += weights[job]
                profit -= profits[job]
            slot = chosen[job] + 1
            while slot < slots and room[slot] < weights[job]:
                slot += 1
            if slot > slots:
                chosen[job] = NOT_PLACED
                job -= 1
                continue
            if slot < slots:
                room[slot] -= weights[job]
                profit += profits[job]
            chosen[job] = slot
            job += 1
        if limit is None:
            bound = value
        return progress.result(self.name, best, value, bound, limit, work=work, seed=seed)
