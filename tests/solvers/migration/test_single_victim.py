"""Algorithm 3 with one victim: plans by hand, and all single moves tried."""

from __future__ import annotations

import pytest
from boxes.trying_boxes import boxes_of, extents_of, holes_of
from hypothesis import given, settings

from optsched import Budget
from optsched.boxes.box import Box
from optsched.models import Migration
from optsched.solvers.migration.rules import SingleVictim
from optsched.solvers.result import Status
from optsched.testing import migrations

from .conftest import SWAP, random_state


def every_move(problem):
    """Return each qualified victim with its cost, and the fewest routers that both jobs can take.

    All boxes are tried. The victim is None if the large job needs none.
    """
    held, ending = (
        [frozenset(problem.grid.cells(box).tolist()) for box in boxes]
        for boxes in (problem.running, problem.ending)
    )
    holes = holes_of(problem)
    places = [cells for _, cells in boxes_of(problem, extents_of(problem, problem.incoming))]
    places = [cells for cells in places if not cells & holes]
    if any(not cells & holes.union(*held) for cells in places):
        return {None: (0, None)}
    found = {}
    for job in range(len(held)) if problem.movable is None else problem.movable:
        present = problem.running[job]
        others = holes.union(*held[:job], *held[job + 1 :])
        extents = {*extents_of(problem, problem.sizes[job]), present.extent}
        hosts = [
            cells
            for box, cells in boxes_of(problem, extents)
            if box != present and not cells & others.union(*ending)
        ]
        taken = [
            len(place) + len(host)
            for place in places
            if not place & others
            for host in hosts
            if not place & host
        ]
        if taken:
            found[job] = (problem.sizes[job] * problem.elapsed[job], min(taken))
    return found


def check(problem):
    plan, qualified = SingleVictim().place(problem), every_move(problem)
    assert (plan is not None) == bool(qualified)
    if plan is None:
        return
    assert problem.violations(plan) == []
    assert len(plan.steps) <= 1
    if not plan.steps:
        assert qualified == {None: (0, None)}
        return
    ((victim, host),) = plan.destinations.items()
    cost, routers = qualified[victim]
    assert cost == min(least for least, _ in qualified.values()) == problem.objective(plan)
    assert victim == min(job for job, (least, _) in qualified.items() if least == cost)
    assert plan.place.volume + host.volume == routers


@settings(max_examples=300, deadline=None)
@given(migrations(max_running=5, max_side=3))
def test_there_is_a_plan_if_and_only_if_there_is_a_qualified_victim(problem):
    check(problem)


@pytest.mark.parametrize("seed", range(8))
def test_plans_on_a_busy_torus_are_those_of_all_single_moves(seed):
    check(random_state(seed, sides=(4, 4, 4), busy=0.7, large=24, largest=4, shapes=3))


def test_two_jobs_in_the_way_are_too_many():
    """The only places of seven nodes overlap both jobs; either of them would find a host."""
    running = ["1x1x1@3,0,0", "1x1x1@5,0,0"]
    seven, five = (
        SingleVictim().place(
            Migration((10, 1, 1), running, [1, 1], [1, 1], nodes, wrap=(False, False, False))
        )
        for nodes in (7, 5)
    )
    assert seven is None
    assert five.destinations == {0: Box(6, 0, 0, 1, 1, 1)}


def test_no_plan_is_no_proof_that_there_is_none():
    result = SingleVictim().solve(SWAP, budget=Budget())
    assert (result.status, result.bound, result.objective) == (Status.NO_SOLUTION, None, None)
