from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import Budget
from optsched.boxes.box import Box
from optsched.errors import InputError
from optsched.models import Migration, Plan, Step
from optsched.solvers.migration.position_search import PositionSearch
from optsched.testing import check_problem, migrations

EXAMPLE = Migration(
    (4, 3, 1),
    ["1x2x1@1,0,0", "2x1x1@2,2,0", "1x1x1@3,0,0"],
    sizes=[2, 2, 1],
    elapsed=[300, 100, 60],
    incoming=6,
    wrap=(False, False, False),
    running_jobs=["A", "B", "C"],
    incoming_job="L",
)
"""The worked example of the model's page."""

BEST = EXAMPLE.plan({1: Box(0, 2, 0, 2, 1, 1), 2: Box(0, 0, 0, 1, 1, 1)}, Box(2, 0, 0, 2, 3, 1))


def changed(**fields):
    """Return the example with other fields, as on file."""
    return EXAMPLE.to_json() | fields


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


@settings(max_examples=10, deadline=None)
@given(migrations(max_running=3, max_side=3))
def test_it_keeps_the_contract_of_a_problem(problem):
    solution = PositionSearch().solve(problem, budget=Budget()).solution
    check_problem(problem, solutions=[] if solution is None else [solution])


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
    kept = Migration.from_json(changed(movable=[1, 2]))
    assert [str(v) for v in kept.violations(BEST)] == ["movable: job C may not be moved"]
    holed = Migration.from_json(changed(holes=["1x1x1@0,0,0"]))
    assert [v.detail for v in holed.violations(BEST)] == ["job C in 1x1x1@0,0,0 meets a hole"]
    one = Migration.from_json(changed(shapes=1))
    assert one.place_extents == ((2, 3, 1),)
    assert one.violations(BEST) == []
    assert one.extents(1) == ((1, 2, 1), (2, 1, 1))  # its present one besides


def test_only_the_large_job_takes_the_routers_of_jobs_that_end():
    # four routers in a line: job 1 moves from the second to the third or not at all, job E ends in
    # the last
    moves = {"running": ["1x1x1@1,0,0"], "ending": ["1x1x1@3,0,0"]}
    problem = Migration((4, 1, 1), **moves, sizes=[1], elapsed=[7], incoming=3, wrap=(False,) * 3)
    behind, last = Box(1, 0, 0, 3, 1, 1), Box(3, 0, 0, 1, 1, 1)
    assert problem.violations(problem.plan({0: Box(0, 0, 0, 1, 1, 1)}, behind)) == []
    taken = problem.violations(problem.plan({0: last}, Box(0, 0, 0, 3, 1, 1)))
    assert [str(one) for one in taken] == ["overlap: job 1 in 1x1x1@3,0,0 meets a job that ends"]
    program = problem.formulate().program
    names = [program.variable_name(v) for v in range(program.num_variables)]
    assert "place_3x1x1_at_1_0_0" in names
    assert "job1_to_1x1x1_at_3_0_0" not in names
    assert ("ending", "1 jobs") in problem.describe()
    assert Migration.from_json(problem.to_json()).ending == (last,)


def test_a_program_that_is_too_large_is_refused():
    running = [f"1x1x1@{x},{y},0" for x in range(20) for y in range(20)]
    problem = Migration((24, 24, 24), running, [1] * 400, [1] * 400, 8000)
    with pytest.raises(InputError, match="movable jobs or fewer shapes make it smaller"):
        assert problem.formulate().program


@pytest.mark.parametrize(
    ("fields", "mistakes"),
    [
        (
            {"running": ["1x2x1@1,0,0", "2x1x1@0,1,0", "1x1x1@3,0,0"]},
            ["running[1]: job B in 2x1x1@0,1,0 overlaps job A"],
        ),
        ({"holes": ["4x1x1@0,2,0"]}, ["running[1]: job B in 2x1x1@2,2,0 overlaps a hole"]),
        (
            {"ending": ["1x1x1@0,0,0", "2x1x1@0,1,0"]},
            ["ending[1]: 2x1x1@0,1,0 overlaps a running job or a hole"],
        ),
        (
            {"sizes": [3, 2, 1]},
            ["sizes[0]: job A of 3 nodes has 2 in 1x2x1@1,0,0 (nodes_per_router: 1)"],
        ),
        (
            {"elapsed": [300, 10**12, 60]},
            ["elapsed[1]: job B costs 2000000000000 node-seconds; expected at most 1000000000000"],
        ),
        (
            {"running": ["1x2x1@1,0,0", "2x1x1@3,2,0", 7], "incoming": 0, "shapes": 0},
            [
                "running[1]: '2x1x1@3,2,0'; ends at x = 4; the last is 3",
                "running[2]: 7; expected a box such as '2x4x4@3,0,22'",
                "shapes: 0; expected an integer from 1 to 1000000000000",
                "incoming: 0; expected an integer from 1 to 262144000000",
            ],
        ),
        (
            {"movable": [0, 4], "sizes": [2, 2]},
            [
                "sizes: 2 values; expected 3, one for each of running",
                "movable[0]: 0; expected a running job from 1 to 3",
                "movable[1]: 4; expected a running job from 1 to 3",
            ],
        ),
    ],
)
def test_all_mistakes_are_told_at_once(fields, mistakes, mistakes_of):
    assert mistakes_of(Migration.from_json, changed(**fields)) == mistakes
