"""Row search: optimal, bounded, warm-started, and deterministic."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings

from optsched import Budget
from optsched.models import GangPacking
from optsched.solvers.gang_packing import _row_tree
from optsched.solvers.gang_packing._bounds import FreeColumns, largest_sum, longest_prefix
from optsched.solvers.gang_packing.row_search import RowSearch
from optsched.solvers.result import Limit, Status
from optsched.solvers.solving import solve
from optsched.testing import check_solver, gang_packings

from .conftest import optimum_of, random_matrix

VARIANTS = [
    {"admission": admission, "rerow": rerow}
    for admission in ("fcfs", "skip")
    for rerow in (False, True)
]


def check(result, optimum=None):
    """Check what must hold of every result."""
    assert result.verified
    assert (result.status is Status.OPTIMAL) == (result.objective == result.bound)
    assert (result.limit is None) == (result.status is Status.OPTIMAL)
    if optimum is not None:
        assert result.objective <= optimum <= result.bound


@settings(max_examples=200)
@given(gang_packings(max_running=4, max_waiting=4))
def test_the_answer_is_that_of_brute_force(problem):
    result = solve(problem, "row-search")
    check(result, optimum_of(problem))
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("options", VARIANTS)
def test_larger_ones_agree_with_cp_sat(options):
    problem = random_matrix(1, rows=3, jobs=18, waiting=8, **options)
    result = solve(problem, "row-search")
    check(result)
    other = solve(problem, "cp-sat", budget=Budget(work=5))
    assert other.status is Status.OPTIMAL
    assert result.objective == other.objective


def test_rows_are_rearranged_so_that_a_job_fits(example):
    result = solve(example, "row-search")
    assert (result.status, result.objective) == (Status.OPTIMAL, 81)
    assert solve(example, "first-fit").objective == 45


@example(GangPacking(4, 1, [], [], [2, 2], "skip"))
@given(gang_packings(max_running=4, max_waiting=4))
def test_the_bounds_of_the_root_hold(problem):
    free = FreeColumns(problem)
    best = solve(problem, "row-search").solution
    placed = [row >= 0 for row in best.rows_of_waiting]
    rows = len({*best.rows_of_running, *best.rows_of_waiting} - {-1})
    assert free.fewest_rows <= rows
    most = free.most(rows)
    if problem.admission == "fcfs":
        assert longest_prefix(problem.waiting, most) >= sum(placed)
    else:
        nodes = sum(size for size, there in zip(problem.waiting, placed) if there)
        assert largest_sum(problem.waiting, most, free.per_row(rows)) >= nodes
    by_row = [
        sum(size for size, at in zip(problem.waiting, best.rows_of_waiting) if at == row)
        for row in range(problem.rows)
    ]
    fullest = itertools.accumulate(sorted(by_row, reverse=True)[:rows], initial=0)
    assert all(taken <= room for taken, room in zip(fullest, most, strict=True))


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("most", [0, 10])
def test_a_search_that_outgrows_the_kernel_gives_the_same_answer(options, most, monkeypatch):
    def answers():
        for seed in range(6):
            result = solve(random_matrix(seed, **options), "row-search")
            yield result.solution, result.bound, result.work

    compiled = list(answers())
    monkeypatch.setattr(_row_tree, "MOST_ITEMS", most)
    assert list(answers()) == compiled


@pytest.mark.parametrize("options", VARIANTS)
def test_a_spent_budget_leaves_a_valid_bound(options):
    for seed in range(6):
        problem = random_matrix(seed, **options)
        optimum = solve(problem, "row-search").objective
        for work in (1, 40, 200):
            check(solve(problem, "row-search", budget=Budget(work=work)), optimum)


def test_the_contract_holds_when_the_budget_runs_out():
    hard = random_matrix(11, rows=5, jobs=45, admission="skip", rerow=True)
    optimum = solve(hard, "row-search").objective
    result = check_solver(RowSearch(), hard, optimum=optimum, budget=Budget(work=50))
    assert (result.status, result.limit) == (Status.FEASIBLE, Limit.WORK)


def test_long_queues_need_no_deep_recursion():
    problem = GangPacking(10**4, 3, [], [], [1, 2] * 3000, admission="skip")
    assert solve(problem, "row-search").objective == 4 * 9000 - 1


@pytest.mark.parametrize(
    ("problem", "optimum"),
    [
        (GangPacking(4, 2, [], [], [], rerow=True), 0),
        (GangPacking(4, 1, [0b1111], [0], [4], "skip", True), 8 - 1),
        (GangPacking(4, 3, [0b1], [2], [4], "skip", True), 4 * 5 - 2),
        (GangPacking(4, 3, [0b1, 0b1], [0, 2], [3, 3, 4], "fcfs", True), 4 * 12 - 3),
    ],
)
def test_corner_cases(problem, optimum):
    for name in ("row-search", "cp-sat"):
        result = solve(problem, name)
        assert (result.status, result.objective) == (Status.OPTIMAL, optimum)
