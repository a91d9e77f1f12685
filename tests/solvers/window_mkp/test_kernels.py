"""The parts of the branch and bound, each against its plain definition or brute force."""

import itertools
import json
import os
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optsched import solve
from optsched.models import WindowMKP
from optsched.solvers.window_mkp._lagrangian import column_search
from optsched.solvers.window_mkp._lagrangian.column_node import TOO_MANY, Columns, list_columns
from optsched.solvers.window_mkp._lagrangian.column_search import MOST_JOBS, ColumnSearch
from optsched.solvers.window_mkp._lagrangian.knapsacks import (
    INFEASIBLE,
    conditional_bounds,
    dense_bound,
    knapsack,
    largest_sum,
    tighten,
)
from optsched.solvers.window_mkp._lagrangian.strategy import DestructiveSearch
from optsched.solvers.window_mkp._lagrangian.tree_search import initial_multipliers, relax
from optsched.solvers.window_mkp._reduction import reduce
from optsched.solvers.window_mkp.branch_and_bound import depth_first

from . import reference
from .conftest import columns_of, optimum_of, windows


@st.composite
def knapsacks(draw):
    size = draw(st.integers(1, 8))
    of_size = {"min_size": size, "max_size": size}
    worth = draw(st.lists(st.integers(-5, 40), **of_size))
    weights = draw(st.lists(st.integers(1, 12), **of_size))
    must = draw(st.lists(st.sampled_from((False, False, False, True)), **of_size))
    return np.array(worth), np.array(weights), draw(st.integers(0, 50)), np.array(must)


def best_choice(worth, weights, capacity, must, forced=None, inside=True):
    """Try every choice; `INFEASIBLE` if there is none."""
    best = INFEASIBLE
    for choice in itertools.product((False, True), repeat=len(worth)):
        chosen = np.array(choice)
        allowed = (chosen | ~must).all() and (forced is None or chosen[forced] == inside)
        if allowed and weights[chosen].sum() <= capacity:
            best = max(best, int(worth[chosen].sum()))
    return best


@given(knapsacks(), st.sampled_from((0, 3)))
def test_the_expanding_core_is_exact_up_to_its_slack(case, slack):
    worth, weights, capacity, must = case
    chosen = np.zeros(len(worth), np.bool_)
    bound, _ = knapsack(worth, weights, capacity, must, slack, chosen)
    best = best_choice(*case)
    if best == INFEASIBLE:
        assert bound == INFEASIBLE
    else:
        assert best <= bound <= best + slack
        assert weights[chosen].sum() <= capacity
        assert (chosen | ~must).all()
        assert worth[chosen].sum() >= best - slack


@given(knapsacks())
def test_bounds_with_a_job_forced_in_or_out_hold(case):
    worth, weights, capacity, must = case
    best = best_choice(*case)
    if best == INFEASIBLE:
        return
    inside, outside = np.zeros((2, len(worth)), np.int64)
    conditional_bounds(worth, weights, capacity, must, best, inside, outside)
    for job in range(len(worth)):
        assert inside[job] >= best_choice(*case, job, inside=True)
        assert outside[job] >= best_choice(*case, job, inside=False)


@given(knapsacks())
def test_the_dense_dynamic_program_is_exact(case):
    worth, weights, capacity, must = case
    nothing = np.zeros_like(must)
    assert dense_bound(worth, weights, capacity) == best_choice(worth, weights, capacity, nothing)


@given(st.lists(st.integers(1, 150), max_size=8), st.integers(0, 300))
def test_the_largest_sum_is_found_among_bits(weights, residual):
    sums = {sum(part) for size in range(9) for part in itertools.combinations(weights, size)}
    free, allowed = np.full(len(weights), -1), np.ones((1, len(weights)), np.bool_)
    found = largest_sum(0, allowed, np.array(weights, dtype=np.int64), free, residual)
    assert found == max(total for total in sums if total <= residual)


@pytest.mark.parametrize(("ordered", "expected"), [(False, [8, 9, 5]), (True, [5, 5, 5])])
def test_what_a_large_slot_can_hold_limits_the_smaller_ones(ordered, expected):
    weights, capacities = np.array([5, 4, 4]), np.array([8, 9, 10])
    allowed = np.array([[True] * 3, [True] * 3, [True, False, False]])
    residual = capacities.copy()
    tighten(allowed, weights, capacities, np.full(3, -1), ordered, residual)
    assert residual.tolist() == expected


def reduced(window):
    """Return the weights, profits and capacities that matter, and their window."""
    _, _, weights, profits, residual, _ = reduce(window.weights, window.profits, window.capacities)
    assume(len(weights))
    return weights, profits, residual, WindowMKP(weights, residual, profits)


def value_of(window, placement):
    """Return the profit of a placement, once it is found to be feasible."""
    assert window.violations(placement.tolist()) == []
    return window.objective(placement.tolist())


@given(windows())
def test_the_reduction_keeps_the_optimum(window):
    jobs, slots, weights, profits, residual, unit = reduce(
        window.weights, window.profits, window.capacities
    )
    assert len(slots) <= len(jobs)
    efficiency = (profits / weights).tolist()
    assert efficiency == sorted(efficiency, reverse=True)
    assert residual.tolist() == sorted(residual.tolist())
    assert unit * optimum_of(WindowMKP(weights, residual, profits)) == optimum_of(window)


@given(windows(jobs=9, slots=4))
def test_the_plain_search_is_as_stated(window):
    arrays = window.weights, window.profits, window.capacities
    placement = np.full(len(window.weights), -1)
    value, bound, _ = depth_first(*arrays, placement, 0, 10**6)
    stated = reference.depth_first(*(array.tolist() for array in arrays))
    assert value == bound == value_of(window, placement) == window.objective(stated)


@given(windows(), st.sampled_from((0, 10**6)))
def test_the_surrogate_bounds_and_its_split_is_feasible(window, allowance):
    weights, profits, residual, small = reduced(window)
    search = DestructiveSearch(weights, profits, residual, np.full_like(weights, -1), 0)
    search.allowance = allowance
    search.surrogate()
    assert value_of(small, search.placement) == search.best <= optimum_of(small) <= search.bound


@given(windows(), st.booleans(), st.integers(0, 3))
def test_the_relaxation_bounds_and_keeps_what_could_be_better(window, ordered, below):
    """Above the cut nothing is lost, neither by the bound nor by the choices that are dropped."""
    weights, profits, residual, small = reduced(window)
    optimum = optimum_of(small)
    cut = max(0, optimum - below)
    domain = np.ones((len(residual) + 1, len(weights)), np.bool_)
    unit = 1024
    multipliers = initial_multipliers(weights, profits * unit, residual)
    best, placement = np.array([-1]), np.full(len(weights), -1)
    promise = np.zeros(domain.shape, np.int64)
    bound, _ = relax(
        domain, multipliers, weights, profits * unit, residual, ordered, unit, cut * unit, 10, 100,
        np.ones(1), best, placement, promise,
    )  # fmt: skip
    found = best[0] // unit
    assert found <= optimum
    assert found < 0 or value_of(small, placement) == found
    if optimum > max(cut, found):
        assert bound >= optimum * unit
        choices = [np.flatnonzero(domain[:, job]).tolist() for job in range(len(weights))]
        left = [
            tuple(slot if slot < len(residual) else -1 for slot in solution)
            for solution in itertools.product(*choices)
        ]
        values = {small.objective(one) for one in left if not small.violations(one)}
        assert optimum in values


UNIT = 16
MOST = 1 << 14


@st.composite
def priced(draw):
    """Draw a window of some jobs and slots, and the arguments of a search with multipliers."""
    window = draw(windows(jobs=6))
    jobs = len(window.weights)
    assume(jobs and len(window.capacities))
    multipliers = UNIT * np.array(draw(st.lists(st.integers(0, 20), min_size=jobs, max_size=jobs)))
    arrays = (window.weights.copy(), window.profits, window.capacities.copy())
    return window, columns_of(*arrays, multipliers, UNIT)


def finish(search, target, cells):
    """Search on until all is decided, always for more than was found."""
    while not search.done:
        search.run(target if search.profit < 0 else search.profit + UNIT, cells)


def check(window, search, optimum):
    placement = search.placement.tolist()
    assert window.violations(placement) == []
    assert UNIT * window.objective(placement) == search.profit == UNIT * optimum


def test_too_many_sets_are_not_listed():
    ones = np.ones(MOST.bit_length() + 1, np.int64)
    window = columns_of(ones, ones, np.array([len(ones)]), 0 * ones, UNIT)
    columns = Columns(*(np.empty(size, np.int64) for size in (100, 101, 100)))
    assert list_columns(**window, target=0, scale=1, columns=columns)[0] == TOO_MANY
    assert not ColumnSearch(**window, target=0, unit=UNIT, most=MOST).listed


@pytest.mark.parametrize("head_start", [column_search.HEAD_START, 0, -1])
@settings(max_examples=40)
@given(priced(), st.integers(0, 3), st.booleans())
def test_the_search_finds_the_optimum_or_shows_that_there_is_none(
    head_start, case, below, in_pieces
):
    window, arguments = case
    optimum = optimum_of(window)
    for aim in (optimum - below, optimum + 1):
        target = UNIT * max(0, aim)
        with patch.object(column_search, "HEAD_START", head_start):
            search = ColumnSearch(**arguments, target=target, unit=UNIT, most=MOST)
        assert search.listed
        finish(search, target, 1 if in_pieces else 10**9)
        search.run(target, 1)  # of no effect when all is done, from the start perhaps
        if aim > optimum:
            assert search.profit == -1
        else:
            check(window, search, optimum)


@settings(max_examples=40)
@given(priced())
def test_a_search_slot_by_slot_alone_finds_the_optimum(case):
    window, arguments = case
    by_slot = ColumnSearch(**arguments, target=0, unit=UNIT, most=MOST).by_slot()
    finish(by_slot, 0, 1)
    check(window, by_slot, optimum_of(window))


@pytest.mark.parametrize("jobs", [MOST_JOBS, MOST_JOBS + 1])
def test_sets_of_few_jobs_are_searched_slot_by_slot(jobs):
    weights = np.full(jobs, 2)
    window = columns_of(
        weights, weights + np.arange(jobs) % 2, np.array([3, 2]), UNIT * weights, UNIT
    )
    by_slot = ColumnSearch(**window, target=0, unit=UNIT, most=MOST).by_slot()
    assert by_slot.possible == (jobs == MOST_JOBS)
    if by_slot.possible:
        finish(by_slot, 0, 10**6)
        assert by_slot.profit == 6 * UNIT


UNFINISHED = """
import json, sys
import numpy as np
from optsched.solvers.window_mkp._lagrangian import knapsacks
from optsched.solvers.window_mkp._lagrangian.column_search import ColumnSearch

knapsacks.CORE = knapsacks.STATES = 1
for arguments, target, optimum in json.load(sys.stdin):
    arrays = {name: np.array(array) for name, array in arguments.items()}
    search = ColumnSearch(**arrays, target=target, unit=16, most=1 << 12)
    while not search.done:
        search.run(target, 0)
        target = max(target, search.profit + 1)
    held = int(arrays["profits"][search.placement >= 0].sum())
    assert (held, search.profit) == (optimum, optimum), (arguments, target)
"""


def test_knapsacks_left_before_their_optimum_leave_the_best_placement():
    rng, cases = np.random.default_rng(1), []
    for _ in range(150):
        weights, profits = rng.integers(1, 30, (2, rng.integers(4, 9)))
        capacities = rng.integers(1, max(2, weights.sum() // 2), rng.integers(2, 4))
        multipliers = (UNIT * profits * rng.uniform(0, 1, len(weights))).astype(np.int64)
        arguments = columns_of(weights, profits, capacities, multipliers, UNIT)
        optimum = UNIT * solve(WindowMKP(weights, capacities, profits), "depth-first").objective
        plain = {name: array.tolist() for name, array in arguments.items()}
        cases.append((plain, max(0, optimum - UNIT * int(rng.integers(0, 6))), optimum))
    # constants are part of a compiled kernel, so the plain Python code runs
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-c", UNFINISHED]
    subprocess.run(command, input=json.dumps(cases), env=environment, text=True, check=True)
