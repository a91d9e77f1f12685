"""Algorithm 3 with one victim: plans by hand, and all single moves tried."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings

from optsched import Budget
from optsched.boxes.box import Box, shapes
from optsched.models import Migration
from optsched.solvers.migration.rules import SingleVictim
from optsched.solvers.result import Status
from optsched.testing import migrations

from .conftest import SWAP, WITHOUT_HOST, random_state

LINE = {"torus": (8, 1, 1), "wrap": (False, False, False)}


def every_move(problem):
    """Return each qualified victim with its cost, and the fewest routers that both jobs can take.

    All boxes are tried. The victim is None if the large job needs none.
    """
    grid = problem.grid

    def boxes(nodes, present=None):
        best = shapes(-(-nodes // problem.nodes_per_router), grid, problem.links)[: problem.shapes]
        every = (
            Box(*anchor, *extent)
            for extent in {*best, *({present} - {None})}
            for anchor in product(*map(range, problem.torus))
        )
        return [box for box in every if not grid.mistake(box)]

    def fits(box, others):
        return not any(grid.overlap(box, other) for other in (*problem.holes, *others))

    places = boxes(problem.incoming)
    if any(fits(place, problem.running) for place in places):
        return {None: (0, None)}
    found = {}
    for job in range(len(problem.running)) if problem.movable is None else problem.movable:
        present = problem.running[job]
        others = [box for other, box in enumerate(problem.running) if other != job]
        beside = [*others, *problem.ending]
        hosts = [box for box in boxes(problem.sizes[job], present.extent) if fits(box, beside)]
        taken = [
            place.volume + host.volume
            for place in places
            if fits(place, others)
            for host in hosts
            if host != present and not grid.overlap(place, host)
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


def test_a_free_box_needs_no_victim_although_one_is_qualified():
    problem = Migration(running=["1x1x1@2,0,0"], sizes=[1], elapsed=[0], incoming=5, **LINE)
    assert SingleVictim().place(problem) == ((), Box(3, 0, 0, 5, 1, 1))


def test_the_bin_of_the_highest_priority_comes_first():
    running = ["1x1x1@2,0,0", "1x1x1@5,0,0"]
    for elapsed, victim in ((9, 5), 1), ((5, 9), 0), ((5, 5), 0):
        problem = Migration(running=running, sizes=[1, 1], elapsed=elapsed, incoming=5, **LINE)
        assert [*SingleVictim().place(problem).destinations] == [victim]


def test_a_victim_without_a_host_is_not_qualified():
    plan = SingleVictim().place(WITHOUT_HOST)
    assert plan.destinations == {1: Box(2, 0, 0, 1, 1, 1)}
    assert plan.place == Box(4, 0, 0, 3, 1, 1)


def test_two_jobs_in_the_way_are_too_many():
    """The only places of seven nodes overlap both jobs; either of them would find a host."""
    running = ["1x1x1@3,0,0", "1x1x1@5,0,0"]
    problem = Migration((10, 1, 1), running, [1, 1], [1, 1], 7, wrap=(False, False, False))
    assert SingleVictim().place(problem) is None
    problem = Migration((10, 1, 1), running, [1, 1], [1, 1], 5, wrap=(False, False, False))
    assert SingleVictim().place(problem).destinations == {0: Box(6, 0, 0, 1, 1, 1)}


def test_of_several_boxes_those_with_the_fewest_idle_routers_are_taken():
    """The victim of three nodes leaves a router of its 2x2 idle, but none of a 3x1."""
    problem = Migration((5, 3, 1), ["2x2x1@0,0,0"], [3], [7], 10, wrap=(False, False, False))
    plan = SingleVictim().place(problem)
    (host,) = plan.destinations.values()
    assert (plan.place.volume, host.volume) == (10, 3)


def test_no_plan_is_no_proof_that_there_is_none():
    result = SingleVictim().solve(SWAP, budget=Budget())
    assert result.status is Status.NO_SOLUTION
    assert result.bound is None
    assert result.objective is None
