from __future__ import annotations

import pytest
from hypothesis import given, settings

import optsched
from optsched.models import BoxPlacement, box_placement
from optsched.solvers.box_placement.box_search import BoxSearch
from optsched.testing import box_placements, check_solver


@pytest.fixture(autouse=True)
def _installed(solver_named):
    solver_named("box-search")


@settings(max_examples=10, deadline=None)
@given(box_placements(max_side=3))
def test_it_keeps_the_contract_of_a_solver(problem):
    check_solver(BoxSearch(), problem)


@settings(max_examples=25, deadline=None)
@given(box_placements(max_side=3, max_waiting=5))
def test_it_proves_what_others_prove(problem):
    result = optsched.solve(problem, "box-search")
    assert result.status == "optimal"
    assert result.objective == optsched.solve(problem, "highs").objective


def test_where_everything_fits_no_program_is_stated(monkeypatch):
    monkeypatch.setattr(box_placement, "MOST", 0)
    problem = BoxPlacement((4, 4, 4), ["1x1x1@0,0,0"], [8, 7, 32])
    result = optsched.solve(problem, "box-search")
    assert (result.status, result.objective, result.work) == ("optimal", 47, 0)


def test_what_is_too_large_to_be_stated_is_placed_and_bounded(monkeypatch):
    monkeypatch.setattr(box_placement, "MOST", 0)
    problem = BoxPlacement((6, 1, 1), ["1x1x1@0,0,0", "1x1x1@3,0,0"], [3, 1])
    result = optsched.solve(problem, "box-search")
    assert (result.status, result.limit, result.bound) == ("feasible", "memory", 4)
