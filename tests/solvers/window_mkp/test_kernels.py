"""The parts of the branch and bound, each against its plain definition."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from optsched.models import WindowMKP
from optsched.solvers.window_mkp._lagrangian.knapsacks import (
    INFEASIBLE,
    conditional_bounds,
    dense_bound,
    knapsack,
    largest_sum,
    tighten,
)
from optsched.solvers.window_mkp._lagrangian.placements import surrogate
from optsched.solvers.window_mkp._lagrangian.tree_search import initial_multipliers, relax
from optsched.solvers.window_mkp._reduction import reduce
from optsched.solvers.window_mkp.branch_and_bound import depth_first

from . import reference
from .conftest import optimum_of, windows

UNIT = 1024


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
    placement = np.empty_like(weights)
    heaviest = np.argsort(-weights, kind="stable")
    bound, profit, _, _ = surrogate(weights, profits, residual, heaviest, allowance, placement)
    assert value_of(small, placement) == profit <= optimum_of(small) <= bound


@given(windows(), st.booleans(), st.integers(0, 3))
def test_the_relaxation_bounds_and_keeps_what_could_be_better(window, ordered, below):
    """Above the cut nothing is lost, neither by the bound nor by the choices that are dropped."""
    weights, profits, residual, small = reduced(window)
    optimum = optimum_of(small)
    cut = max(0, optimum - below)
    domain = np.ones((len(residual) + 1, len(weights)), np.bool_)
    multipliers = initial_multipliers(weights, profits * UNIT, residual)
    best, placement = np.array([-1]), np.full(len(weights), -1)
    promise = np.zeros(domain.shape, np.int64)
    bound, _ = relax(
        domain, multipliers, weights, profits * UNIT, residual, ordered, UNIT, cut * UNIT, 10, 100,
        np.ones(1), best, placement, promise,
    )  # fmt: skip
    found = best[0] // UNIT
    assert found <= optimum
    assert found < 0 or value_of(small, placement) == found
    if optimum > max(cut, found):
        assert bound >= optimum * UNIT
        choices = [np.flatnonzero(domain[:, job]).tolist() for job in range(len(weights))]
        left = [
            tuple(slot if slot < len(residual) else -1 for slot in solution)
            for solution in itertools.product(*choices)
        ]
        values = {small.objective(one) for one in left if not small.violations(one)}
        assert optimum in values
