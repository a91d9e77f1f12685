from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings

from optsched import solve
from optsched.models import DataPlacement
from optsched.models.data_placement_plan import LEFT_OUT, Plan
from optsched.models.data_placement_program import latest_start
from optsched.solvers.data_placement.listing import first_plan
from optsched.solvers.data_placement.room import room_bound
from optsched.solvers.result import Status
from optsched.testing import data_placements

TINY = data_placements(max_jobs=3, max_nodes=2, max_cores=2, longest=3)


def optimum(problem: DataPlacement) -> int:
    """Return the least cost of all plans, by verification alone."""
    nodes, cores = problem.available.shape
    jobs = len(problem.processors)
    sizes = problem.processors.tolist()
    rows = np.full((3, jobs), LEFT_OUT)
    rows[1:] = 0
    # jobs that are not tried yet are left out for the moment
    partial = DataPlacement.from_json(problem.to_json() | {"partial": True})
    best = [None]

    def place(job: int, waited: int) -> None:
        if best[0] is not None and waited >= best[0]:
            return
        if job == jobs:
            value = problem.objective(Plan(*rows.copy()))
            best[0] = value if best[0] is None else min(best[0], value)
            return
        weight = int(problem.priorities[job])
        if problem.partial:
            place(job + 1, waited + weight * problem.horizon)
        for start in range(latest_start(problem) + 1):
            for node in range(nodes):
                for some in combinations(range(cores), sizes[job]):
                    rows[:, job] = node, start, sum(1 << core for core in some)
                    if not partial.violations(Plan(*rows.copy())):
                        place(job + 1, waited + weight * start)
        rows[:, job] = LEFT_OUT, 0, 0

    place(0, 0)
    return best[0]


@settings(max_examples=60, deadline=None)
@given(TINY)
def test_solvers_find_the_optimum_of_all_plans(problem):
    best = optimum(problem)
    assert room_bound(problem) <= best <= problem.objective(first_plan(problem))
    for solver in ("interval-search", "cp-sat", "highs"):
        result = solve(problem, solver)
        assert (result.status, result.objective) == (Status.OPTIMAL, best), solver


@settings(max_examples=60, deadline=None)
@given(data_placements(max_jobs=4, max_nodes=3, max_cores=3))
def test_it_agrees_with_the_program(problem):
    one, other = solve(problem, "interval-search"), solve(problem, "cp-sat")
    assert one.status is other.status is Status.OPTIMAL
    assert one.objective == other.objective
