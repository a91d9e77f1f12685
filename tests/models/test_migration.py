import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import load_snapshot
from optsched.boxes.box import Box
from optsched.models import Migration, Plan, Step

EXAMPLE = load_snapshot("migration/worked-example")
"""The worked example of the model's page."""

BEST = EXAMPLE.plan({1: Box(0, 2, 0, 2, 1, 1), 2: Box(0, 0, 0, 1, 1, 1)}, Box(2, 0, 0, 2, 3, 1))


def line(jobs, costs, routers):
    """Return a line of routers with jobs of one node at some of them."""
    boxes = [Box(at, 0, 0, 1, 1, 1) for at in jobs]
    return Migration((routers, 1, 1), boxes, [1] * len(boxes), costs, 1, wrap=(False,) * 3)


def test_the_worked_example_of_the_page():
    assert EXAMPLE.violations(BEST) == []
    assert EXAMPLE.objective(BEST) == 260
    assert EXAMPLE.describe(BEST) == [
        ("step 1", "move job B (2) from 2x1x1@2,2,0 to 2x1x1@0,2,0"),
        ("step 2", "move job C (1) from 1x1x1@3,0,0 to 1x1x1@0,0,0"),
        ("start", "job L (6) in 2x3x1@2,0,0"),
    ]
    assert EXAMPLE.describe()[1:] == [
        ("running", "3 jobs on 41.7% of 12 routers"),
        ("movable", "3 jobs"),
        ("large job", "6 nodes, shapes: 2"),
        ("program", "53 variables, up to 175 entries"),
    ]


@settings(deadline=None)
@given(st.permutations(range(6)), st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_of_each_circle_the_cheapest_job_is_parked(order, costs):
    problem = line(range(6), costs, 7)
    ends = {job: Box(at, 0, 0, 1, 1, 1) for job, at in enumerate(order) if job != at}
    plan = problem.plan(ends, Box(6, 0, 0, 1, 1, 1))
    assert problem.violations(plan) == []
    assert plan.destinations == ends
    assert problem.objective(plan) == sum(costs[job] for job in ends)
    left, cheapest = set(ends), []
    while left:
        circle = [min(left)]
        while order[circle[-1]] != circle[0]:
            circle.append(order[circle[-1]])
        left -= set(circle)
        cheapest.append(min(circle, key=lambda job: (costs[job], job)))
    assert sorted(job for job, box in plan.steps if box is None) == sorted(cheapest)


def test_moves_wait_for_those_in_their_way():
    problem = line([0, 1, 2], [1, 1, 1], 4)
    plan = problem.plan({job: Box(job + 1, 0, 0, 1, 1, 1) for job in range(3)}, None)
    assert [step.job for step in plan.steps] == [2, 1, 0]
    assert [v.constraint for v in problem.violations(plan)] == ["place"]


def test_a_job_may_move_by_less_than_its_length():
    problem = Migration((4, 1, 1), ["2x1x1@1,0,0"], [2], [5], 2, wrap=(False,) * 3)
    plan = problem.plan({0: Box(0, 0, 0, 2, 1, 1)}, Box(2, 0, 0, 2, 1, 1))
    assert len(plan.steps) == 1
    assert problem.violations(plan) == []


B_AWAY, C_AWAY = BEST.steps
PLACE = BEST.place


@pytest.mark.parametrize(
    ("steps", "place", "expected"),
    [
        ((B_AWAY,), PLACE, ["overlap"]),
        ((B_AWAY, C_AWAY), None, ["place"]),
        ((B_AWAY, C_AWAY), Box(3, 0, 0, 2, 3, 1), ["grid"]),
        ((B_AWAY, C_AWAY), Box(2, 0, 0, 2, 1, 1), ["shape"]),
        ((B_AWAY, C_AWAY, Step(0, None)), PLACE, ["parked"]),
        ((Step(2, None), Step(2, None), B_AWAY, C_AWAY), PLACE, ["once"]),
        ((B_AWAY, C_AWAY, Step(7, None)), PLACE, ["job"]),
        ((B_AWAY, C_AWAY, Step(0, EXAMPLE.running[0])), PLACE, ["move"]),
        ((B_AWAY, Step(2, Box(0, 2, 0, 1, 1, 1))), PLACE, ["overlap"]),
        # B's routers are free when C comes, but not when B comes back
        ((Step(1, None), Step(2, Box(2, 2, 0, 1, 1, 1)), B_AWAY), PLACE, ["overlap"]),
    ],
)
def test_violations_are_named(steps, place, expected):
    assert [v.constraint for v in EXAMPLE.violations(Plan(steps, place))] == expected


def test_what_is_allowed_depends_on_movable_jobs_holes_and_shapes():
    kept = Migration.from_json(EXAMPLE.to_json() | {"movable": [1, 2]})
    assert [str(v) for v in kept.violations(BEST)] == ["movable: job C may not be moved"]
    holed = Migration.from_json(EXAMPLE.to_json() | {"holes": ["1x1x1@0,0,0"]})
    assert [v.detail for v in holed.violations(BEST)] == ["job C in 1x1x1@0,0,0 meets a hole"]
    one = Migration.from_json(EXAMPLE.to_json() | {"shapes": 1})
    assert one.place_extents == ((2, 3, 1),)
    assert one.violations(BEST) == []
    assert one.extents(1) == ((1, 2, 1), (2, 1, 1))  # its present one besides
