"""Few leaf switches of jobs that share nodes: feasible, no weight lost, bounds that hold."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from solvers.drawn import on_leaves

from optsched import Budget
from optsched.models.node_placement import NodePlacement
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._leaf_bound import LeafBound, cheapest
from optsched.solvers.node_placement._leaf_search import can_search
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


def bounds_of(problem, target):
    """Return the bound of the weight, and that of the switches at this weight."""
    instance = Instance(problem)
    packing = Packing(instance, progress(), Plan(instance))
    packing.relax()
    limits = LeafBound(instance, packing, progress(), 1.0)
    limits.raise_to(target, 1.0)
    return packing.bound, limits.bound


@settings(max_examples=60)
@given(node_placements(max_jobs=4))
def test_the_bound_is_at_most_the_fewest_switches(problem):
    assume(problem.switches is not None and can_search(problem))
    problem = dataclasses.replace(problem, then=("switches",))
    assume(Instance(problem).jobs_of)
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


def test_a_job_on_two_leaves_is_proven_by_its_room_alone():
    # 9 chunks of 2 cores: 8 fit on the larger leaf; the other job fits beside
    free, fewest = [[8], [8], [9], [3]], {"then": ("switches",), "switches": [*"aabb"]}
    problem = NodePlacement(["cores"], free, [9, 1], [[2], [3]], **fewest)
    assert bounds_of(problem, 3) == (int(problem.weights.sum()), 3)


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
