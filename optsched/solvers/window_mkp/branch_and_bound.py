"""Depth-first branch and bound for the window knapsack."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from optsched.arrays import Ints
from optsched.compilation import cores
from optsched.compiled import kernel
from optsched.models.problem import Problem
from optsched.models.window_mkp import WindowMKP
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress
from optsched.solvers.result import Budget
from optsched.solvers.window_mkp._reduction import EXACT, reduce
from optsched.solvers.window_mkp.greedy import greedy


@kernel(allocates=False)
def dantzig_bound(
    first: int, weights: Ints, profits: Ints, residual: Ints, smallest: Ints, rest: int
) -> int:
    """Bound the profit of jobs ``first, first + 1, ...`` by the surrogate relaxation.

    All slots are merged into one knapsack, whose linear relaxation gives the bound (Dantzig). Slots
    too small for every job, and jobs too large for every slot, are ignored.
    """
    total = 0
    largest = 0
    for capacity in residual:
        if capacity >= smallest[first]:
            total += capacity
            largest = max(largest, capacity)
    bound = 0
    for job in range(first, len(weights)):
        if weights[job] > largest:
            continue
        if weights[job] > total:
            product = float(profits[job]) * float(total)
            if product < EXACT:
                bound += profits[job] * total // weights[job]
            else:
                # margin for the rounding of the products, here and in the order of the jobs
                bound += int(product / weights[job])
                bound += (bound >> 48) + 2
            return min(rest, bound)
        total -= weights[job]
        bound += profits[job]
    return bound


@kernel
def depth_first(
    all_weights: Ints,
    all_profits: Ints,
    all_capacities: Ints,
    placement: Ints,
    value: int,
    limit: int,
) -> tuple[int, int, int]:
    """Search for a placement of more profit than `value`, over at most `limit` nodes.

    Jobs are branched on by decreasing profit per weight. Each job is put into every slot in turn,
    smallest first, and finally not placed. Of slots with equal residual capacity only the first is
    tried, and equal jobs go into slots of nondecreasing number.

    `value` is the profit of `placement`, which has -1 for a job that is not placed, and is
    overwritten by better ones. Returned are its profit, an upper bound, which equals the profit
    when the search is complete, and the number of nodes visited.
    """
    jobs, slots, weights, profits, residual, unit = reduce(all_weights, all_profits, all_capacities)
    n, m = len(jobs), len(slots)
    if n == 0:
        return value, value, 1
    smallest = np.empty(n, np.int64)
    rest = np.zeros(n + 1, np.int64)
    for job in range(n - 1, -1, -1):
        smallest[job] = weights[job]
        if job < n - 1:
            smallest[job] = min(smallest[job], smallest[job + 1])
        rest[job] = rest[job + 1] + profits[job]
    bound = unit * dantzig_bound(0, weights, profits, residual, smallest, rest[0])
    if bound <= value:
        return value, value, 1
    best = value // unit
    chosen = np.empty(n, np.int64)
    nodes = 0
    profit = 0
    job = 0
    entering = True
    while True:
        lowest = 0
        if 0 < job < n and weights[job] == weights[job - 1] and profits[job] == profits[job - 1]:
            lowest = chosen[job - 1]
        slot = lowest
        if entering:
            nodes += 1
            if profit > best:
                best = profit
                value = profit * unit
                for k in range(len(placement)):
                    placement[k] = -1
                for k in range(job):
                    if chosen[k] < m:
                        placement[jobs[k]] = slots[chosen[k]]
                if value == bound:
                    return value, bound, nodes
            if (
                job == n
                or profit + rest[job] <= best
                or (
                    profit + dantzig_bound(job, weights, profits, residual, smallest, rest[job])
                    <= best
                )
            ):
                entering = False
                job -= 1
                continue
            if nodes >= limit:
                return value, bound, nodes
        else:
            if job < 0:
                return value, value, nodes
            slot = chosen[job]
            if slot == m:
                job -= 1
                continue
            residual[slot] += weights[job]
            profit -= profits[job]
            slot += 1
        while slot < m:
            if residual[slot] >= weights[job]:
                twin = lowest
                while residual[twin] != residual[slot]:
                    twin += 1
                if twin == slot:
                    break
            slot += 1
        chosen[job] = slot
        if slot < m:
            residual[slot] -= weights[job]
            profit += profits[job]
        job += 1
        entering = True


PATIENCE = 60.0
"""Seconds to wait for the second process after the end of the block."""


@contextmanager
def called_beside(function: Callable[[], None]) -> Iterator[None]:
    """Call a function of a module in a second process during the block, if there are two cores.

    The kernels that it compiles are on disk after the block. If the process fails, they are
    compiled when they are needed.
    """
    process = None
    if cores() > 1 and sys.executable:
        call = f"from {function.__module__} import {function.__name__} as call; call()"
        command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {call}"]
        nothing = subprocess.DEVNULL
        with suppress(OSError):
            process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        yield
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
    finally:
        if process is not None:
            process.kill()
            process.wait()


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


def _search_further(problem: WindowMKP, placement: Ints, progress: Progress, seed: int) -> None:
    """Continue with the Lagrangian search from a placement, which is overwritten by better ones."""
    from optsched.solvers.window_mkp._lagrangian.strategy import CardinalitySearch

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
    from optsched.solvers.window_mkp._lagrangian.strategy import (
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
