import pytest
from hypothesis import given, settings

from optsched.models.hold import Hold, Release
from optsched.solvers.hold import CheapestFirst
from optsched.solvers.solving import solve
from optsched.testing import holds


@settings(max_examples=150, deadline=None)
@given(holds(moves=0))
def test_it_finds_a_release_wherever_there_is_one_with_no_claim_too_many(problem):
    best = solve(problem, "highs")
    found = CheapestFirst().place(problem)
    assert (found is None) == (best.solution is None)
    if found is None:
        return
    assert problem.violations(found) == []
    assert problem.objective(found) >= best.objective
    for claim in found.lifted:
        fewer = tuple(other for other in found.lifted if other != claim)
        assert problem.violations(found._replace(lifted=fewer))
    for node in found.drained:
        fewer = tuple(other for other in found.drained if other != node)
        assert problem.violations(found._replace(drained=fewer))


@pytest.mark.parametrize(
    ("fields", "release"),
    [
        ({}, Release((0, 1), (0, 1))),
        ({"drain_costs": [2, 3]}, Release((), (0, 1), (0, 1))),
        ({"drain_costs": [2, 5]}, Release((0, 1), (0, 1))),
        ({"drain_costs": [2, 5], "fixed": [1]}, Release((), (0, 1), (0, 1))),
        ({"fixed": [1]}, None),
    ],
)
def test_all_nodes_are_drained_or_none(fields, release):
    held = [[[0, 2]], [[0, 2]]]
    problem = Hold(["cores"], [[0], [4]], 2, [4], [3, 3], held, pending=[0, 1], **fields)
    assert CheapestFirst().place(problem) == release
