"""Row search: optimal, bounded, warm-started, and deterministic."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings

from optsched import Budget
from optsched.models import GangPacking
from optsched.solvers.gang_packing import _row_tree
from optsched.solvers.gang_packing.row_search import (
    FreeColumns,
    RowSearch,
    largest_sum,
    longest_prefix,
)
from optsched.solvers.result import Status
from optsched.solvers.solving import solve
from optsched.testing import check_solver, gang_packings

from .conftest import optimum_of, random_matrix

VARIANTS = [
    {"admission": admission, "rerow": rerow}
    for admission in ("fcfs", "skip")
    for rerow in (False, True)
]


@settings(max_examples=200)
@given(gang_packings(max_running=4, max_waiting=4))
def test_the_answer_is_that_of_brute_force(problem):
    result = solve(problem, "row-search")
    assert (result.status, result.objective) == (Status.OPTIMAL, optimum_of(problem))


@pytest.mark.parametrize("options", VARIANTS)
def test_larger_ones_agree_with_cp_sat(options):
    problem = random_matrix(1, rows=3, jobs=18, waiting=8, **options)
    result, other = solve(problem, "row-search"), solve(problem, "cp-sat", budget=Budget(work=5))
    assert result.status is other.status is Status.OPTIMAL
    assert result.objective == other.objective


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
def test_the_contract_holds_when_the_budget_runs_out(options):
    for seed in range(6):
        problem = random_matrix(seed, **options)
        optimum = solve(problem, "row-search").objective
        for work in (1, 40, 200):
            check_solver(RowSearch(), problem, optimum=optimum, budget=Budget(work=work))


def test_long_queues_need_no_deep_recursion():
    problem = GangPacking(10**4, 3, [], [], [1, 2] * 3000, admission="skip")
    assert solve(problem, "row-search").objective == 4 * 9000 - 1
