from __future__ import annotations

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


def test_it_is_not_always_best():
    """One job on both nodes costs less than one on each, though more for each chunk."""
    problem = Hold(
        ["cores"],
        free=[[0], [0]],
        chunks=2,
        demand=[4],
        costs=[3, 3, 5],
        held=[[[0, 4]], [[1, 4]], [[0, 4], [1, 4]]],
    )
    assert CheapestFirst().place(problem) == Release((0, 1), (0, 1))
    assert solve(problem, "cp-sat").objective == 5


def test_all_nodes_are_drained_or_none():
    fields = {
        "free": [[0], [4]],
        "chunks": 2,
        "demand": [4],
        "costs": [3, 3],
        "held": [[[0, 2]], [[0, 2]]],
        "pending": [0, 1],
    }
    assert CheapestFirst().place(Hold(["cores"], **fields)) == Release((0, 1), (0, 1))
    cheap = Hold(["cores"], **fields, drain_costs=[2, 3])
    assert CheapestFirst().place(cheap) == Release((), (0, 1), (0, 1))
    dear = Hold(["cores"], **fields, drain_costs=[2, 5])
    assert CheapestFirst().place(dear) == Release((0, 1), (0, 1))
    fixed = Hold(["cores"], **fields, drain_costs=[2, 5], fixed=[1])
    assert CheapestFirst().place(fixed) == Release((), (0, 1), (0, 1))
    assert CheapestFirst().place(Hold(["cores"], **fields, fixed=[1])) is None
