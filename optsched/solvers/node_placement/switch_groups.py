"""Exact placement of whole nodes on the fewest leaf switches, by groups of jobs and leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optsched.errors import InputError
from optsched.models.node_placement import NodePlacement, Placements
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.node_placement import _group_pricing
from optsched.solvers.node_placement._effort import Effort, StoppedError
from optsched.solvers.node_placement._pool_search import PoolSearch, window
from optsched.solvers.node_placement._whole_nodes import cells_of, placements, pools
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Limit, Result
from optsched.solvers.solver import OnIncumbent, Solver
from optsched.solvers.window_mkp.branch_and_bound import BranchAndBound


@solvers.register("switch-groups")
@dataclass(frozen=True)
class SwitchGroups(Solver):
    """Most weight, then fewest leaf switches, for jobs of whole nodes.

    Jobs and nodes are parted into pools that have nothing in common, of which each is solved alone.
    The greatest weight is that of a knapsack of all nodes, or of a knapsack with a slot for each
    block or leaf where one of these must hold a job. Then column generation over groups of jobs and
    leaves (`optsched.solvers.node_placement._groups`) finds the fewest switches of all job sets of
    that weight, and proves them.

    Problems in which chunks may share a node, or whose objective is another, are refused.

    Work is counted in iterations of the simplex method and nodes of integer programs.

    Examples
    --------
    Jobs of 2, 2, 3 and 4 nodes, of which leaves have 5 and 6:

    >>> problem = NodePlacement(
    ...     ["cores"], free=[[8]] * 11, chunks=[2, 2, 3, 4], demand=[[8]] * 4,
    ...     then=("switches",), switches=["a"] * 5 + ["b"] * 6)
    >>> result = SwitchGroups().solve(problem, budget=Budget())
    >>> result.status, problem.measures(result.solution)
    (<Status.OPTIMAL: 'optimal'>, {'weight': 4, 'switches': 4, 'nodes': 11})
    """

    models = frozenset({"node-placement"})
    work_unit = "iterations"
    seconds_per_solve = 1e-3
    seconds_per_work = 2e-4
    default_work = 5000
    requires = "highspy"

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import HiGHS, and compile the kernels that `problem` needs, or load them."""
        import highspy  # noqa: F401

        _group_pricing.prepare()
        if isinstance(problem, NodePlacement):
            try:
                found = pools(problem)
            except InputError:  # which `solve` raises
                return
            for pool in found:
                if pool.span != "anywhere":
                    BranchAndBound().prepare(window(pool, problem.radices[0]))

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Placements | None = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Solve a problem of whole nodes.

        Raises
        ------
        InputError
            If the problem is not one of whole nodes, see `pools`.
        """
        assert isinstance(problem, NodePlacement)
        progress = Progress(budget, on_incumbent)
        effort = Effort(budget, progress)
        searches = [
            PoolSearch(pool, problem.radices[0], {} if hint is None else cells_of(pool, hint))
            for pool in pools(problem)
        ]

        def note() -> None:
            progress.note(sum(one.value for one in searches), sum(one.bound for one in searches))

        note()
        limit: Limit | None = None
        try:
            for search in searches:
                search.choose_jobs(effort, seed, self.seconds_per_work)
                note()
            for search in searches:
                for _ in search.cross_fewest(effort, seed):
                    note()
        except StoppedError as stopped:
            limit = stopped.limit
        note()
        value, bound = (sum(getattr(one, of) for one in searches) for of in ("value", "bound"))
        solution = placements(problem, [(one.pool, one.cells) for one in searches])
        return progress.result(
            self.name, solution, value, bound, limit, work=effort.work, seed=seed
        )
