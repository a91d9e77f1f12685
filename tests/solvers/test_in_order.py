"""The fallback of models of one statement, against values derived by hand."""

from __future__ import annotations

import pytest

import optsched
from optsched import registry
from optsched.extend import Integer, Integers
from optsched.models.stated import model
from optsched.testing import check_solver

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


def test_it_is_for_statements_alone():
    with pytest.raises(optsched.InputError, match="does not answer 'window-mkp' problems"):
        optsched.solve(optsched.models.WindowMKP([2], [3]), "in-order")
