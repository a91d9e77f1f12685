"""Few leaf switches of jobs that share nodes: feasible, no weight lost, bounds that hold."""

from __future__ import annotations

import dataclasses
import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import Budget
from optsched.models.node_placement import NodePlacement
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._leaf_bound import LeafBound, cheapest
from optsched.solvers.node_placement._leaf_search import LeafSearch, can_search
from optsched.solvers.node_placement._packing import Packing
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._types import Instance
from optsched.solvers.node_placement.fit_rules import TreeBestFit
from optsched.solvers.result import Status
from optsched.solvers.solving import solve
from optsched.testing import node_placements

SOLVER = "column-generation"


def progress():
    return Progress(Budget(), None)


def shared(seed, *, nodes, leaf, jobs, load=None, sizes=(1, 2, 3, 6)):
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


def bounds_of(problem, target):
    """Return the bound of the weight, and that of the switches at this weight."""
    instance = Instance(problem)
    packing = Packing(instance, progress(), Plan(instance))
    packing.relax()
    limits = LeafBound(instance, packing, progress(), 1.0)
    limits.raise_to(target, 1.0)
    return packing.bound, limits.bound


def fewest_at(problem, weight):
    """Return the fewest switches of placements of a weight, by CP-SAT."""
    result = solve(problem, "cp-sat")
    assert result.status is Status.OPTIMAL
    measures = problem.measures(result.solution)
    assert measures["weight"] <= weight
    return measures["switches"] if measures["weight"] == weight else None


@settings(max_examples=60)
@given(node_placements(), st.integers(0, 2**32))
def test_an_answer_never_gets_worse(problem, seed):
    then = tuple(name for name in problem.then if name != "fragmentation")
    problem = dataclasses.replace(problem, then=then)
    start = TreeBestFit().place(problem)
    if not can_search(problem) or not any(start.nodes):
        return
    search = LeafSearch(problem, start, progress(), seed)
    search.run(1.0, 40, problem.objective(start) + 10**9)
    found = search.placements()
    assert problem.violations(found) == []
    assert problem.objective(found) == search.value
    assert search.value >= problem.objective(start)


@settings(max_examples=60)
@given(node_placements(max_jobs=4))
def test_the_bound_is_at_most_the_fewest_switches(problem):
    if problem.switches is None or not can_search(problem):
        return
    named = {name: getattr(problem, name) for name in vars(problem) if name != "_checked"}
    problem = NodePlacement(**named | {"then": ("switches",)})
    if not Instance(problem).jobs_of:
        return
    weight, least = bounds_of(problem, 100)
    fewest = fewest_at(problem, weight)
    assert fewest is None or least <= fewest


@pytest.mark.parametrize("seed", range(6))
def test_bounds_and_answers_agree_with_those_of_cp_sat(seed):
    load = (0.5, 0.8, None)[seed % 3]
    problem = shared(seed, nodes=9, leaf=3, jobs=16, load=load)
    other = solve(problem, "cp-sat", budget=Budget(work=0.5))
    result = solve(problem, SOLVER, budget=Budget(work=0.5))
    assert result.verified
    assert result.objective <= other.bound
    assert other.objective <= result.bound


@pytest.mark.parametrize(("sizes", "most"), [((1, 2, 3, 6), 0), ((8, 16, 24, 48), 0.1)])
def test_many_jobs_on_many_leaves(sizes, most):
    problem = shared(1, nodes=240, leaf=8, jobs=200, load=0.75, sizes=sizes)
    result = solve(problem, SOLVER, budget=Budget(work=0.8))
    measures = problem.measures(result.solution)
    least = measures["weight"] * problem.radices[0] - result.bound
    assert measures["weight"] == problem.weights.sum()
    assert least <= measures["switches"] <= (1 + most) * least
    rule = problem.measures(TreeBestFit(order="largest").place(problem))
    assert (rule["weight"], -rule["switches"]) <= (measures["weight"], -measures["switches"])


def test_a_job_on_two_leaves_is_proven_by_its_room_alone():
    # 9 chunks of 2 cores: 8 fit on the larger leaf; the other job fits beside
    problem = NodePlacement(
        ["cores"],
        free=[[8], [8], [9], [3]],
        chunks=[9, 1],
        demand=[[2], [3]],
        then=("switches",),
        switches=["a", "a", "b", "b"],
    )
    assert bounds_of(problem, 3) == (int(problem.weights.sum()), 3)


def test_leaves_that_jobs_want_are_counted_once():
    # alone, each job needs one leaf; the leaf that holds a whole job has room for one of them
    problem = NodePlacement(
        ["cores"],
        free=[[6], *[[2]] * 6],
        chunks=[3, 3],
        demand=[[2], [2]],
        then=("switches",),
        switches=["large", *"abcdef"],
    )
    assert bounds_of(problem, 4) == (int(problem.weights.sum()), 4)
    result = solve(problem, SOLVER)
    assert result.status is Status.OPTIMAL
    assert problem.measures(result.solution)["switches"] == 4


@settings(max_examples=100)
@given(st.data())
def test_the_cheapest_leaves_are_those_of_all_ways(data):
    leaves = data.draw(st.integers(1, 4))
    room = data.draw(st.lists(st.integers(0, 4), min_size=leaves, max_size=leaves))
    if not sum(room):
        return
    chunks = data.draw(st.integers(1, min(sum(room), 7)))
    rents = data.draw(st.lists(st.floats(0, 2), min_size=leaves, max_size=leaves))
    used = np.empty(leaves, dtype=np.int64)
    taken = np.empty((leaves, chunks), dtype=np.bool_)
    found = cheapest(
        np.array(rents), np.array(room), chunks, np.arange(leaves), np.empty(chunks), taken, used
    )

    def cost(way):
        return sum(1 + rent * there for rent, there in zip(rents, way) if there)

    ways = itertools.product(*(range(most + 1) for most in room))
    assert found == pytest.approx(min(cost(way) for way in ways if sum(way) == chunks))
    assert used.sum() == chunks
    assert (used <= room).all()
    assert cost(used.tolist()) == pytest.approx(found)


@pytest.mark.parametrize("seed", range(2))
def test_the_bound_holds_wherever_work_ends(seed):
    problem = shared(seed, nodes=60, leaf=6, jobs=60)
    whole = solve(problem, SOLVER, budget=Budget(work=0.5))
    for share in np.geomspace(1e-3, 1, 6):
        result = solve(problem, SOLVER, budget=Budget(work=share * whole.work))
        assert result.verified
        assert result.objective <= whole.bound
        assert whole.objective <= result.bound


def test_the_same_work_gives_the_same_answer():
    problem = shared(3, nodes=60, leaf=6, jobs=60)
    one, other = (solve(problem, SOLVER, budget=Budget(work=0.2), seed=5) for _ in range(2))
    assert (one.objective, one.bound, one.work) == (other.objective, other.bound, other.work)
    assert one.solution == other.solution
