"""The rules that answer where no other does: of holds, and of models of one statement."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import optsched
from optsched import registry
from optsched.extend import Integer, Integers
from optsched.models.hold import Hold, Release
from optsched.models.stated import model
from optsched.solvers.hold import CheapestFirst
from optsched.solvers.solving import solve
from optsched.testing import check_solver, holds


@settings(max_examples=150, deadline=None)
@given(holds(moves=0))
def test_cheapest_first_finds_a_release_wherever_there_is_one_with_no_claim_too_many(problem):
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


pytestmark = pytest.mark.usefixtures("own_models")


def knapsack(m, nodes: Integers(1), free: Integer(0)):
    """Jobs that fit."""
    start = m.binary("start", len(nodes))
    m.maximize(nodes @ start)
    m.require("free", nodes @ start <= free)


def cover(m, need: Integer(0), most: Integers(0)):
    """Few nodes that have enough room."""
    taken = m.integer("taken", len(most), upper=most)
    used = m.some("used", taken)
    m.minimize(used.sum())
    m.require("need", taken.sum() >= need)


@pytest.mark.parametrize(
    ("nodes", "free", "start"),
    [
        ([4, 3, 2, 1], 6, [1, 0, 1, 0]),  # 4, then 2: 3 does not fit
        ([7, 3, 9, 2], 6, [0, 1, 0, 1]),
        ([], 6, []),
    ],
)
def test_decisions_are_taken_in_order_while_nothing_is_violated(nodes, free, start):
    problem = model("stated-jobs")(knapsack)(nodes, free)
    result = check_solver(registry.solvers["in-order"](), problem)
    assert result.solution["start"].tolist() == start
    assert (result.status, result.bound, result.verified) == ("feasible", None, True)


def test_what_is_violated_at_first_is_mended_as_far_as_needed():
    cls = model("stated-cover")(cover)
    result = optsched.solve(cls(5, [3, 4, 4]), "in-order")
    assert (result.status, result.objective) == ("feasible", 2)
    assert result.solution["taken"].sum() >= 5
    assert optsched.solve(cls(12, [3, 4, 4]), "in-order").status == "no-solution"
    assert optsched.solve(cls(12, [3, 4, 4]), "cp-sat").status == "infeasible"


def test_in_order_is_for_statements_alone():
    with pytest.raises(optsched.InputError, match="does not answer 'window-mkp' problems"):
        optsched.solve(optsched.models.WindowMKP([2], [3]), "in-order")
