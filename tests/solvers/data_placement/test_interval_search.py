from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from optsched import Budget, solve
from optsched.models import DataPlacement
from optsched.models.data_placement.fields import LEFT_OUT, Plan
from optsched.models.data_placement.program import latest_start
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.data_placement.interval_search import IntervalSearch, first_plan, is_large
from optsched.solvers.data_placement.intervals import Intervals, cores_for, lower_bound
from optsched.solvers.generic import Outcome
from optsched.solvers.result import Limit, Status
from optsched.testing import check_solver, data_placements

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
    assert lower_bound(problem) <= best <= problem.objective(first_plan(problem))
    for solver in ("interval-search", "cp-sat", "highs"):
        result = solve(problem, solver)
        assert (result.status, result.objective) == (Status.OPTIMAL, best), solver


@settings(max_examples=60, deadline=None)
@given(data_placements(max_jobs=4, max_nodes=3, max_cores=3))
def test_it_agrees_with_the_program(problem):
    one, other = solve(problem, "interval-search"), solve(problem, "cp-sat")
    assert one.status is other.status is Status.OPTIMAL
    assert one.objective == other.objective


@settings(max_examples=10, deadline=None)
@given(data_placements(max_jobs=3, max_nodes=2, max_cores=2))
def test_it_keeps_the_contract_of_a_solver(problem):
    check_solver(IntervalSearch(), problem)


@settings(max_examples=60, deadline=None)
@given(data_placements(max_jobs=5))
def test_plans_survive_their_vectors(problem):
    plan = first_plan(problem)
    assert problem.violations(plan) == []
    intervals = Intervals(problem, 0)
    again = intervals.plan(intervals.vector(plan))
    assert problem.violations(again) == []
    assert problem.objective(again) == problem.objective(plan)
    assert intervals.program.value(intervals.vector(plan)) == problem.objective(plan)


def test_a_claim_that_there_is_no_plan_is_an_error(monkeypatch):
    monkeypatch.setattr(CpSat, "search_model", lambda *_: Outcome(Status.INFEASIBLE))
    problem = DataPlacement([[0, 0, 0]], [2, 2, 2], [5, 5, 5], [-1] * 3, [0] * 3)
    assert problem.objective(first_plan(problem)) > lower_bound(problem)
    result = solve(problem, "interval-search")
    assert result.status is Status.ERROR
    assert "was given one" in result.message


def test_cores_with_holes_are_chosen_from_both_ends_of_time():
    problem = DataPlacement(
        [[8, 20, 0]], [1, 1, 2], [5, 10, 4], [-1] * 3, [0] * 3, reserved=[[5, 10, 0]]
    )
    start, lasting = np.array([0, 0, 8]), np.array([0, 0, 2])
    masks = cores_for(problem, 0, np.arange(3), start, lasting)
    assert masks == {0: 0b001, 1: 0b010, 2: 0b101}


def test_waiting_for_a_file_that_was_left_is_worth_it():
    problem = DataPlacement(
        [[30], [0]], [1], [90], [7], [60], resident=[[0, 7, 60, 0, 0]], kept="next"
    )
    for solver in ("interval-search", "cp-sat", "highs"):
        result = solve(problem, solver)
        assert (result.objective, result.solution.node.tolist()) == (30, [0])
    gone = replace(problem, started=[True, False])
    assert solve(gone, "interval-search").objective == 60
    both = replace(gone, available=[[30], [30]], resident=[[n, 7, 60, 0, 0] for n in (0, 1)])
    assert solve(both, "interval-search").solution.node.tolist() == [1]


@pytest.mark.parametrize(
    ("available", "objective"),
    [
        ([[5, 5, 8], [9, 9, 9]], 9 * 5 + 8 + 6),  # a start in the second of the end evicts
        ([[8, 8, 8], [4, 9, 9]], 9 * 8 + 8),  # one in the same second does not
    ],
)
def test_who_evicts_a_resident_file(available, objective):
    """Node 0 has the file of job 2 until 5 s; job 1 is the heavy one."""
    problem = DataPlacement(
        available,
        processors=[2, 1],
        walltimes=[9, 9],
        files=[-1, 7],
        loads=[0, 6],
        resident=[[0, 7, 6, 0, 5]],
        priorities=[9, 1],
        kept="next",
    )
    assert optimum(problem) == objective
    for solver in ("interval-search", "cp-sat", "highs"):
        result = solve(problem, solver)
        assert (result.status, result.objective) == (Status.OPTIMAL, objective)


def test_a_load_is_waited_for_while_nothing_runs():
    """Job 1 ends at 3 s, its load at 10 s; to wait then would cost three times as much."""
    problem = DataPlacement(
        [[0]], [1, 1], [3, 3], [7, 7], [10, 10], load_weight=3, priorities=[1, 9], kept="next"
    )
    assert optimum(problem) == 30 + 9 * 10
    result = solve(problem, "interval-search")
    assert (result.status, result.objective) == (Status.OPTIMAL, 30 + 9 * 10)
    assert result.solution.start.tolist() == [0, 10]


def test_jobs_that_may_come_between_two_others_count():
    jobs = 40
    problem = DataPlacement([[0] * 4], [1] * jobs, [60] * jobs, [0] * jobs, [9] * jobs)
    assert not is_large(problem)
    assert is_large(replace(problem, kept="next"))


def test_a_hint_is_never_lost():
    problem = DataPlacement([[0], [0]], [1] * 6, [90] * 6, [7] * 6, [60] * 6)
    best = solve(problem, "interval-search").solution
    result = solve(problem, "interval-search", hint=best, budget=Budget(work=1e-6))
    assert result.objective == problem.objective(best)


def test_what_is_too_large_to_be_stated_has_a_plan_and_a_bound():
    jobs = 300
    problem = DataPlacement([[0] * 4] * 8, [2] * jobs, [60] * jobs, [0] * jobs, [9] * jobs)
    result = solve(problem, "interval-search")
    assert (result.status, result.limit) == (Status.FEASIBLE, Limit.MEMORY)
    assert 0 < result.gap < 0.1


def test_the_room_of_holes_counts():
    without = DataPlacement([[90]], [1], [30], [-1], [0])
    hole = DataPlacement([[90]], [1], [30], [-1], [0], reserved=[[30]])
    assert (lower_bound(without), lower_bound(hole)) == (90, 0)


def test_no_job_has_its_file_before_a_node_can_have_it():
    problem = DataPlacement([[0], [40]], [1, 1], [90, 90], [7, 7], [60, 60])
    assert lower_bound(problem) == 60 + 60
    resident = replace(problem, resident=[[1, 7, 60, 10, 50]])
    assert lower_bound(resident) == 40 + 40
    left = replace(problem, resident=[[1, 7, 60, 10, 30]])
    assert lower_bound(left) == 60 + 60
    assert lower_bound(replace(left, kept="next")) == 40 + 40
    weighed = replace(problem, available=[[0], [0]], load_weight=3)
    assert lower_bound(weighed) == 60 + 60 + 2 * 60


@pytest.mark.parametrize("partial", [False, True])
def test_room_is_a_fluid_in_the_order_of_smith(partial):
    """Two jobs on one core: 10 s first, then 20 s; left out, the second would start at 20 s."""
    problem = DataPlacement([[0]], [1, 1], [20, 10], [-1, -1], [0, 0], partial=partial)
    assert lower_bound(problem) == 10
    assert solve(problem, "interval-search").objective == 10
