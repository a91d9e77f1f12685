"""Position search is exact, and so are the compiled parts of it."""

import numpy as np
from hypothesis import given, settings

from optsched import Budget, solve
from optsched.boxes._rows import words_of
from optsched.boxes.box import Box
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.migration._cheapest_boxes import cheapest_boxes
from optsched.solvers.migration.position_search import PositionSearch
from optsched.solvers.result import Limit, Status
from optsched.testing import check_solver, migrations

from .conftest import optimum_of, random_state


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


def test_it_says_how_far_it_came():
    problem = random_state(0, busy=0.85)
    best = solve(problem, PositionSearch())
    assert (best.status, best.objective > 0) == (Status.OPTIMAL, True)
    for work in (1, 10, 100, 1000):
        budget = Budget(work=work)
        result = check_solver(PositionSearch(), problem, optimum=best.objective, budget=budget)
        assert result.limit is (None if result.status is Status.OPTIMAL else Limit.WORK)


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
