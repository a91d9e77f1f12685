"""Position search is exact, and so are the compiled parts of it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from solvers.drawn import random_state

from optsched import Budget, solve
from optsched.boxes._rows import words_of
from optsched.boxes.box import Box
from optsched.models import Migration, Step
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.migration import position_search
from optsched.solvers.migration._cheapest_boxes import cheapest_boxes, mark_overlaps
from optsched.solvers.migration.position_search import PositionSearch, restricted
from optsched.solvers.migration.subproblems import Subproblem, Subproblems, fits
from optsched.solvers.result import Limit, Status
from optsched.testing import check_solver, migrations

from . import stated
from .conftest import SWAP, optimum_of


@settings(max_examples=80, deadline=None)
@given(migrations(max_running=3, max_side=3))
def test_the_optimum_by_trying_everything(problem):
    result = solve(problem, PositionSearch())
    optimum = optimum_of(problem)
    assert result.objective == optimum, result.message
    assert result.status is (Status.INFEASIBLE if optimum is None else Status.OPTIMAL)


@settings(max_examples=40, deadline=None)
@given(migrations(max_running=6))
def test_the_optimum_of_the_program(problem):
    result, other = solve(problem, PositionSearch()), solve(problem, CpSat())
    assert (result.status, result.objective) == (other.status, other.objective), result.message


def test_jobs_that_change_places_need_parking():
    result = check_solver(PositionSearch(), SWAP, optimum=80)
    assert result.status is Status.OPTIMAL
    parked, first, second = result.solution.steps
    assert parked == Step(1, None)
    assert first == Step(0, Box(5, 0, 0, 3, 1, 1))
    assert second.job == 1


@pytest.mark.parametrize("name", ["position-search", "cp-sat", "highs"])
@pytest.mark.parametrize(
    "problem",
    [
        Migration((3, 3, 1), ["1x1x1@1,1,0"], [1], [9], 6, movable=[], wrap=(False,) * 3),
        Migration((2, 2, 2), ["2x2x1@0,0,0"], [4], [1], 5),
        Migration((2, 2, 2), [], [], [], 9),
    ],
)
def test_what_has_no_solution_is_proven_so(name, problem, solver_named):
    assert solve(problem, solver_named(name)).status is Status.INFEASIBLE


def test_it_says_how_far_it_came():
    problem = random_state(0, busy=0.85)
    best = solve(problem, PositionSearch())
    assert (best.status, best.objective > 0) == (Status.OPTIMAL, True)
    for work in (1, 10, 100, 1000):
        budget = Budget(work=work)
        result = check_solver(PositionSearch(), problem, optimum=best.objective, budget=budget)
        assert result.limit is (None if result.status is Status.OPTIMAL else Limit.WORK)


def test_fewer_jobs_may_move_in_a_narrowed_problem():
    problem = random_state(1)
    fewer = restricted(problem, 1)
    assert 0 < len(fewer.movable) < len(problem.running)
    best, other = solve(problem, PositionSearch()), solve(fewer, PositionSearch())
    assert best.objective <= other.objective
    assert fewer.to_json() == problem.to_json() | {"movable": fewer.to_json()["movable"]}


@settings(max_examples=150, deadline=None)
@given(migrations(max_running=6, max_side=3), st.data())
def test_the_first_packing_is_found(problem, data):
    every, room = stated.boxes_of(problem, problem.place_extents), problem.room()
    places = [box for box, _ in every if room[problem.grid.routers_of(box)].all()]
    assume(places)
    place = data.draw(st.sampled_from(places))
    met = {job for job in problem.movers if problem.grid.overlap(place, problem.running[job])}
    further = data.draw(st.sets(st.sampled_from(problem.movers))) if problem.movers else set()
    jobs = sorted(met | further)
    question = Subproblem(0, tuple(place), sum(1 << job for job in jobs))
    result = Subproblems(problem).solve(question, 10**6)
    assert not result.is_open
    packing = stated.first_packing(problem, jobs, place, jobs)
    assert (result.plan is None) == (packing is None)
    if packing is not None:
        moves = {job: box for job, box in packing.items() if box != problem.running[job]}
        assert (result.plan.destinations, result.plan.place) == (moves, place)
        assert problem.violations(result.plan) == []
    else:  # those named do not fit together either
        assert set(result.needed) <= set(jobs)
        assert stated.first_packing(problem, jobs, place, result.needed) is None


@given(migrations(max_running=6))
def test_the_cheapest_boxes_are_those_with_the_cheapest_jobs_in_their_way(problem):
    grid, costs, room = problem.grid, np.array(problem.costs, dtype=np.int64), problem.room()
    boxes = np.array(problem.running, dtype=np.int64).reshape(-1, 6)
    table = np.array(problem.place_extents, dtype=np.int64).reshape(-1, 3)
    for meeting in (False, True):
        expected = []
        for number, (s, *anchor) in enumerate(np.ndindex(len(table), *problem.torus)):
            box = Box(*anchor, *table[s].tolist())
            if grid.mistake(box) or not room[grid.routers_of(box)].all():
                continue
            met = [job for job, other in enumerate(problem.running) if grid.overlap(box, other)]
            if met or not meeting:
                expected.append((int(costs[met].sum()), number))
        expected.sort()
        given = table, boxes, costs, words_of(room), problem.torus[2], problem.wrap, meeting
        for after, below, most in (((-1, -1), 10**18, 1000), ((3, 5), 20, 4)):
            found = cheapest_boxes(*given, np.array(after), below, most)
            wanted = [one for one in expected if one > after and one[0] < below]
            assert [tuple(one) for one in found.tolist()] == wanted[:most]


@given(st.tuples(*[st.booleans()] * 3), st.integers(0, 2**32), st.integers(14, 18), st.data())
def test_of_many_shapes_the_first_that_is_free_is_found(wrap, seed, blocked, data):
    """Up to `blocked` shapes that are free nowhere come first."""
    problem = Migration((4, 4, 4), [], [], [], 1, wrap=wrap)
    grid = problem.grid
    free = np.random.default_rng(seed).random(grid.shape) < data.draw(st.floats(0.5, 0.9))
    least = data.draw(st.integers(1, 12))
    shapes = [shape for shape in product(range(1, 5), repeat=3) if np.prod(shape) >= least]
    first = {}
    for box, _ in stated.boxes_of(problem, shapes):
        if free[grid.routers_of(box)].all():
            first.setdefault(box.extent, box)
    table = [*[shape for shape in shapes if shape not in first][:blocked], *first]
    found = np.zeros(6, dtype=np.int64)
    room = np.empty((4, 4), dtype=np.uint64), np.empty((8, 8), dtype=np.uint64)
    fit = fits(words_of(free), np.array(table), least, 4, wrap, found, *room)
    assert (Box(*found.tolist()) if fit else None) == next(iter(first.values()), None)


def test_a_job_that_fits_nowhere_is_named_alone():
    # beside the place, two by two routers are free: for the first job, but not for the row
    running, torus = ["2x2x1@0,0,0", "3x1x1@2,0,0"], {"wrap": (False,) * 3, "shapes": 1}
    holes = ["1x2x1@5,0,0"]
    problem = Migration((8, 2, 1), running, [4, 3], [1, 1], 10, holes=holes, **torus)
    result = Subproblems(problem).solve(Subproblem(0, (0, 0, 0, 5, 2, 1), 0b11), 100)
    assert (result.plan, result.is_open, result.needed) == (None, False, (1,))


@given(migrations(max_running=6))
def test_jobs_in_the_way_are_those_that_overlap(problem):
    grid = problem.grid
    places = [box for box, _ in stated.boxes_of(problem, problem.place_extents)]
    boxes = [*problem.running, *problem.holes, *places]
    table = np.array(boxes, dtype=np.int64).reshape(-1, 6)
    found = np.empty((len(boxes), len(boxes)), dtype=bool)
    mark_overlaps(table, table, np.array(grid.shape), found)
    held = [stated.cells(grid, box) for box in boxes]
    assert found.tolist() == [[bool(one & other) for other in held] for one in held]


@pytest.mark.parametrize("seed", range(4))
def test_plans_of_dives_are_valued_by_the_jobs_that_did_move(seed, monkeypatch):
    # at once in the second round, with wider questions than needed
    monkeypatch.setattr(position_search, "FIRST_ROUND", 1)
    monkeypatch.setattr(position_search, "DIVING", 10**6)
    problem = random_state(seed, busy=0.8, large=100)
    for work in (100, 1000, 5000):
        result = solve(problem, PositionSearch(), budget=Budget(work=work))
        assert result.status is not Status.ERROR, result.message
