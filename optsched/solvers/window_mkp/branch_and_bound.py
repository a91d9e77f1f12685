"""Depth-first branch and bound for the window knapsack."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.models.problem import Problem
from optsched.models.window_mkp import WindowMKP
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress
from optsched.solvers.result import Budget
from optsched.solvers.second_process import called_beside

QUICK = 200_000
"""Nodes times jobs of the plain search before the Lagrangian search takes over."""

FEW = 20
"""Number of jobs beyond which the plain search gets fewer nodes."""

DONE = object()


@solvers.register("branch-and-bound")
@dataclass(frozen=True)
class BranchAndBound(AnytimeSolver):
    """Depth-first branch and bound over jobs (Figure 3 of Yang et al. 2014), with stronger bounds.

    A plain search with the surrogate bound solves most windows within microseconds. Otherwise, a
    second search combines five methods. The surrogate knapsack is solved exactly, and its solution
    is split among the slots by subset sums (as in Pisinger's mulknap), which suffices if slots hold
    many jobs. A Lagrangian decomposition into that knapsack and one knapsack per slot is tight if
    slots hold few jobs; variables are fixed by their reduced profits and by dominance between jobs
    and between slots. A destructive bound proceeds in steps, in each of which the columns of all
    slots are enumerated and searched, by branch and bound and slot by slot in turn. The latter
    visits each set of used jobs once. Large neighborhood search improves the incumbent by refilling
    a few slots, by reachable sums or by the same search. If profits are nearly equal, a multiplier
    on the number of jobs tightens the bound.

    The result is reproducible under a work limit. Work is counted in nodes of the plain search; an
    evaluation of the stronger bound counts as the number of nodes that take the same time.

    The reference implementation of the plain search is in ``tests/solvers/window_mkp``.

    X. Yang, Z. Zhou, W. Tang, X. Zheng, J. Wang, Z. Lan, "Balancing job performance with system
    performance via locality-aware scheduling on torus-connected systems", IEEE Cluster 2014.

    D. Pisinger, "An exact algorithm for large multiple knapsack problems", European Journal of
    Operational Research 114, 528-541, 1999.

    A. S. Fukunaga, R. E. Korf, "Bin completion algorithms for multicontainer packing, knapsack, and
    covering problems", Journal of Artificial Intelligence Research 28, 393-429, 2007.

    >>> from optsched.models import WindowMKP
    >>> problem = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    >>> result = BranchAndBound().solve(problem, budget=Budget())
    >>> result.objective, result.solution
    (15, (1, 2, 0, -1, 2))
    """

    models = frozenset({"window-mkp"})
    seconds_per_work = 5e-8

    def search(self, problem: WindowMKP, progress: Progress, hint: Any, seed: int) -> None:
        """Search by the plain search, then by the second; `seed` determines the neighborhoods."""
        from optsched.solvers.window_mkp._depth_first import depth_first
        from optsched.solvers.window_mkp.greedy import greedy

        if hint is None:
            placement = greedy(problem.weights, problem.profits, problem.capacities)
            value = int(problem.profits[placement >= 0].sum())
        else:
            placement, value = np.array(hint, dtype=np.int64), problem.objective(hint)
        nodes = quick_nodes(len(problem.weights), progress.budget.work)
        value, bound, progress.work = depth_first(
            problem.weights, problem.profits, problem.capacities, placement, value, nodes
        )
        progress.offer(tuple(placement.tolist()), value, bound)
        if value < bound:
            progress.check()
            _search_further(problem, placement, progress, seed)

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels that `problem` needs, or load them from the cache.

        The kernels of the Lagrangian search take ten seconds or more to compile, and are skipped
        unless the plain search fails to solve `problem`.
        """
        _prepare_plain_search()
        prepared = _prepare_lagrangian_search.cache_info().currsize > 0
        if problem is not None and not prepared:
            assert isinstance(problem, WindowMKP)
            plain = self.solve(problem, budget=Budget(work=quick_nodes(len(problem.weights))))
            if plain.limit is not None:
                _prepare_lagrangian_search(plain.objective, plain.bound)


def quick_nodes(jobs: int, work: float | None = None) -> int:
    """Return the node limit of the plain search, which falls with the number of jobs."""
    nodes = 1 + QUICK * FEW // (max(1, jobs) * max(jobs, FEW))
    return nodes if work is None else max(1, int(min(nodes, work)))


def _search_further(
    problem: WindowMKP, placement: NDArray[np.int64], progress: Progress, seed: int
) -> None:
    """Continue with the Lagrangian search from a placement, which is overwritten by better ones."""
    from optsched.solvers.window_mkp._lagrangian.cardinality_search import CardinalitySearch

    # a job of size 0 is placed for nothing; rates of profit leave it out
    placement[problem.weights == 0] = 0
    jobs = np.flatnonzero(problem.weights)
    weights, profits = problem.weights[jobs], problem.profits[jobs]
    for array in (weights, profits):
        array.flags.writeable = False  # as those of problems: kernels are compiled for that
    extra = int(problem.profits.sum() - profits.sum())
    progress.solution = tuple(placement.tolist())
    progress.value = int(problem.profits[placement >= 0].sum())
    search = CardinalitySearch(weights, profits, problem.capacities, placement[jobs], seed)
    pieces, before = search.run(), progress.work
    while True:
        search.allowance = progress.left(BranchAndBound.seconds_per_work)
        ended = next(pieces, DONE) is DONE
        progress.work = before + search.work
        if ended:
            return
        placement[jobs] = search.placement
        progress.offer(tuple(placement.tolist()), search.best + extra, search.bound + extra)
        if not progress.is_proven:
            progress.check()


@cache
def _prepare_plain_search() -> None:
    BranchAndBound().solve(WindowMKP(weights=[1, 2], capacities=[2]), budget=Budget())


@cache
def _prepare_lagrangian_search(objective: int, bound: int) -> None:
    """Load the kernels, or compile them; `objective` and `bound` are results of the plain search.

    Two processes compile them if there are two cores.
    """
    from optsched.kernel_cache import NotOnDiskError, only_loading
    from optsched.solvers.window_mkp._lagrangian.first_calls import (
        call_column_search,
        call_other_kernels,
    )

    try:
        with only_loading():
            call_other_kernels()
            call_column_search()
    except NotOnDiskError:
        logging.getLogger("optsched").debug(
            "plain search: objective %s, bound %s; compiling the Lagrangian search",
            f"{objective:,}",
            f"{bound:,}",
        )
        with called_beside(call_column_search):
            call_other_kernels()
        call_column_search()
