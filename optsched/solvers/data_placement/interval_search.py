"""Exact data placement by CP-SAT on interval variables, from initial plans of list scheduling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from optsched.models.data_placement import DataPlacement
from optsched.models.data_placement.fields import LEFT_OUT, NO_FILE, Plan
from optsched.models.data_placement.program import sharing_pairs
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.anytime import AnytimeSolver, Progress, StoppedError
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.data_placement.intervals import (
    Intervals,
    alike_nodes,
    cores_of,
    lower_bound,
    lowest_cores,
)
from optsched.solvers.generic import Search
from optsched.solvers.result import Limit


def first_plan(problem: DataPlacement) -> Plan:
    """Return the best of three list schedules: in queue order, by Smith's rule, and by file.

    Smith's rule orders jobs by increasing work per weight. The third order keeps the jobs of a file
    together. Holes are not used, and neither are files that no job uses any longer.
    """
    work = problem.processors * problem.walltimes / problem.priorities
    files = problem.files
    first_of_file: dict[int, float] = {}
    for file, amount in sorted(zip(files.tolist(), work.tolist())):
        first_of_file.setdefault(file, amount)
    together = np.array([first_of_file[file] for file in files.tolist()])
    orders = (
        np.arange(len(work)),
        np.argsort(work, kind="stable"),
        np.lexsort((work, files, together)),
    )
    return min((_list_schedule(problem, order) for order in orders), key=problem.objective)


def _list_schedule(problem: DataPlacement, order: Iterable[int]) -> Plan:
    free = np.maximum(problem.available, 0)
    soonest = np.sort(free, axis=1)
    weight = problem.load_weight
    in_memory: dict[int, dict[int, tuple[int, int]]] = {}
    for node, file, _, loaded, until in problem.resident.tolist():
        in_memory.setdefault(file, {})[node] = (loaded, until)
    rows = np.full((3, len(problem.processors)), LEFT_OUT)
    rows[1:] = 0
    for job in order:
        size, walltime = int(problem.processors[job]), int(problem.walltimes[job])
        file, load = int(problem.files[job]), int(problem.loads[job])
        start = soonest[:, size - 1]
        cost = start + weight * load
        there = {} if file == NO_FILE else in_memory.setdefault(file, {})
        for node, (loaded, until) in there.items():
            if start[node] <= until:
                cost[node] = start[node] + weight * max(0, loaded - start[node])
        node = int(cost.argmin())
        at = int(start[node])
        if problem.partial and cost[node] > problem.horizon + weight * load:
            continue
        mask = lowest_cores(free[node] <= at, size)
        rows[:, job] = node, at, mask
        free[node, cores_of(mask)] = at + walltime
        soonest[node] = np.sort(free[node])
        loaded, until = there.get(node, (0, LEFT_OUT))
        there[node] = (loaded if at <= until else at + load, max(until, at + walltime))
    return Plan(*rows)


MOST_CELLS = 50_000
"""Largest number of job pairs times distinct nodes in a CP-SAT model.

If files are kept until the next start, jobs between two users of a file count as well.
"""


@solvers.register("interval-search")
@dataclass(frozen=True)
class IntervalSearch(AnytimeSolver):
    """CP-SAT on optional intervals of jobs, with a cumulative constraint for each node.

    Cores are chosen afterwards; `optsched.solvers.data_placement.intervals` explains why their
    number is enough. The search starts from `first_plan` and `lower_bound`, which are also the
    result for problems that are too large for CP-SAT.
    """

    workers: int = 1  # number of search threads; see `CpSat`

    models = frozenset({"data-placement"})
    work_unit = CpSat.work_unit
    seconds_per_solve = 5e-3
    seconds_per_work = CpSat.seconds_per_work
    default_work = CpSat.default_work
    requires = CpSat.requires

    def __post_init__(self) -> None:
        CpSat(workers=self.workers)  # checks the option

    @property
    def threads(self) -> int:
        """Number of workers, each of which has a thread even if workers take turns."""
        return self.workers

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import OR-Tools, and compile the kernels or load them from the cache."""
        CpSat().prepare(problem)
        _compile()

    def search(
        self, problem: DataPlacement, progress: Progress, hint: Plan | None, seed: int
    ) -> None:
        """Search with CP-SAT, unless a list schedule or the hint meets the lower bound."""
        bound, best = lower_bound(problem), first_plan(problem)
        if hint is not None:
            best = min(hint, best, key=problem.objective)
        progress.offer(best, problem.objective(best), bound)
        if progress.is_proven:
            return
        if is_large(problem):
            raise StoppedError(Limit.MEMORY)
        intervals = Intervals(problem, bound)
        search = Search(progress.rest(), seed, progress.follow)
        search.sense, search.program = problem.sense, intervals.program
        search.start = intervals.vector(best)
        search.found(problem.objective(best), bound)
        solver = CpSat(workers=self.workers)
        outcome = search.checked(solver.search_model(intervals.model, search, intervals.hinted))
        progress.work += outcome.work
        if outcome.message:
            raise ArithmeticError(outcome.message)
        if outcome.x is not None:  # load times of CP-SAT may be longer than necessary
            outcome = replace(outcome, x=intervals.vector(intervals.plan(outcome.x)))
        _, x, proven = search.conclude(outcome)
        assert x is not None
        progress.offer(intervals.plan(x), search.program.value(x), proven)
        if outcome.limit is not None:
            raise StoppedError(outcome.limit)


def is_large(problem: DataPlacement) -> bool:
    """Return whether a problem is too large for CP-SAT."""
    jobs = len(problem.processors)
    nodes = sum(min(len(group), jobs) for group in alike_nodes(problem))
    between = 2 * jobs * len(sharing_pairs(problem)) if problem.kept == "next" else 0
    return jobs * jobs * nodes + between > MOST_CELLS


@cache
def _compile() -> None:
    problem = DataPlacement([[0]], [1], [1], [1], [1])
    problem.objective(first_plan(problem))
