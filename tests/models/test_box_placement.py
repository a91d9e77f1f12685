from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import optsched
from optsched.boxes.box import Box, shapes
from optsched.errors import InputError
from optsched.models import BoxPlacement, box_placement
from optsched.models.torus import routers_for
from optsched.solvers.box_placement import place_directly
from optsched.testing import box_placements, brute_force, check_problem

EXAMPLE = BoxPlacement(
    (6, 4, 1),
    running=["3x2x1@4,0,0", "3x1x1@1,1,0"],
    waiting=[4, 2, 7],
    running_jobs=["A", "B"],
    waiting_jobs=["C", "D", "E"],
    wrap=(True, False, True),
)
"""The worked example of the model's page."""

BEST = (Box(3, 2, 0, 2, 2, 1), Box(2, 0, 0, 2, 1, 1), Box(5, 2, 0, 4, 2, 1))

SLIDING = BoxPlacement(
    (5, 4, 1), ["3x1x1@1,1,0"], [2, 6], anchors="corners", wrap=(True, False, True)
)
"""The page's example of what corners cost."""


def changed(**fields):
    """Return the example with other fields, as on file."""
    return EXAMPLE.to_json() | fields


def fits(problem, size):
    """Return all free boxes that a job may have, box by box, from the words of the page."""
    grid = problem.grid
    routers = routers_for(size, problem.nodes_per_router)
    ranked = shapes(routers, grid, problem.links)[: problem.shapes]
    boxes = [
        Box(*anchor, *shape)
        for shape in ranked
        for anchor in product(*map(range, grid.shape))
        if not grid.mistake(Box(*anchor, *shape))
    ]
    free = [box for box in boxes if problem.free[grid.routers_of(box)].all()]
    if problem.anchors == "corners":
        return [box for box in free if not slides(problem, box)] or free
    return free


def slides(problem, box):
    """Return whether a box can move by one along some dimension, one way and the other."""
    grid = problem.grid
    for axis in range(3):
        if box.extent[axis] == grid.shape[axis]:
            continue
        free_beside = 0
        for step in (-1, 1):
            anchor = list(box.anchor)
            anchor[axis] += step
            if grid.wrap[axis]:
                anchor[axis] %= grid.shape[axis]
            there = Box(*anchor, *box.extent)
            moves = not grid.mistake(there) and problem.free[grid.routers_of(there)].all()
            free_beside += bool(moves)
        if free_beside == 2:
            return True
    return False


def apart(grid, boxes):
    placed = [box for box in boxes if box is not None]
    return not any(
        grid.overlap(one, other) for at, one in enumerate(placed) for other in placed[:at]
    )


def test_the_worked_example_of_the_page():
    assert EXAMPLE.violations(BEST) == []
    assert EXAMPLE.objective(BEST) == 13
    assert EXAMPLE.objective(place_directly(EXAMPLE)) == 6
    assert EXAMPLE.describe()[0] == ("torus", "6x4x1, 15 of 24 routers free")
    assert EXAMPLE.describe((BEST[0], None, BEST[2]))[1:] == [
        ("job C (4)", "2x2x1@3,2,0"),
        ("job E (7)", "4x2x1@5,2,0"),
        ("not placed", "D (2)"),
    ]


@settings(max_examples=25, deadline=None)
@given(box_placements(max_waiting=2, max_side=3))
def test_it_keeps_the_contract_of_a_problem(problem):
    check_problem(problem)


@settings(max_examples=100, deadline=None)
@given(box_placements(max_side=3))
def test_candidates_are_the_boxes_that_the_page_admits(problem):
    found = problem.candidates
    for number, jobs in enumerate(found.jobs):
        size = int(problem.waiting[jobs[0]])
        boxes = [
            found.box(candidate)
            for candidate in range(len(found.at))
            if found.class_of[found.piece(candidate)] == number
        ]
        assert boxes == fits(problem, size)
    assert sorted(job for jobs in found.jobs for job in jobs) == [*range(len(problem.waiting))]


@settings(max_examples=60, deadline=None)
@given(box_placements(max_waiting=3, max_side=2))
def test_the_optimum_by_the_words_of_the_page(problem):
    choices = [[None, *fits(problem, size)] for size in problem.waiting.tolist()]
    assume(np.prod([len(boxes) for boxes in choices]) < 3000)
    best = max(
        sum(profit for profit, box in zip(problem.profits.tolist(), boxes) if box is not None)
        for boxes in product(*choices)
        if apart(problem.grid, boxes)
    )
    assert optsched.solve(problem, "highs").objective == best
    if len(problem.formulate().program.objective) <= 10:
        assert brute_force(problem) == best


@settings(max_examples=60, deadline=None)
@given(box_placements(max_side=3), st.data())
def test_every_placement_is_judged_by_the_words_of_the_page(problem, data):
    grid = problem.grid
    some = st.builds(
        Box,
        *(st.integers(0, side - 1) for side in grid.shape),
        *(st.integers(1, side) for side in grid.shape),
    )
    boxes = []
    for size in problem.waiting.tolist():
        admitted = fits(problem, size)
        drawn = st.none() | some | st.sampled_from(admitted) if admitted else st.none() | some
        boxes.append(data.draw(drawn))
    good = apart(grid, boxes) and all(
        box is None or box in fits(problem, size)
        for box, size in zip(boxes, problem.waiting.tolist())
    )
    assert (not problem.violations(tuple(boxes))) == good
    if good:
        formulation = problem.formulate()
        decoded = formulation.decode(formulation.encode(tuple(boxes)))
        assert problem.objective(decoded) == problem.objective(tuple(boxes))


def test_equal_jobs_are_one_class_whose_first_jobs_are_placed():
    problem = BoxPlacement((3, 1, 1), ["1x1x1@0,0,0"], [1, 2, 1, 1])
    last = (None, None, Box(1, 0, 0, 1, 1, 1), Box(2, 0, 0, 1, 1, 1))
    assert problem.violations(last) == []
    formulation = problem.formulate()
    first = formulation.decode(formulation.encode(last))
    assert first == (Box(1, 0, 0, 1, 1, 1), None, Box(2, 0, 0, 1, 1, 1), None)
    assert formulation.program.num_variables == 3


def test_what_corners_and_shapes_cost():
    def optimum(**fields):
        return optsched.solve(BoxPlacement.from_json(SLIDING.to_json() | fields), "highs").objective

    assert (optimum(), optimum(anchors="all"), optimum(anchors="all", shapes=1)) == (6, 8, 8)
    assert optsched.solve(BoxPlacement.from_json(changed(shapes=1)), "highs").objective == 6


@pytest.mark.parametrize(
    ("solution", "expected"),
    [
        (BEST[:2], ["once"]),
        ((BEST[0]._replace(x=6), None, None), ["box"]),
        ((BEST[1], None, None), ["shape"]),
        ((Box(3, 1, 0, 2, 2, 1), None, None), ["free"]),
        ((BEST[0], Box(3, 3, 0, 2, 1, 1), None), ["overlap"]),
        ((Box(0, 1, 0, 2, 2, 1), Box(0, 2, 0, 2, 1, 1), None), ["free", "overlap"]),
    ],
)
def test_violations_are_named(solution, expected):
    assert [violation.constraint for violation in EXAMPLE.violations(solution)] == expected


def test_a_box_that_can_slide_is_no_corner():
    problem = BoxPlacement((8, 1, 1), ["1x1x1@0,0,0"], [2], anchors="corners")
    [violation] = problem.violations((Box(3, 0, 0, 2, 1, 1),))
    assert str(violation) == "anchor: job 1 in 2x1x1@3,0,0 can slide"


def test_too_large_a_program_is_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr(box_placement, "MOST", 90)
    problem = BoxPlacement((4, 4, 4), [], [1, 2, 3])
    with pytest.raises(InputError, match="boxes of 448 routers; expected at most 90: fewer"):
        assert problem.formulate().program
    assert "448 routers" in problem.describe()[-1][1]
    result = optsched.solve(problem, "highs")
    assert (result.status, "448 routers" in result.message) == ("no-solution", True)


@pytest.mark.parametrize(
    ("fields", "mistakes"),
    [
        (
            {"running": ["2x2x1@1,1,0", "1x2x1@2,2,0"], "running_jobs": [17, 4]},
            ["running[1]: job 4 in 1x2x1@2,2,0 overlaps job 17"],
        ),
        (
            {"running": ["2x2x1@5,0,0", "1x1x1@4,3,0"], "holes": ["1x1x1@0,0,0"]},
            ["running[0]: job A in 2x2x1@5,0,0 overlaps a hole"],
        ),
        (
            {"torus": [6, 4], "running": ["2x2x1@9,1,0", 7]},
            [
                "torus: [6, 4]; expected three integers from 1 to 64",
                "running[1]: 7; expected a box such as '2x4x4@3,0,22'",
            ],
        ),
        (
            {"running": ["2x2x1@1,3,0", "1x1x1@0,0,0"], "shapes": 0, "anchors": "corner"},
            [
                "running[0]: '2x2x1@1,3,0'; ends at y = 4; the last is 3",
                "shapes: 0; expected an integer from 1, or null",
                "anchors: 'corner'; expected all or corners",
            ],
        ),
    ],
)
def test_all_mistakes_are_told_at_once(fields, mistakes, mistakes_of):
    assert mistakes_of(BoxPlacement.from_json, changed(**fields)) == mistakes
