"""The published rules: compiled as stated, verified, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import registry, solve
from optsched.models import ThresholdAllocation
from optsched.solvers.result import Status
from optsched.testing import check_solver, threshold_allocations

from . import stated

RULES = ("first-fit", "less-consume", "less-consume-threshold")


@settings(max_examples=150, deadline=None)
@given(threshold_allocations(max_nodes=4, max_processors=4, max_held=8))
def test_rules_place_as_stated(problem):
    for rule in RULES:
        expected = stated.by_rule(problem, rule)
        result = solve(problem, rule)
        if expected is None:
            assert result.status is Status.NO_SOLUTION
        else:
            assert result.status is Status.FEASIBLE
            assert (result.solution.start, result.solution.processes.tolist()) == expected


@settings(max_examples=10, deadline=None)
@given(threshold_allocations(max_nodes=2, max_processors=2), st.sampled_from(RULES))
def test_rules_keep_the_contract_of_a_solver(problem, rule):
    check_solver(registry.solvers[rule](), problem)


@settings(max_examples=150, deadline=None)
@given(threshold_allocations(max_nodes=5, max_processors=4, max_held=8))
def test_less_consume_loses_least_at_the_first_time_with_room(problem):
    problem = replace(problem, threshold=None)
    found, first = solve(problem, "less-consume"), solve(problem, "first-fit")
    if found.solution is None:
        assert first.solution is None
        return
    start = found.solution.start
    assert start == first.solution.start
    # there is no room before, so this is the least at that time
    least = solve(replace(problem, goal="penalty", latest=start), "bottleneck-search")
    assert problem.penalised_time(found.solution) == least.objective


@settings(max_examples=300, deadline=None)
@given(threshold_allocations(max_nodes=5, max_processors=4, max_held=8))
def test_where_only_full_nodes_lose_less_consume_is_best_for_everybody(problem):
    demands = np.vstack([problem.held[:, 4:], problem.demand]).max(axis=0)
    enough = np.maximum(problem.capacity, (problem.processors - 1) * demands)
    problem = replace(problem, capacity=enough, threshold=None, goal="everybody")
    found = solve(problem, "less-consume")
    if found.solution is not None:
        best = solve(replace(problem, latest=found.solution.start), "bottleneck-search")
        assert found.objective == best.objective


@settings(max_examples=150, deadline=None)
@given(threshold_allocations(max_nodes=5, max_processors=4, max_held=8))
def test_less_consume_threshold_starts_at_the_first_time_within_the_threshold(problem):
    found = solve(problem, "less-consume-threshold")
    earliest = solve(replace(problem, goal="start"), "bottleneck-search")
    assert (found.solution is None) == (earliest.status is Status.INFEASIBLE)
    if found.solution is not None:
        assert found.solution.start == earliest.objective


@pytest.mark.parametrize("rule", RULES)
def test_the_answer_of_a_rule_counts(rule):
    assert registry.solvers[rule].is_rule


# Three nodes of four processors, 6000 MB/s: on node 0 two processes of 2500 MB/s until 300 s, on
# node 1 one of 5000 until 200 s, node 2 has one free processor.
CLUSTER = {"nodes": 3, "processors": 4, "capacity": [6000]}
HELD = [[0, 2, 0, 300, 2500], [1, 1, 0, 200, 5000], [2, 3, 0, 500, 500]]


def placed(rule: str, **fields):
    job = {"asked": 3, "walltime": 100, "demand": [2000]}
    solution = solve(ThresholdAllocation(**CLUSTER, held=HELD, **(job | fields)), rule).solution
    return solution and (solution.start, solution.processes.tolist())


def test_the_rules_by_hand():
    # losses in units of a 6000th of 100 s: with 1 and 2 processes node 0 loses 1000 and 3000, with
    # 1 to 3 node 1 loses 1000, 3000 and 5000, node 2 nothing
    assert placed("first-fit") == (0, [2, 1, 0])
    # the second processor of node 1 would lose no less than the 3000 of node 0; that of node 2 does
    assert placed("less-consume") == (0, [1, 1, 1])
    assert placed("less-consume-threshold") == (0, [1, 1, 1])


def test_a_threshold_decides_where_moving_ends_and_whether_to_wait():
    assert placed("less-consume-threshold", threshold=1500) == (0, [2, 1, 0])
    assert placed("less-consume-threshold", threshold=1499) == (0, [1, 1, 1])
    # 1000 of 6000 are too much; from 200 s on node 1 is free
    assert placed("less-consume-threshold", threshold=1150) == (200, [0, 3, 0])
    assert placed("less-consume", threshold=1150) is None
    assert placed("first-fit", threshold=1499) is None
    assert placed("less-consume-threshold", threshold=1150, latest=199) is None


def test_a_job_that_can_never_be_within_the_threshold_has_no_answer():
    fields = {"asked": 8, "demand": [3500], "threshold": 1000}
    assert placed("less-consume-threshold", **fields) is None
