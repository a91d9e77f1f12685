"""Migrations, for one large job or several: rules as stated, and the optimum of all moves."""

import random

import numpy as np
import pytest
from boxes.trying_boxes import boxes_of, cheapest, choices_of, extents_of, holes_of
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import Budget, load_snapshot, solve
from optsched.boxes._rows import words_of
from optsched.boxes.box import Box, shapes
from optsched.boxes.free_boxes import anchors
from optsched.content import bundled
from optsched.models import Migration, Reconfiguration
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.migration._cheapest_boxes import cheapest_boxes
from optsched.solvers.migration.position_search import PositionSearch
from optsched.solvers.migration.rules import SingleVictim, find_plan
from optsched.solvers.reconfiguration import MigrateThenPlace, MigrationBased, Stage
from optsched.solvers.result import Limit, Status
from optsched.testing import check_solver, migrations, reconfigurations

SWAP = Migration(
    (8, 1, 1),
    ["3x1x1@0,0,0", "2x1x1@5,0,0"],
    sizes=[3, 2],
    elapsed=[20, 10],
    incoming=2,
    holes=["1x1x1@4,0,0"],
    wrap=(False, False, False),
)
"""The large job has room if the others change places; neither can leave before the other."""


def optimum_of(problem):
    """Try every place of the large job, and every box for every job, but for what costs more."""
    holes, choices = holes_of(problem), choices_of(problem)
    best = None
    for _, cells in boxes_of(problem, extents_of(problem, problem.incoming)):
        if not cells & holes:
            best = cheapest(choices, holes | cells, best)
    return best


def random_state(seed, *, sides=(8, 8, 8), busy=0.6, nodes=2, large=60, largest=5, **options):
    """Fill a torus with jobs at random places, and let some go and come until the end."""
    rng = random.Random(seed)
    problem = Migration(sides, [], [], [], 1)
    grid, free, running = problem.grid, np.ones(sides, dtype=bool), []
    for _ in range(20 * sides[0] * sides[1]):
        routers = int(2 ** rng.uniform(0, largest))
        ranked = shapes(routers, grid)[:4]
        shape = rng.choice(ranked)
        there = anchors(free, grid, shape)
        if len(there):
            box = Box(*rng.choice(there.tolist()), *shape)
            free[grid.routers_of(box)] = False
            running.append((box, routers * nodes, int(rng.expovariate(1 / 7200))))
        while free.sum() < (1 - busy) * grid.routers:
            box, _, _ = running.pop(rng.randrange(len(running)))
            free[grid.routers_of(box)] = True
    boxes, sizes, elapsed = zip(*running)
    return Migration(grid.shape, boxes, sizes, elapsed, large, nodes_per_router=nodes, **options)


def test_no_job_makes_room_for_a_victim_and_no_plan_is_no_proof():
    assert optimum_of(SWAP) == 80
    assert find_plan(SWAP) is None
    result = SingleVictim().solve(SWAP, budget=Budget())
    assert (result.status, result.bound, result.objective) == (Status.NO_SOLUTION, None, None)


def cells(grid, box):
    return frozenset(grid.cells(box).tolist())


def stated_plan(problem, most):
    """Return destinations and place, or None; all places are listed and ordered."""
    grid = problem.grid
    held = [cells(grid, box) for box in problem.running]
    kept = frozenset().union(*(cells(grid, box) for box in problem.holes))
    kept = kept.union(*(held[job] for job in range(len(held)) if job not in problem.movers))
    places = []
    for number, (box, there) in enumerate(boxes_of(problem, problem.place_extents)):
        if not there & kept:
            met = frozenset(job for job in problem.movers if held[job] & there)
            places.append((sum(problem.costs[job] for job in met), number, box, met))
    ending = frozenset().union(*(cells(grid, box) for box in problem.ending))
    free = frozenset(range(grid.routers)) - kept - ending - frozenset().union(*held)
    examined = set()
    for _, _, place, victims in sorted(places, key=lambda one: one[:2])[:most]:
        if victims and victims <= examined:
            continue
        examined |= victims
        destinations = hosts(problem, free, held, cells(grid, place), victims)
        if destinations is not None:
            return destinations, place
    return None


def hosts(problem, free, held, place, victims):
    found, free = {}, free - place
    for job in largest_first(problem, victims):
        free |= held[job] - place
        for box, there in boxes_of(problem, problem.extents(job)):
            if there <= free:
                found[job] = box
                free -= there
                break
        else:
            return None
    return found


def largest_first(problem, jobs):
    extents = {job: problem.extents(job) for job in jobs}
    return sorted(jobs, key=lambda j: (-min(x * y * z for x, y, z in extents[j]), extents[j], j))


def as_stated(problem, most):
    plan = find_plan(problem, most)
    wanted = stated_plan(problem, most)
    if wanted is None or plan is None:
        assert plan is wanted
    else:
        assert (plan.destinations, plan.place) == wanted
        assert problem.violations(plan) == []


@settings(max_examples=150, deadline=None)
@given(migrations(max_running=8), st.sampled_from([1, 2, 3, 7, 4096]))
def test_the_first_plan_is_the_one_stated(problem, most):
    as_stated(problem, most)


@pytest.mark.parametrize("seed", range(6))
def test_the_first_plan_on_a_busy_torus_is_the_one_stated(seed):
    for most, widest in ((4096, 4), (40, 2), (5, None)):
        options = {"busy": 0.7, "large": 40, "largest": 4, "shapes": widest}
        as_stated(random_state(seed, sides=(5, 5, 5), **options), most)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sides", [(6, 6, 6), (2, 64, 3), (2, 3, 64)])
def test_the_first_plan_is_the_one_stated_where_a_victim_has_many_hosts(sides, seed):
    """Those of a job are listed up to `HOSTS`, and a row of routers fills a word."""
    for busy in (0.4, 0.55):
        as_stated(random_state(seed, sides=sides, busy=busy, large=150, largest=3), 500)


@settings(max_examples=60, deadline=None)
@given(migrations(max_running=8))
def test_a_limit_only_leaves_out_plans_that_cost_as_much(problem):
    plan = find_plan(problem)
    if plan is not None:
        cost = problem.objective(plan)
        assert find_plan(problem, below=cost) is None
        assert find_plan(problem, below=cost + 1) == plan


def every_move(problem):
    """Return each qualified victim with its cost, and the fewest routers that both jobs can take.

    All boxes are tried. The victim is None if the large job needs none.
    """
    held, ending = (
        [cells(problem.grid, box) for box in boxes] for boxes in (problem.running, problem.ending)
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


@settings(max_examples=80, deadline=None)
@given(migrations(max_running=3, max_side=3))
def test_position_search_finds_the_optimum_of_trying_everything(problem):
    result = solve(problem, PositionSearch())
    optimum = optimum_of(problem)
    assert result.objective == optimum, result.message
    assert result.status is (Status.INFEASIBLE if optimum is None else Status.OPTIMAL)


@settings(max_examples=40, deadline=None)
@given(migrations(max_running=6))
def test_position_search_finds_the_optimum_of_the_program(problem):
    result, other = solve(problem, PositionSearch()), solve(problem, CpSat())
    assert (result.status, result.objective) == (other.status, other.objective), result.message


def test_position_search_says_how_far_it_came():
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


HEURISTICS = [MigrateThenPlace(), MigrateThenPlace("exact"), MigrationBased()]


def reference(name):
    return load_snapshot(bundled("models") / "reconfiguration" / f"{name}.json")


@settings(max_examples=40, deadline=None)
@given(reconfigurations(max_side=3))
def test_answers_for_several_jobs_are_feasible_and_no_better_than_the_optimum(problem):
    best = solve(problem, "highs")
    free = Reconfiguration.from_json(problem.to_json() | {"required": []})
    for solver in HEURISTICS:
        result = solve(problem, solver)
        assert result.status in (Status.FEASIBLE, Status.NO_SOLUTION), result.message
        assert problem.required or result.solution is not None
        if result.solution is not None:
            assert result.objective >= best.objective
            assert problem.violations(result.solution) == []
    for in_turn in HEURISTICS[:2]:
        assert solve(free, in_turn).solution.steps == ()


def test_the_plan_for_the_large_job_alone_may_leave_no_box_for_another():
    problem = reference("same-cost")
    in_turn = solve(problem, "migrate-then-place").solution
    assert problem.cost_of(in_turn.steps) == 50
    assert in_turn.boxes == (Box(3, 0, 0, 4, 1, 1), None)
    both = solve(problem, "migration-based").solution  # at the same cost
    assert problem.cost_of(both.steps) == 50
    assert None not in both.boxes


@pytest.mark.parametrize(("worth", "starts"), [(9, False), (10, False), (11, True)])
def test_algorithm_3_moves_jobs_only_for_a_gain(worth, starts):
    """D is worth twice the worth; admitting it moves B, which costs 20."""
    example = reference("worked-example")
    problem = Reconfiguration.from_json(example.to_json() | {"worth": worth})
    boxes = solve(problem, "migration-based").solution.boxes
    assert (boxes[1] is not None) == starts


def test_a_required_job_is_admitted_at_any_cost():
    example = reference("worked-example")
    problem = Reconfiguration.from_json(example.to_json() | {"worth": 0, "required": [1, 2]})
    assert None not in solve(problem, "migration-based").solution.boxes


def test_later_stages_move_new_jobs_free_of_charge():
    problem = Reconfiguration(
        (5, 1, 1), ["1x1x1@2,0,0"], [1], [60], [1, 3], required=[0, 1], wrap=(False,) * 3
    )
    stage = Stage(problem)
    first = find_plan(stage.migration(0))
    stage.carry_out(0, first)
    assert stage.boxes == {0: Box(2, 0, 0, 1, 1, 1), 1: Box(0, 0, 0, 1, 1, 1)}
    second = stage.migration(1)
    assert (second.sizes, second.costs) == ((1, 1), (60, 0))
    plan = find_plan(second)
    stage.carry_out(1, plan)
    assert stage.migration(1).costs == (0, 0, 0)  # the running job moves in any case
    arrangement = stage.arrangement()
    assert problem.violations(arrangement) == []
    assert problem.objective(arrangement) == 60
