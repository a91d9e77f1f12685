"""Column generation: optimal, bounded, warm-started, deterministic, for every node placement."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from solvers.drawn import on_leaves, with_devices

from optsched import Budget
from optsched.models.node_placement import NodePlacement
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._packing import Packing
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._types import Instance
from optsched.solvers.result import Status
from optsched.solvers.solving import solve
from optsched.testing import node_placements

from .whole_nodes import optimum_of, placements_of_whole_nodes

SOLVER = "column-generation"


@settings(max_examples=80)
@given(node_placements())
def test_the_answer_is_that_of_cp_sat(problem):
    result, other = solve(problem, SOLVER), solve(problem, "cp-sat")
    assert result.status is other.status is Status.OPTIMAL
    assert result.objective == other.objective


@settings(max_examples=25)
@given(placements_of_whole_nodes())
def test_whole_nodes_on_switches_are_left_to_switch_groups(problem):
    result, other = solve(problem, SOLVER), solve(problem, "switch-groups")
    assert result.solver == SOLVER
    assert result.status is Status.OPTIMAL
    assert result.objective == optimum_of(problem)
    assert result.solution == other.solution


THIRDS = [str(node % 3) for node in range(8)]
SMALL = [
    *(
        with_devices(seed, nodes=8, jobs=16, then=then, switches=THIRDS)
        for then in ((), ("nodes",), ("switches", "nodes"))
        for seed in range(2)
    ),
    *(on_leaves(n, nodes=9, leaf=3, jobs=16, load=load) for n, load in enumerate((0.5, 0.8, None))),
]


@pytest.mark.parametrize("problem", SMALL, ids=range(len(SMALL)))
def test_bounds_and_answers_agree_with_those_of_cp_sat(problem):
    result, other = (solve(problem, name, budget=Budget(work=1)) for name in (SOLVER, "cp-sat"))
    agree(result, other)


def agree(result, other):
    """Check that neither answer is beyond the bound of the other."""
    assert result.verified
    assert result.objective <= other.bound
    assert other.objective <= result.bound


LARGE = {
    "devices": with_devices(1, nodes=90, jobs=200, weights=1000),
    "leaves": on_leaves(1, nodes=60, leaf=6, jobs=60),
    "fragmentation": with_devices(2, nodes=70, jobs=50, then=["fragmentation"]),
}


@pytest.mark.parametrize("kind", LARGE)
def test_the_bound_holds_wherever_work_ends(kind):
    whole = solve(LARGE[kind], SOLVER, budget=Budget(work=0.6))
    assert whole.gap < 0.01 or kind != "devices"
    for share in np.geomspace(1e-4, 1, 8):
        agree(solve(LARGE[kind], SOLVER, budget=Budget(work=share * whole.work)), whole)


@pytest.mark.parametrize("kind", LARGE)
def test_the_same_work_gives_the_same_answer(kind):
    one, other = (solve(LARGE[kind], SOLVER, budget=Budget(work=0.2), seed=7) for _ in range(2))
    assert (one.objective, one.bound, one.work) == (other.objective, other.bound, other.work)
    assert one.solution == other.solution


def test_a_placement_found_while_the_work_runs_out_counts():
    problem = with_devices(0, nodes=90, jobs=200, weights=1000)
    problem = replace(problem, chunks=np.ones_like(problem.chunks))
    first, later = (solve(problem, SOLVER, budget=Budget(work=work)) for work in (1e-9, 0.02))
    assert later.work > 0.02
    assert later.objective > first.objective


def test_jobs_of_weight_0_are_placed_where_they_fit():
    problem = NodePlacement(
        ["cores"], free=[[8]], chunks=[1, 1, 1], demand=[[5], [5], [3]], weights=[0, 2, 0]
    )
    result = solve(problem, SOLVER)
    assert result.solution.nodes == ((), (0,), (0,))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_gangs_are_placed_whole_in_the_bound(seed):
    rng = random.Random(seed)
    chunks = [rng.choice([1, 2, 5, 9, 14]) for _ in range(30)]
    problem = NodePlacement(
        ["cores", "memory"],
        [[rng.choice([2, 4, 4]), 8] for _ in range(60)],
        chunks,
        [[rng.choice([1, 2, 3, 4]), rng.choice([1, 2, 6])] for _ in chunks],
        weights=[rng.randint(1, 1000) * size for size in chunks],
        licences=[30],
        licences_of=[[rng.randint(0, 2)] for _ in chunks],
    )
    result = solve(problem, SOLVER, budget=Budget(work=1))
    agree(result, solve(problem, "cp-sat", budget=Budget(work=3)))
    assert result.gap < 1e-3


def test_a_gang_that_does_not_fit_leaves_room_for_others():
    # fractions of both large jobs would fill the nodes
    problem = NodePlacement(
        ["cores"], free=[[1]] * 10, chunks=[7, 7, 2], demand=[[1]] * 3, weights=[70, 70, 10]
    )
    instance, progress = Instance(problem), Progress(Budget(), None)
    packing = Packing(instance, progress, Plan(instance))
    packing.relax()
    assert packing.bound == 100
    for _ in packing.choose():
        pass
    assert packing.bound == packing.plan.value == 80


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_gangs_on_nodes_that_all_differ_are_chosen_and_proven(seed):
    rng = random.Random(seed)
    problem = NodePlacement(
        ["cores", "memory"],
        [[rng.randint(16, 64), rng.randint(64, 256)] for _ in range(250)],
        [rng.randint(1, 32) for _ in range(40)],
        [[rng.randint(8, 64), rng.randint(1, 128)] for _ in range(40)],
        weights=[rng.randint(1, 10**5) for _ in range(40)],
        most_per_node=[1] * 40,
    )
    result = solve(problem, SOLVER, budget=Budget(work=3))
    agree(result, solve(problem, "cp-sat", budget=Budget(work=1), hint=result.solution))
    assert result.gap < 5e-3
