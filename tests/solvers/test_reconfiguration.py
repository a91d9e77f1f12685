"""Waiting jobs one by one: two decisions in turn, and Algorithm 3 over all jobs."""

import pytest
from hypothesis import given, settings

from optsched import load_snapshot, solve
from optsched.boxes.box import Box
from optsched.content import bundled
from optsched.models import Reconfiguration
from optsched.solvers.migration.rules import find_plan
from optsched.solvers.reconfiguration import MigrateThenPlace, MigrationBased, Stage
from optsched.solvers.result import Status
from optsched.testing import reconfigurations

HEURISTICS = [MigrateThenPlace(), MigrateThenPlace("exact"), MigrationBased()]


def reference(name):
    return load_snapshot(bundled("models") / "reconfiguration" / f"{name}.json")


@settings(max_examples=40, deadline=None)
@given(reconfigurations(max_side=3))
def test_answers_are_no_better_than_the_optimum_and_move_jobs_for_required_ones_only(problem):
    best = solve(problem, "highs")
    free = Reconfiguration.from_json(problem.to_json() | {"required": []})
    for solver in HEURISTICS:
        result = solve(problem, solver)
        assert result.status in (Status.FEASIBLE, Status.NO_SOLUTION), result.message
        assert problem.required or result.solution is not None
        if result.solution is not None:
            assert result.objective >= best.objective
            assert problem.violations(result.solution) == []
    for in_turn in HEURISTICS[:2]:
        assert solve(free, in_turn).solution.steps == ()


def test_the_plan_for_the_large_job_alone_may_leave_no_box_for_another():
    problem = reference("same-cost")
    in_turn = solve(problem, "migrate-then-place").solution
    assert problem.cost_of(in_turn.steps) == 50
    assert in_turn.boxes == (Box(3, 0, 0, 4, 1, 1), None)
    both = solve(problem, "migration-based").solution  # at the same cost
    assert problem.cost_of(both.steps) == 50
    assert None not in both.boxes


@pytest.mark.parametrize(("worth", "starts"), [(9, False), (10, False), (11, True)])
def test_algorithm_3_moves_jobs_only_for_a_gain(worth, starts):
    """D is worth twice the worth; admitting it moves B, which costs 20."""
    example = reference("worked-example")
    problem = Reconfiguration.from_json(example.to_json() | {"worth": worth})
    boxes = solve(problem, "migration-based").solution.boxes
    assert (boxes[1] is not None) == starts


def test_a_required_job_is_admitted_at_any_cost():
    example = reference("worked-example")
    problem = Reconfiguration.from_json(example.to_json() | {"worth": 0, "required": [1, 2]})
    assert None not in solve(problem, "migration-based").solution.boxes


def test_later_stages_move_new_jobs_free_of_charge():
    problem = Reconfiguration(
        (5, 1, 1), ["1x1x1@2,0,0"], [1], [60], [1, 3], required=[0, 1], wrap=(False,) * 3
    )
    stage = Stage(problem)
    first = find_plan(stage.migration(0))
    stage.carry_out(0, first)
    assert stage.boxes == {0: Box(2, 0, 0, 1, 1, 1), 1: Box(0, 0, 0, 1, 1, 1)}
    second = stage.migration(1)
    assert (second.sizes, second.costs) == ((1, 1), (60, 0))
    plan = find_plan(second)
    stage.carry_out(1, plan)
    assert stage.migration(1).costs == (0, 0, 0)  # the running job moves in any case
    arrangement = stage.arrangement()
    assert problem.violations(arrangement) == []
    assert problem.objective(arrangement) == 60
