import pytest
from boxes.trying_boxes import boxes_of, cheapest, choices_of, extents_of, holes_of
from hypothesis import given, settings

import optsched
from optsched import load_snapshot
from optsched.boxes.box import Box
from optsched.models import Arrangement, Migration, Reconfiguration, Step
from optsched.testing import brute_force, migrations, reconfigurations

EXAMPLE = load_snapshot("reconfiguration/worked-example")
"""The worked example of the model's page."""


def at(x, length=1):
    return Box(x, 0, 0, length, 1, 1)


BEST = EXAMPLE.arrangement({0: at(2), 1: at(6)}, [at(0, 2), at(3, 2)])


def optimum_of(problem):
    """Try every box for every job, but for what costs more; None if nothing is feasible."""
    choices = choices_of(problem)
    for job, (size, profit) in enumerate(zip(problem.waiting, problem.profits)):
        choices.append([(0, cells) for _, cells in boxes_of(problem, extents_of(problem, size))])
        if job not in problem.required:
            choices[-1].append((problem.worth * profit, frozenset()))
    return cheapest(sorted(choices, key=len), holes_of(problem))


def test_the_worked_example_of_the_page():
    assert EXAMPLE.violations(BEST) == []
    assert EXAMPLE.worth == 1 + 10 + 20 + 30
    assert EXAMPLE.objective(BEST) == 30
    assert EXAMPLE.objective(EXAMPLE.arrangement({0: at(2)}, [at(0, 2), None])) == 10 + 2 * 61
    assert EXAMPLE.describe(BEST) == [
        ("step 1", "move job A (1) from 1x1x1@1,0,0 to 1x1x1@2,0,0"),
        ("step 2", "move job B (1) from 1x1x1@3,0,0 to 1x1x1@6,0,0"),
        ("start", "job L (2) in 2x1x1@0,0,0"),
        ("start", "job D (2) in 2x1x1@3,0,0"),
        ("not started", "-"),
    ]
    assert EXAMPLE.describe()[3:5] == [("waiting", "L (2) D (2)"), ("required", "L (2)")]


@pytest.mark.parametrize(("worth", "optimum"), [(0, 10), (9, 28), (10, 30), (11, 30)])
def test_a_waiting_job_starts_if_it_is_worth_the_moves(worth, optimum):
    # without D, L costs 10; with D, 30: two units of profit outweigh 20 from a worth of 10 on
    problem = Reconfiguration.from_json(EXAMPLE.to_json() | {"worth": worth})
    assert optsched.solve(problem, "highs").objective == optimum == optimum_of(problem)


@settings(max_examples=30, deadline=None)
@given(reconfigurations(max_running=3, max_waiting=2, max_side=2))
def test_every_exact_solver_finds_the_optimum_by_trying_everything(problem):
    optimum = optimum_of(problem)
    for solver in ("highs", "cp-sat"):
        result = optsched.solve(problem, solver)
        assert result.objective == optimum, result.message
        assert str(result.status) == ("infeasible" if optimum is None else "optimal")
    if len(problem.formulate().program.objective) <= 10:
        assert brute_force(problem) == optimum


@settings(max_examples=25, deadline=None)
@given(migrations(max_running=3, max_side=3))
def test_a_migration_is_the_case_of_one_job_that_is_required(problem):
    given_fields = {f.name: getattr(problem, f.name) for f in problem.schema.fields}
    size = given_fields.pop("incoming")
    del given_fields["incoming_job"]
    joint = Reconfiguration(**given_fields, waiting=[size], required=[0])
    one, other = optsched.solve(problem), optsched.solve(joint, "highs")
    assert (one.status, one.objective) == (other.status, other.objective)
    if one.solution is not None:
        plan = Migration.plan(problem, one.solution.destinations, one.solution.place)
        assert joint.violations(Arrangement(plan.steps, (plan.place,))) == []


def test_waiting_jobs_take_the_routers_of_jobs_that_end_and_moved_jobs_do_not():
    """Of B's router, which is free later, the large job may have a part, and A may not."""
    problem = Reconfiguration(
        (6, 1, 1), ["1x1x1@1,0,0"], [1], [10], [3, 1], ending=["1x1x1@3,0,0"], required=[0],
        wrap=(False, False, False), worth=7,
    )  # fmt: skip
    stays = problem.arrangement({}, [at(2, 3), at(0)])
    assert problem.violations(stays) == []
    assert optsched.solve(problem, "highs").objective == 0 == optimum_of(problem)
    away = problem.arrangement({0: at(3)}, [at(0, 3), at(4)])
    [violation] = problem.violations(away)
    assert "meets a job that ends" in violation.detail


A_AWAY, B_AWAY = BEST.steps
L_BOX, D_BOX = BEST.boxes


@pytest.mark.parametrize(
    ("steps", "boxes", "expected"),
    [
        ((A_AWAY,), (L_BOX, D_BOX), ["overlap"]),
        ((A_AWAY, B_AWAY), (L_BOX, at(0, 2)), ["overlap"]),
        ((A_AWAY, B_AWAY), (None, D_BOX), ["required"]),
        ((A_AWAY, B_AWAY), (L_BOX,), ["once"]),
        ((A_AWAY, B_AWAY), (L_BOX, at(6, 2)), ["grid"]),
        ((A_AWAY, B_AWAY), (L_BOX, at(3)), ["shape"]),
        ((A_AWAY, Step(1, None)), (L_BOX, D_BOX), ["parked"]),
        ((A_AWAY, Step(1, at(5))), (L_BOX, None), ["overlap"]),
        ((Step(0, at(1)),), (at(3, 2), None), ["move", "overlap"]),
    ],
)
def test_violations_are_named(steps, boxes, expected):
    found = EXAMPLE.violations(Arrangement(tuple(steps), boxes))
    assert [v.constraint for v in found] == expected


def test_messages_name_running_and_waiting_jobs():
    unnamed = {"running_jobs": None, "waiting_jobs": None}
    plain = Reconfiguration.from_json(EXAMPLE.to_json() | unnamed)
    found = plain.violations(Arrangement((), (at(0, 2), at(0, 2))))
    assert [v.detail for v in found] == [
        "waiting job 1 in 2x1x1@0,0,0 meets job 1",
        "waiting job 2 in 2x1x1@0,0,0 meets waiting job 1",
    ]
    found = EXAMPLE.violations(Arrangement((), (None, at(0, 2))))
    assert [v.detail for v in found] == ["job L is not started", "job D in 2x1x1@0,0,0 meets job A"]


def test_equal_waiting_jobs_are_a_class():
    problem = Reconfiguration((4, 1, 1), [], [], [], [2, 1, 2, 1, 2], required=[4])
    assert problem.alike == ((0, 2), (1, 3), (4,))
    formulation = problem.formulate()
    both = problem.arrangement({}, [None, None, at(0, 2), None, at(2, 2)])
    assert problem.violations(both) == []
    # the first job of the class starts in place of the third
    again = formulation.decode(formulation.encode(both))
    assert again.boxes == (at(0, 2), None, None, None, at(2, 2))
