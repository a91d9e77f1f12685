"""The exact solver: optimal by brute force, and with a bound where a budget ends it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from optsched import Budget, solve
from optsched.models import ThresholdAllocation
from optsched.models.threshold_allocation import Placement
from optsched.models.threshold_allocation.problem import GOALS
from optsched.solvers.result import Status
from optsched.testing import threshold_allocations


def best_by_trying(problem: ThresholdAllocation) -> int | None:
    """Return the least objective of all placements."""
    counts = [
        np.array(counts)
        for counts in product(range(problem.processors + 1), repeat=problem.nodes)
        if sum(counts) == problem.asked
    ]
    every = (Placement(start, some) for start in problem.starts.tolist() for some in counts)
    return min((problem.objective(p) for p in every if not problem.violations(p)), default=None)


@settings(max_examples=60, deadline=None)
@given(threshold_allocations())
def test_it_is_optimal(problem):
    for goal in GOALS:
        goaled = replace(problem, goal=goal)
        best = best_by_trying(goaled)
        result = solve(goaled)
        expected = Status.INFEASIBLE if best is None else Status.OPTIMAL
        assert (result.solver, result.status) == ("bottleneck-search", expected)
        assert result.objective == result.bound == best


def test_for_the_earliest_start_the_job_loses_least_there():
    held = [[0, 2, 0, 300, 2500], [1, 1, 0, 200, 5000], [2, 3, 0, 500, 500]]
    job = {"asked": 3, "walltime": 100, "demand": [2000]}
    result = solve(ThresholdAllocation(3, 4, [6000], held, **job))
    assert result.objective == 0
    # ties go to nodes of lower number
    assert result.solution.processes.tolist() == [1, 1, 1]
    assert solve(ThresholdAllocation(3, 4, [6000], [], **job)).solution.processes[0] == 3


@pytest.mark.parametrize("goal", GOALS)
def test_a_budget_ends_the_search_with_a_bound(goal):
    """There are many times to start, none of them but the last without loss."""
    held = [[0, 1, at, at + 1, 6000] for at in range(300)]
    problem = ThresholdAllocation(1, 2, [6000], held, 1, 1, [10], goal=goal)
    whole = solve(problem)
    cut = solve(problem, budget=Budget(work=70))
    assert whole.status is Status.OPTIMAL
    assert cut.bound <= whole.objective <= cut.objective
    if goal in ("penalty", "everybody"):
        assert (whole.objective, whole.work, whole.solution.start) == (0, 301, 300)
        assert cut.status is Status.FEASIBLE
        assert cut.limit.value == "work"
        assert solve(problem, budget=Budget(work=70), hint=whole.solution).objective == 0
    tight = ThresholdAllocation(1, 1, [1], held[:250], 1, 1, [1], goal=goal)
    unknown = solve(tight, budget=Budget(work=70))
    assert unknown.status is Status.NO_SOLUTION
    assert solve(tight).solution.start == 250
    assert unknown.bound <= solve(tight).objective


def test_what_is_proven_by_the_time_the_budget_ends_is_optimal():
    # the job starts at 65 s, the first second that two turns do not look at
    held = [[0, 1, at, at + 1, 0] for at in range(65)]
    problem = ThresholdAllocation(1, 1, [1], held, 1, 1, [1], goal="response")
    best = solve(problem).solution
    result = solve(problem, budget=Budget(work=64), hint=best)
    assert (result.status, result.limit, result.bound) == (Status.OPTIMAL, None, 65)
