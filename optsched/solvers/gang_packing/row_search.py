"""Exact gang packing by bounds on free columns and a search for rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optsched.models.gang_packing import NOT_PLACED, GangPacking
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress
from optsched.solvers.gang_packing import _small_tree
from optsched.solvers.gang_packing._subproblems import Subproblems
from optsched.solvers.gang_packing.fit_rules import FirstFit, QuickAnswer, compacted, fitted

TURN = 32
"""Search nodes between two checks of the budget."""


@solvers.register("row-search")
@dataclass(frozen=True)
class RowSearch(AnytimeSolver):
    """Search for a packing with one more job, and then for one with one row fewer.

    The better of first fit and best fit is the first incumbent. Bounds on the free columns of rows
    (`optsched.solvers.gang_packing._bounds.FreeColumns`) limit the jobs that fit and the rows that
    they need, and usually prove the incumbent. Otherwise, a depth-first search decides a sequence
    of subproblems: is there a packing with one more column (``skip``) or one more job (``fcfs``);
    is there one with a row fewer? Each infeasible subproblem gives a bound.

    Work is counted in search nodes.

    >>> from optsched.solvers.result import Budget
    >>> problem = GangPacking(8, 2, [0b1111, 0b110000], [0, 1], waiting=[6], rerow=True)
    >>> result = RowSearch().solve(problem, budget=Budget())
    >>> result.objective, result.solution.rows_of_running, result.solution.rows_of_waiting
    (34, (0, 0), (1,))
    """

    models = frozenset({"gang-packing"})
    seconds_per_solve = 5e-5
    seconds_per_work = 5e-6
    default_work = 1000
    quick_answer = QuickAnswer.PROVEN_FIT

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Compile the kernels of the search, or load them from the cache."""
        _small_tree.prepare()
        FirstFit().prepare(GangPacking(1, 1, [], [], [1], rerow=True))

    def search(self, problem: GangPacking, progress: Progress, hint: Any, seed: int) -> None:
        """Search for a better packing until there is none; `seed` has no effect."""
        rows = compacted(problem)
        found = [problem.packing(rows, fitted(problem, rows, tightest=False))]
        if NOT_PLACED in found[0].rows_of_waiting:
            found.append(problem.packing(rows, fitted(problem, rows, tightest=True)))
        if hint is not None:
            found.append(hint)
        best = found[0] if len(found) == 1 else max(found, key=problem.objective)

        def step() -> None:
            if progress.work % TURN == 0:
                progress.check()
            progress.work += 1

        subproblems = Subproblems(problem, best, step)
        progress.offer(best, problem.objective(best), subproblems.bound())
        try:
            while subproblems.is_open():
                better = subproblems.solve_next()
                if better is not None:
                    progress.offer(better, problem.objective(better), subproblems.bound())
                progress.prove(subproblems.bound())
        finally:
            progress.prove(subproblems.bound())
