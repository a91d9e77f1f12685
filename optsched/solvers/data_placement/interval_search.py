"""Exact data placement: intervals on counted cores, by CP-SAT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.presolve import sharing_pairs
from optsched.models.data_placement.solution import Plan
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.data_placement.intervals import Intervals, alike_nodes
from optsched.solvers.data_placement.listing import first_plan
from optsched.solvers.data_placement.room import room_bound
from optsched.solvers.generic import Outcome, Search
from optsched.solvers.result import Budget, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver

LARGEST = 50_000
"""Most pairs of jobs, times nodes that are not alike, that CP-SAT is asked about.

Where files are kept until the next start, jobs that may come between two of one file count as well.
"""


@solvers.register("interval-search")
@dataclass(frozen=True)
class IntervalSearch(Solver):
    """Optional intervals of jobs on nodes whose cores are counted, by CP-SAT.

    Which cores a job holds is chosen afterwards; see `optsched.solvers.data_placement.intervals`
    for why counting is enough. The search begins with `first_plan` and `room_bound`, which are also
    the answer to problems that are too large to be stated.

    Parameters
    ----------
    workers : int
        Threads that search; see `CpSat`.
    """

    workers: int = 1

    models = frozenset({"data-placement"})
    work_unit = CpSat.work_unit
    seconds_per_solve = 5e-3
    seconds_per_work = CpSat.seconds_per_work
    default_work = CpSat.default_work
    requires = CpSat.requires

    def __post_init__(self) -> None:
        CpSat(workers=self.workers)  # refuses what it does not take

    @property
    def threads(self) -> int:
        """The workers: under a work budget they take turns, on a thread each."""
        return self.workers

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import OR-Tools."""
        CpSat().prepare(problem)

    def solve(
        self,
        problem: Problem[Any],
        *,
        budget: Budget,
        hint: Plan | None = None,
        seed: int = 0,
        on_incumbent: OnIncumbent | None = None,
    ) -> Result:
        """Answer `problem` within `budget`; never worse than the feasible plan `hint`."""
        assert isinstance(problem, DataPlacement)
        search = Search(budget, seed, on_incumbent)
        try:
            return self._answer(problem, search, hint, seed)
        except Exception as error:
            if error is search.callback_error:
                raise
            outcome = Outcome(Status.ERROR, message=f"{type(error).__name__}: {error}")
            return search.result(self, outcome, Status.ERROR, seed=seed)

    def _answer(
        self, problem: DataPlacement, search: Search, hint: Plan | None, seed: int
    ) -> Result:
        search.sense = problem.sense
        bound = room_bound(problem)
        best = first_plan(problem)
        if hint is not None:
            best = min(hint, best, key=problem.objective)
        if problem.objective(best) == bound or is_large(problem):
            return self._without_search(problem, search, best, bound, seed)
        intervals = Intervals(problem, bound)
        search.program = intervals.program
        search.start = intervals.vector(best)
        search.found(problem.objective(best), bound)
        solver = CpSat(workers=self.workers)
        outcome = search.checked(solver.search_model(intervals.model, search, intervals.hinted))
        if outcome.x is not None:  # a load time may be longer than it has to be
            outcome = replace(outcome, x=intervals.vector(intervals.plan(outcome.x)))
        if outcome.bound is None or outcome.bound < bound:
            outcome = replace(outcome, bound=bound)
        status, x, proven = search.conclude(outcome)
        plan = None if x is None else intervals.plan(x)
        objective = None if x is None else search.program.value(x)
        return search.result(self, outcome, status, plan, objective, proven, seed=seed)

    def _without_search(
        self, problem: DataPlacement, search: Search, plan: Plan, bound: int, seed: int
    ) -> Result:
        objective = problem.objective(plan)
        search.found(objective, bound)
        status = Status.OPTIMAL if objective == bound else Status.FEASIBLE
        outcome = Outcome(status, limit=Limit.MEMORY)
        return search.result(self, outcome, status, plan, objective, bound, seed=seed)


def is_large(problem: DataPlacement) -> bool:
    """Return whether a problem is too large to be stated for CP-SAT."""
    jobs = len(problem.processors)
    nodes = sum(min(len(group), jobs) for group in alike_nodes(problem))
    between = 2 * jobs * len(sharing_pairs(problem)) if problem.kept == "next" else 0
    return jobs * jobs * nodes + between > LARGEST
