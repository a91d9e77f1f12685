"""Column generation: optimal, bounded, warm-started, deterministic, for every node placement."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optsched import Budget
from optsched.models.node_placement import NodePlacement
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._leaf_bound import LeafBound, cheapest
from optsched.solvers.node_placement._leaf_search import can_search
from optsched.solvers.node_placement._packing import Packing
from optsched.solvers.node_placement._plan import PartialPlacement
from optsched.solvers.node_placement._types import Instance
from optsched.solvers.node_placement.fit_rules import TreeBestFit
from optsched.solvers.result import Status
from optsched.solvers.solving import solve
from optsched.testing import node_placements

SOLVER = "column-generation"


def with_devices(seed, *, nodes, jobs, kinds=3, weights=9, **fields):
    """Draw jobs with shares of devices and gangs for partly busy nodes of some kinds."""
    rng = random.Random(seed)
    rooms = [[1000, 1000, 1000, 1000], [1000, 600], [400, 1000], []]
    free = [[rng.randint(4, 16), rng.randint(8, 32)] for _ in range(kinds)]
    devices = [rng.choice(rooms) for _ in range(kinds)]
    kind_of = [rng.randrange(kinds) for _ in range(nodes)]
    demand = [[rng.randint(1, 6), rng.randint(1, 12)] for _ in range(jobs)]
    return NodePlacement(
        ["cores", "memory"],
        [free[kind] for kind in kind_of],
        [rng.choice([1, 1, 2, 5]) for _ in range(jobs)],
        demand,
        weights=[rng.randint(1, weights) * cores for cores, _ in demand],
        most_per_node=[rng.choice([0, 0, 1, 2]) for _ in range(jobs)],
        devices=[devices[kind] for kind in kind_of],
        share=[rng.choice([0, 200, 300, 500, 700, 1000, 2000]) for _ in range(jobs)],
        **fields,
    )


def on_leaves(seed, *, nodes, leaf, jobs, load=None, sizes=(1, 2, 3, 6)):
    """Draw jobs of several chunks on nodes that they share, at most a share of the free cores."""
    rng = random.Random(seed)
    free = [[rng.choice([8, 12, 16]), rng.choice([16, 32])] for _ in range(nodes)]
    chunks, demand = [], []
    for _ in range(jobs):
        chunks.append(rng.choice(sizes))
        demand.append([rng.choice([2, 3, 4, 8]), rng.randint(1, 10)])
        asked = sum(size * cores for size, (cores, _) in zip(chunks, demand))
        if load is not None and asked > load * sum(cores for cores, _ in free):
            break
    return NodePlacement(
        ["cores", "memory"],
        free,
        chunks,
        demand,
        weights=[size * cores for size, (cores, _) in zip(chunks, demand)],
        then=("switches",),
        switches=[str(node // leaf) for node in range(nodes)],
    )


@settings(max_examples=80)
@given(node_placements())
def test_the_answer_is_that_of_cp_sat(problem):
    result, other = solve(problem, SOLVER), solve(problem, "cp-sat")
    assert result.status is other.status is Status.OPTIMAL
    assert result.objective == other.objective


THIRDS = [str(node % 3) for node in range(8)]
SMALL = [
    *(
        with_devices(seed, nodes=8, jobs=16, then=then, switches=THIRDS)
        for then in ((), ("nodes",), ("switches", "nodes"), ("fragmentation",))
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


@pytest.mark.parametrize("kind", ["devices", "leaves"])
def test_the_bound_holds_wherever_work_ends(kind):
    whole = solve(LARGE[kind], SOLVER, budget=Budget(work=0.6))
    assert whole.gap < 0.01 or kind == "leaves"
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
    packing = Packing(instance, progress, PartialPlacement(instance))
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


def bounds_of(problem, target):
    """Return the bound of the weight, and that of the switches at this weight."""
    instance, progress = Instance(problem), Progress(Budget(), None)
    packing = Packing(instance, progress, PartialPlacement(instance))
    packing.relax()
    limits = LeafBound(instance, packing, progress, 1.0)
    limits.raise_to(target, 1.0)
    return packing.bound, limits.bound


@settings(max_examples=60)
@given(node_placements(max_jobs=4))
def test_the_bound_is_at_most_the_fewest_switches(problem):
    if problem.switches is None or not can_search(problem):
        return
    problem = replace(problem, then=("switches",))
    if not Instance(problem).jobs_of:
        return
    weight, least = bounds_of(problem, 100)
    best = solve(problem, "cp-sat")
    assert best.status is Status.OPTIMAL
    measures = problem.measures(best.solution)
    assert (measures["weight"], -measures["switches"]) <= (weight, -least)


@pytest.mark.parametrize(("sizes", "most"), [((1, 2, 3, 6), 0), ((8, 16, 24, 48), 0.1)])
def test_many_jobs_on_many_leaves(sizes, most):
    problem = on_leaves(1, nodes=240, leaf=8, jobs=200, load=0.75, sizes=sizes)
    result = solve(problem, SOLVER, budget=Budget(work=0.8))
    measures = problem.measures(result.solution)
    least = measures["weight"] * problem.radices[0] - result.bound
    assert measures["weight"] == problem.weights.sum()
    assert least <= measures["switches"] <= (1 + most) * least
    rule = problem.measures(TreeBestFit(order="largest").place(problem))
    assert (rule["weight"], -rule["switches"]) <= (measures["weight"], -measures["switches"])


def test_leaves_that_jobs_want_are_counted_once():
    # alone, each job needs one leaf; the leaf that holds a whole job has room for one of them
    free, fewest = [[6], *[[2]] * 6], {"then": ("switches",), "switches": [*"abcdefg"]}
    problem = NodePlacement(["cores"], free, [3, 3], [[2], [2]], **fewest)
    assert bounds_of(problem, 4) == (int(problem.weights.sum()), 4)
    result = solve(problem, SOLVER)
    assert result.status is Status.OPTIMAL
    assert problem.measures(result.solution)["switches"] == 4


@settings(max_examples=100)
@given(st.data())
def test_the_cheapest_leaves_are_those_of_all_ways(data):
    leaves = data.draw(st.integers(1, 4))
    room = data.draw(st.lists(st.integers(0, 4), min_size=leaves, max_size=leaves).filter(any))
    rents = data.draw(st.lists(st.floats(0, 2), min_size=leaves, max_size=leaves))
    chunks = data.draw(st.integers(1, min(sum(room), 7)))
    used, taken = np.empty(leaves, dtype=np.int64), np.empty((leaves, chunks), dtype=np.bool_)
    found = cheapest(
        np.array(rents), np.array(room), chunks, np.arange(leaves), np.empty(chunks), taken, used
    )

    def cost(way):
        return sum(1 + rent * there for rent, there in zip(rents, way) if there)

    ways = itertools.product(*(range(most + 1) for most in room))
    least = min(cost(way) for way in ways if sum(way) == chunks)
    assert [found, cost(used.tolist())] == pytest.approx([least] * 2)
    assert used.sum() == chunks
    assert (used <= room).all()


@settings(max_examples=50)
@given(node_placements(), st.booleans())
def test_the_least_fragmentation_is_that_of_cp_sat(problem, weightless):
    assume(problem.share.any())
    later = [name for name in problem.then if name != "fragmentation"]
    weights = problem.weights if weightless else problem.weights + 1
    problem = replace(problem, then=["fragmentation", *later], span=None, weights=weights)
    result, other = solve(problem, SOLVER), solve(problem, "cp-sat")
    assert result.status is other.status is Status.OPTIMAL
    assert result.verified
    assert result.objective == other.objective


@pytest.mark.parametrize("jobs", [50, pytest.param(70, marks=pytest.mark.long)])
def test_many_nodes_are_left_with_less_fragmentation(jobs):
    problem = with_devices(3, nodes=90, jobs=jobs, then=["fragmentation"])
    before, after = (
        problem.measures(solve(one, SOLVER, budget=Budget(work=1)).solution)
        for one in (replace(problem, then=()), problem)
    )
    assert after["weight"] == before["weight"]
    assert after["fragmentation"] < before["fragmentation"]


def test_a_weight_that_is_not_proven_bounds_no_fragmentation():
    problem = with_devices(3, nodes=90, jobs=300, then=["fragmentation"])
    result = solve(problem, SOLVER, budget=Budget(work=0.01))
    most = problem.radices[0]
    assert result.verified
    assert result.bound % most == 0
    assert result.bound >= most * (problem.measures(result.solution)["weight"] + 1)
