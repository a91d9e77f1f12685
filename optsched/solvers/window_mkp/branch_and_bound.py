"""Depth-first branch and bound for the window knapsack."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.problem import Problem
from optsched.models.window_mkp import WindowMKP
from optsched.registry import solvers
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Limit, Result
from optsched.solvers.solver import OnIncumbent, Solver

QUICK = 200_000
"""Nodes times jobs of the plain search before the search with stronger bounds takes over."""

FEW = 20
"""Jobs up to which the plain search closes much; of more it is given that much less."""

DONE = object()


@solvers.register("branch-and-bound")
@dataclass(frozen=True)
class BranchAndBound(Solver):
    """Branch on the jobs, depth first, with bounds (Figure 3 of Yang et al. 2014).

    Most windows are closed by a plain search with the surrogate bound in some microseconds. What it
    leaves open goes to a search with five means more. The surrogate knapsack is solved exactly and
    its solution split by subset sums (as in Pisinger's mulknap), which ends at once where many jobs
    go into a slot. A Lagrangian decomposition between that knapsack and the sets of jobs of each
    slot is tight where few do; it rules out choices by their reduced profit, and dominance between
    jobs and between slots rules out more. In a narrow band below the bound, the sets that each slot
    can still hold are listed and searched. A few slots of the incumbent at a time are filled anew.
    And where profits are nearly alike, a price on each job keeps the bound from promising one job
    too many.

    The answer is the same whenever the budget is work. Work is counted in nodes of the plain
    search; one evaluation of the stronger bound counts as the many nodes that take as long.

    Notes
    -----
    The plain search by itself is stated in `optsched.solvers.window_mkp.statement.depth_first`.

    References
    ----------
    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    D. Pisinger, "An exact algorithm for large multiple knapsack problems", European Journal of
    Operational Research 114, 528-541, 1999.

    A. S. Fukunaga, R. E. Korf, "Bin completion algorithms for multicontainer packing, knapsack, and
    covering problems", Journal of Artificial Intelligence Research 28, 393-429, 2007.

    Examples
    --------
    >>> from optsched.models import WindowMKP
    >>> problem = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    >>> result = BranchAndBound().solve(problem, budget=Budget())
    >>> result.objective, result.solution
    (15, (1, 2, 0, -1, 2))
    """

    models = frozenset({"window-mkp"})
    seconds_per_work = 5e-8

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Answer a window knapsack; `seed` draws the slots that are refilled."""
        from optsched.solvers.window_mkp._depth_first import depth_first
        from optsched.solvers.window_mkp._greedy import greedy

        assert isinstance(problem, WindowMKP)
        progress = Progress(budget, on_incumbent)
        if hint is None:
            placement = greedy(problem.weights, problem.profits, problem.capacities)
            value = int(problem.profits[placement >= 0].sum())
        else:
            placement, value = np.array(hint, dtype=np.int64), problem.objective(hint)
        nodes = quick_nodes(problem)
        if budget.work is not None:
            nodes = max(1, int(min(nodes, budget.work)))
        value, bound, work = depth_first(
            problem.weights, problem.profits, problem.capacities, placement, value, nodes
        )
        progress.note(value, bound)
        limit = None
        if value < bound:
            value, bound, work, limit = _go_on(
                problem, placement, value, bound, work, progress, seed
            )
        solution = tuple(placement.tolist())
        return progress.result(self.name, solution, value, bound, limit, work=work, seed=seed)

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels that are needed, or load them where they have been compiled before.

        Those of the stronger bounds take half a minute to compile: they are left alone unless the
        plain search leaves `problem` open.
        """
        _prepare_plain_search()
        prepared = _prepare_bands.cache_info().currsize > 0
        if problem is not None and not prepared and self._leaves_open(problem):
            _prepare_bands()

    def _leaves_open(self, problem: Problem[Any]) -> bool:
        return self.solve(problem, budget=Budget(work=quick_nodes(problem))).limit is not None


def quick_nodes(problem: Any) -> int:
    """Return how many nodes the plain search may visit: the more jobs, the less they close."""
    jobs = max(1, len(problem.weights))
    return 1 + QUICK * FEW // (jobs * max(jobs, FEW))


def _go_on(
    problem: Any,
    placement: NDArray[np.int64],
    value: int,
    bound: int,
    work: float,
    progress: Progress,
    seed: int,
) -> tuple[int, int, float, Limit | None]:
    """Search on from what the plain search leaves; `placement` is overwritten by a better one.

    Returns
    -------
    value, bound : int
        As `depth_first` returns them.
    work : float
        All work so far.
    limit : Limit or None
        What stopped the search before value and bound met.
    """
    from optsched.solvers.window_mkp._bands.counted_search import CountedSearch

    limit = progress.exhausted(work)
    if limit is not None:
        return value, bound, work, limit
    search = CountedSearch(problem.weights, problem.profits, problem.capacities, placement, seed)
    pieces = search.run()
    while True:
        search.allowance = progress.left(work + search.work, BranchAndBound.seconds_per_work)
        if next(pieces, DONE) is DONE:
            break
        bound = min(bound, search.bound)
        if search.best > value:
            value = search.best
            placement[:] = search.placement
            progress.note(value, bound)
        if value < bound:
            limit = progress.exhausted(work + search.work)
            if limit is not None:
                break
    return value, bound, work + search.work, limit


@cache
def _prepare_plain_search() -> None:
    BranchAndBound().solve(WindowMKP(weights=[1, 2], capacities=[2]), budget=Budget())


@cache
def _prepare_bands() -> None:
    from optsched.solvers.window_mkp._bands.band_search import BandSearch
    from optsched.solvers.window_mkp._reduction import reduce

    small = np.array([7, 6, 5, 4, 3])
    problem = WindowMKP(small, [3, 8, 9])
    reduce(problem.weights, problem.profits, problem.capacities)  # arrays that cannot be written
    BandSearch(small, small + 1, np.array([3, 8, 9]), np.full(5, -1), 0).compile()
