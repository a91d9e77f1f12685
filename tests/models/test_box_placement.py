from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optsched
from optsched import load_snapshot
from optsched.boxes.box import Box, shapes
from optsched.errors import InputError
from optsched.models import BoxPlacement, box_placement
from optsched.models.torus import routers_for
from optsched.solvers.box_placement import place_directly
from optsched.testing import box_placements

EXAMPLE = load_snapshot("box-placement/six-by-four")
"""The worked example of the model's page."""

BEST = (Box(3, 2, 0, 2, 2, 1), Box(2, 0, 0, 2, 1, 1), Box(5, 2, 0, 4, 2, 1))

SLIDING = load_snapshot("box-placement/corners-lose")
"""The page's example of what corners cost."""


def fits(problem, size):
    """Return all free boxes that a job may have, box by box, from the words of the page."""
    grid = problem.grid
    routers = routers_for(size, problem.nodes_per_router)
    ranked, anchors = shapes(routers, grid, problem.links), [*product(*map(range, grid.shape))]
    boxes = (Box(*anchor, *shape) for shape in ranked[: problem.shapes] for anchor in anchors)
    boxes = [box for box in boxes if not grid.mistake(box)]
    free = [box for box in boxes if problem.free[grid.routers_of(box)].all()]
    if problem.anchors == "corners":
        return [box for box in free if not slides(problem, box)] or free
    return free


def slides(problem, box):
    """Return whether a box can move by one along some dimension, one way and the other."""
    grid = problem.grid

    def moves(axis, step):
        anchor = list(box.anchor)
        anchor[axis] += step
        if grid.wrap[axis]:
            anchor[axis] %= grid.shape[axis]
        there = Box(*anchor, *box.extent)
        return not grid.mistake(there) and problem.free[grid.routers_of(there)].all()

    shorter = (axis for axis in range(3) if box.extent[axis] < grid.shape[axis])
    return any(moves(axis, -1) and moves(axis, 1) for axis in shorter)


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
    placed = [("job C (4)", "2x2x1@3,2,0"), ("job E (7)", "4x2x1@5,2,0")]
    described = EXAMPLE.describe((BEST[0], None, BEST[2]))[1:]
    assert described == [*placed, ("not placed", "D (2)")]


@settings(max_examples=100, deadline=None)
@given(box_placements(max_side=3))
def test_candidates_are_the_boxes_that_the_page_admits(problem):
    found = problem.candidates
    for number, jobs in enumerate(found.jobs):
        size = int(problem.waiting[jobs[0]])
        of_class = [c for c in range(len(found.at)) if found.class_of[found.piece(c)] == number]
        assert [found.box(candidate) for candidate in of_class] == fits(problem, size)
    assert sorted(job for jobs in found.jobs for job in jobs) == [*range(len(problem.waiting))]


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
        placed = [p for p, box in zip(problem.profits.tolist(), boxes) if box is not None]
        assert problem.objective(tuple(boxes)) == sum(placed)


def test_equal_jobs_are_one_class_whose_first_jobs_are_placed():
    problem = BoxPlacement((3, 1, 1), ["1x1x1@0,0,0"], [1, 2, 1, 1])
    last = (None, None, Box(1, 0, 0, 1, 1, 1), Box(2, 0, 0, 1, 1, 1))
    assert problem.violations(last) == []
    formulation = problem.formulate()
    first = formulation.decode(formulation.encode(last))
    assert first == (Box(1, 0, 0, 1, 1, 1), None, Box(2, 0, 0, 1, 1, 1), None)
    assert formulation.program.num_variables == 3


def test_what_corners_and_shapes_cost():
    def optimum(problem, **fields):
        return optsched.solve(BoxPlacement.from_json(problem.to_json() | fields), "highs").objective

    assert [optimum(SLIDING, anchors=anchors) for anchors in ("corners", "all")] == [6, 8]
    assert optimum(EXAMPLE, shapes=1) == 6


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


def test_too_large_a_program_is_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr(box_placement, "MOST", 90)
    problem = BoxPlacement((4, 4, 4), [], [1, 2, 3])
    with pytest.raises(InputError, match="boxes of 448 routers; expected at most 90: fewer"):
        assert problem.formulate().program
    assert "448 routers" in problem.describe()[-1][1]
    result = optsched.solve(problem, "highs")
    assert (result.status, "448 routers" in result.message) == ("no-solution", True)
