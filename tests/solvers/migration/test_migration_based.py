"""Algorithm 3 on migrations: feasible plans, and those that are stated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.solvers.migration.rules import find_plan
from optsched.testing import migrations

from . import stated
from .conftest import SWAP, optimum_of, random_state


def test_no_job_makes_room_for_a_victim():
    assert optimum_of(SWAP) == 80
    assert find_plan(SWAP) is None


def as_stated(problem, most):
    plan = find_plan(problem, most)
    wanted = stated.find_plan(problem, most)
    if wanted is None or plan is None:
        assert plan is wanted
    else:
        assert (plan.destinations, plan.place) == wanted
        assert problem.violations(plan) == []


@settings(max_examples=150, deadline=None)
@given(migrations(max_running=8), st.sampled_from([1, 2, 3, 7, 4096]))
def test_the_first_plan_is_the_one_stated(problem, most):
    as_stated(problem, most)


@pytest.mark.parametrize("seed", range(6))
def test_the_first_plan_on_a_busy_torus_is_the_one_stated(seed):
    for most, shapes in ((4096, 4), (40, 2), (5, None)):
        options = {"busy": 0.7, "large": 40, "largest": 4, "shapes": shapes}
        as_stated(random_state(seed, sides=(5, 5, 5), **options), most)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sides", [(6, 6, 6), (2, 64, 3), (2, 3, 64)])
def test_the_first_plan_is_the_one_stated_where_a_victim_has_many_hosts(sides, seed):
    """Those of a job are listed up to `HOSTS`, and a row of routers fills a word."""
    for busy in (0.4, 0.55):
        as_stated(random_state(seed, sides=sides, busy=busy, large=150, largest=3), 500)


@settings(max_examples=60, deadline=None)
@given(migrations(max_running=8))
def test_a_limit_only_leaves_out_plans_that_cost_as_much(problem):
    plan = find_plan(problem)
    if plan is not None:
        cost = problem.objective(plan)
        assert find_plan(problem, below=cost) is None
        assert find_plan(problem, below=cost + 1) == plan
