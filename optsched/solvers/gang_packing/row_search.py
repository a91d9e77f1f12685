"""Exact gang packing: bounds on the room of rows, and a search for what they leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optsched.models.gang_packing import NOT_PLACED, GangPacking
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.gang_packing._questions import Questions
from optsched.solvers.gang_packing.placing import compacted, fitted
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Limit, Result
from optsched.solvers.solver import OnIncumbent, Solver

TURN = 32
"""Nodes between two looks at the clock."""


class _StoppedError(Exception):
    """The budget is spent."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self.limit = limit


@solvers.register("row-search")
@dataclass(frozen=True)
class RowSearch(Solver):
    """Ask whether one more job fits, and then whether one row fewer will do.

    The better of first fit and best fit is where it starts. How much room rows can have at all
    (`optsched.solvers.gang_packing._bounds.Room`) bounds what waiting jobs can be placed and how
    few rows hold them, and mostly that is the end. What is left open is asked as questions: do
    running and waiting jobs of one more node (``skip``) or one more job (``fcfs``) go into the
    rows? Does one row fewer hold as much? Each is answered by a depth-first search; a no is a
    bound.

    Work is counted in nodes of these searches.

    Examples
    --------
    >>> problem = GangPacking(8, 2, [0b1111, 0b110000], [0, 1], waiting=[6], rerow=True)
    >>> result = RowSearch().solve(problem, budget=Budget())
    >>> result.objective, result.solution.rows_of_running, result.solution.rows_of_waiting
    (34, (0, 0), (1,))
    """

    models = frozenset({"gang-packing"})
    seconds_per_solve = 5e-5
    seconds_per_work = 5e-6
    default_work = 1000

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Any = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Answer a gang packing; nothing is drawn by `seed`."""
        assert isinstance(problem, GangPacking)
        progress = Progress(budget, on_incumbent)
        rows = compacted(problem)
        found = [problem.packing(rows, fitted(problem, rows, tightest=False))]
        if NOT_PLACED in found[0].rows_of_waiting:
            found.append(problem.packing(rows, fitted(problem, rows, tightest=True)))
        if hint is not None:
            found.append(hint)
        best = max(found, key=problem.objective)
        objective = problem.objective(best)
        nodes = 0

        def step() -> None:
            nonlocal nodes
            limit = progress.exhausted(nodes) if nodes % TURN == 0 else None
            if limit is not None:
                raise _StoppedError(limit)
            nodes += 1

        asked = Questions(problem, best, step)
        progress.note(objective, asked.bound())
        limit: Limit | None = None
        try:
            while asked.is_open():
                better = asked.ask()
                if better is not None:
                    best, objective = better, problem.objective(better)
                    progress.note(objective, asked.bound())
        except _StoppedError as stopped:
            limit = stopped.limit
        bound = asked.bound()
        return progress.result(self.name, best, objective, bound, limit, work=nodes, seed=seed)
