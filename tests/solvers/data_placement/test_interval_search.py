from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from optsched import solve
from optsched.models import DataPlacement
from optsched.models.data_placement.fields import LEFT_OUT, Plan
from optsched.models.data_placement.program import latest_start
from optsched.solvers.data_placement.interval_search import first_plan
from optsched.solvers.data_placement.intervals import cores_for, lower_bound
from optsched.solvers.result import Limit, Status
from optsched.testing import data_placements

TINY = data_placements(max_jobs=3, max_nodes=2, max_cores=2, longest=3)
EXACT = ("interval-search", "cp-sat", "highs")


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
    assert lower_bound(problem) <= best <= problem.objective(first_plan(problem))
    for solver in EXACT:
        result = solve(problem, solver)
        assert (result.status, result.objective) == (Status.OPTIMAL, best), solver


def test_cores_with_holes_are_chosen_from_both_ends_of_time():
    at, free = {"reserved": [[5, 10, 0]]}, [[8, 20, 0]]
    problem = DataPlacement(free, [1, 1, 2], [5, 10, 4], [-1] * 3, [0] * 3, **at)
    masks = cores_for(problem, 0, np.arange(3), np.array([0, 0, 8]), np.array([0, 0, 2]))
    assert masks == {0: 0b001, 1: 0b010, 2: 0b101}


def test_what_is_too_large_to_be_stated_has_a_plan_and_a_bound():
    jobs = 300
    problem = DataPlacement([[0] * 4] * 8, [2] * jobs, [60] * jobs, [0] * jobs, [9] * jobs)
    result = solve(problem, "interval-search")
    assert (result.status, result.limit) == (Status.FEASIBLE, Limit.MEMORY)
    assert 0 < result.gap < 0.1


NO_FILES = {"files": [-1] * 2, "loads": [0] * 2}
LOADED = DataPlacement([[0], [40]], [1, 1], [90, 90], [7, 7], [60, 60])
LEFT = replace(LOADED, resident=[[1, 7, 60, 10, 30]])


@pytest.mark.parametrize(
    ("problem", "bound"),
    [
        (DataPlacement([[90]], [1], [30], [-1], [0]), 90),
        (DataPlacement([[90]], [1], [30], [-1], [0], reserved=[[30]]), 0),  # a hole
        # no job has its file before a node can have it
        (LOADED, 60 + 60),
        (replace(LOADED, resident=[[1, 7, 60, 10, 50]]), 40 + 40),
        (LEFT, 60 + 60),
        (replace(LEFT, kept="next"), 40 + 40),
        (replace(LOADED, available=[[0], [0]], load_weight=3), 60 + 60 + 2 * 60),
        # 10 s first, then 20 s; left out, the second would start at 20 s
        (DataPlacement([[0]], [1, 1], [20, 10], **NO_FILES), 10),
        (DataPlacement([[0]], [1, 1], [20, 10], **NO_FILES, partial=True), 10),
    ],
)
def test_the_bound_by_hand(problem, bound):
    assert lower_bound(problem) == bound
