from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import load_snapshot, solve
from optsched.boxes.box import Box
from optsched.boxes.layer_shapes import layer_shape
from optsched.errors import InputError
from optsched.models import PartitionMKP, Place
from optsched.testing import partition_mkps

FIGURE_2 = load_snapshot("partition-mkp/figure-2")

EXAMPLE = PartitionMKP(
    (6, 4, 6), ["4x3x4@4,3,5", "2x1x2@2,2,3"], [33, 12, 5, 8, 3, 7, 100], nodes_per_router=2,
    profits=[40, 12, 5, 8, 3, 7, 100], waiting_jobs=list("ABCDEFG"), holes=["1x1x1@3,0,3"],
)  # fmt: skip
"""Its first bin goes on across the end of each ring."""

GOOD = (Place(0, 0, 0), Place(0, 1, 1), Place(1, 2, 2), None, Place(0, 1, 5), Place(0, 1, 5), None)
"""A has two layers; B leads the third, and a shelf in it; E is on the other shelf, that of F."""


def placed(*changes):
    """Return the good solution with other places: (job, place) each."""
    places = list(GOOD)
    for job, place in changes:
        places[job] = place
    return tuple(places)


def test_figure_2_six_routers_in_layers_of_four_and_of_three():
    assert [FIGURE_2.idle(0, number) for number in (0, 1)] == [2, 0]
    wasteful = (Place(0, 0, 0),)
    assert FIGURE_2.violations(wasteful) == []
    assert FIGURE_2.boxes(wasteful) == (Box(0, 0, 0, 4, 2, 1),)


def test_the_example_of_layers_and_shelves():
    assert EXAMPLE.violations(GOOD) == []
    assert EXAMPLE.objective(GOOD) == 40 + 12 + 5 + 3 + 7
    assert EXAMPLE.routers == (17, 6, 3, 4, 2, 4, 50)
    assert EXAMPLE.describe(GOOD) == [
        ("torus", "6x4x6 routers, nodes on each: 2"),
        (
            "bin 1: 4x3x4@4,3,5",
            "A (33) 4x2x4@4,3,5, B (12) 3x1x2@4,1,5, E (3) 2x1x1@4,1,1, F (7) 2x1x2@0,1,1",
        ),
        ("bin 2: 2x1x2@2,2,3", "C (5) 2x1x2@2,2,3"),
        ("not placed", "D (8) G (100)"),
    ]
    assert EXAMPLE.describe()[1] == ("bins", "4x3x4@4,3,5 2x1x2@2,2,3")


def groupings(items):
    """Yield all partitions of a list into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for groups in groupings(rest):
        yield [[first], *groups]
        for place in range(len(groups)):
            yield [*groups[:place], [first, *groups[place]], *groups[place + 1 :]]


def holds(extent, shapes):
    """Return whether whole layers, and layers of shelves of rectangles, take no more than B."""
    if None in shapes:
        return False
    width, depth, height = extent
    whole = sum(shape[1] for shape in shapes if shape[1] > 1)
    for shelves in groupings([shape for shape in shapes if shape[1] == 1]):
        if all(sum(shape[0] for shape in shelf) <= width for shelf in shelves):
            heights = [max(shape[2] for shape in shelf) for shelf in shelves]
            for layers in groupings(heights):
                if whole + len(layers) <= depth and all(sum(layer) <= height for layer in layers):
                    return True
    return False


@settings(max_examples=60, deadline=None)
@given(partition_mkps(max_jobs=5))
def test_the_optimum_by_all_ways_to_fill_the_bins(problem):
    """No leaders here: jobs on shelves and shelves in layers in every way."""
    best = 0
    for homes in product(range(-1, len(problem.bins)), repeat=len(problem.waiting)):
        value = sum(profit for profit, home in zip(problem.profits, homes) if home >= 0)
        shapes = [[] for _ in problem.bins]
        for routers, home in zip(problem.routers, homes):
            if home >= 0:
                extent = problem.bins[home].extent
                shapes[home].append(layer_shape(routers, extent, problem.grid))
        if all(holds(box.extent, inside) for box, inside in zip(problem.bins, shapes)):
            best = max(best, value)
    result = solve(problem, "highs")
    assert (result.status, result.objective) == ("optimal", best)


@pytest.mark.parametrize(
    ("solution", "expected"),
    [
        (GOOD[:-1], ["once"]),
        (placed((6, Place(2, 6, 6))), ["bin"]),
        (placed((6, Place(0, 6, 6))), ["size"]),
        # D in a layer of its own is the fourth, and lies beyond the bin
        (placed((3, Place(0, 3, 3))), ["inside"]),
        # E before F, and higher than it is the shelf's leader no longer
        (placed((4, Place(0, 1, 4)), (5, Place(0, 1, 4))), ["leader"]),
        # F leads the layer, but B is before it and as high
        (placed((1, Place(0, 5, 1)), (4, Place(0, 5, 5)), (5, Place(0, 5, 5))), ["leader"]),
        # a layer of a job in another bin, a shelf of none
        (placed((4, Place(0, 2, 4))), ["leader", "inside"]),
        # in the layers that A has for itself
        (placed((4, Place(0, 0, 4))), ["leader", "inside"]),
    ],
)
def test_violations_are_named(solution, expected):
    found = [violation.constraint for violation in EXAMPLE.violations(solution)]
    assert list(dict.fromkeys(found)) == expected


def test_boxes_are_verified_cell_by_cell(monkeypatch):
    """Whatever `boxes` gives, overlaps and the like are found."""
    places = (Place(0, 0, 0), Place(1, 1, 1))
    first, second = FIGURE_2_TWICE.boxes(places)
    assert (str(first), str(second)) == ("4x2x1@0,0,0", "3x2x1@4,0,0")
    for boxes, expected in (
        ((first, Box(3, 0, 0, 3, 2, 1)), ["inside", "overlap"]),
        ((Box(0, 0, 0, 4, 1, 1), second), ["size"]),
        ((Box(0, 0, 0, 3, 2, 1), second), ["layers"]),
    ):
        monkeypatch.setattr(PartitionMKP, "boxes", lambda self, solution, given=boxes: given)
        found = [violation.constraint for violation in FIGURE_2_TWICE.violations(places)]
        assert found == expected


FIGURE_2_TWICE = PartitionMKP(FIGURE_2.torus, FIGURE_2.bins, waiting=[6, 6])


def test_boxes_in_a_solution_may_be_left_out_but_not_wrong():
    written = FIGURE_2.solution_to_json((Place(1, 0, 0),))
    with pytest.raises(InputError, match=r"by their places they are \['3x2x1@4,0,0'\]"):
        FIGURE_2.solution_from_json(written | {"box_of_job": ["3x2x1@5,0,0"]})
    del written["box_of_job"]
    assert FIGURE_2.solution_from_json(written) == (Place(1, 0, 0),)


@settings(max_examples=200, deadline=None)
@given(partition_mkps(max_jobs=6, max_bins=3), st.data())
def test_the_quick_check_passes_what_breaks_nothing(problem, data):
    """Answers, and answers of which some places are changed."""
    places = list(solve(problem, "migration-based").solution)
    number = st.integers(-1, max(len(problem.bins), len(places)))
    changed = st.lists(st.sampled_from(range(len(places))), max_size=2) if places else st.just([])
    for job in data.draw(changed):
        other = st.sampled_from([one for one in places if one is not None] or [None])
        places[job] = data.draw(
            st.none()
            | other
            | st.builds(Place, number, st.just(job), st.just(job))
            | st.builds(Place, number, number, number)
        )
    solution = tuple(places)
    assert problem.passes_quick_check(solution) == (problem.violations(solution) == [])


def test_bins_that_overlap_do_not_pass_the_quick_check():
    fields = vars(FIGURE_2_TWICE) | {"bins": (Box(0, 0, 0, 4, 2, 1), Box(3, 0, 0, 3, 2, 1))}
    overlapping = PartitionMKP.trusted(**fields)
    places = (Place(0, 0, 0), Place(1, 1, 1))
    assert FIGURE_2_TWICE.passes_quick_check(places)
    assert not overlapping.passes_quick_check(places)
    assert not FIGURE_2_TWICE.passes_quick_check(((0, 0, 0), Place(1, 1, 1)))
    assert not FIGURE_2_TWICE.passes_quick_check((Place(0.5, 0, 0), Place(1, 1, 1)))
