"""Least fragmentation by column generation, against enumeration and CP-SAT."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optsched import Budget
from optsched.models.node_placement import NodePlacement, Placements
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._contents import device_scale, losses_of, with_cost
from optsched.solvers.node_placement._packing import FragmentationSearch
from optsched.solvers.node_placement._pricing import Pricing
from optsched.solvers.node_placement._types import Instance
from optsched.solvers.result import Status
from optsched.solvers.solving import solve
from optsched.testing import node_placements

SOLVER = "column-generation"


def progress(**limits):
    budget = Budget(**limits)
    return Progress(budget, None)


def changed(problem, **fields):
    given = {name: getattr(problem, name) for name in type(problem).__dataclass_fields__}
    return NodePlacement(**given | fields)


def packing(seed, *, nodes, jobs, load=1.0, kinds=4):
    """Draw jobs with shares of devices on partly busy nodes of some kinds."""
    rng = random.Random(seed)
    rooms = [[1000, 1000, 1000, 1000], [1000, 650], [400, 1000, 90], [1000, 1000]]
    free = [[rng.randint(6, 16), rng.randint(8, 32)] for _ in range(kinds)]
    devices = [rng.choice(rooms) for _ in range(kinds)]
    kind_of = [rng.randrange(kinds) for _ in range(nodes)]
    demand = [[rng.randint(1, 5), rng.randint(1, 9)] for _ in range(jobs)]
    return NodePlacement(
        ["cores", "memory"],
        [free[kind] for kind in kind_of],
        [rng.choice([1, 1, 1, 2, 3]) for _ in range(jobs)],
        demand,
        weights=[rng.randint(1, 9) for _ in range(jobs)],
        most_per_node=[rng.choice([0, 0, 0, 1]) for _ in range(jobs)],
        devices=[devices[kind] for kind in kind_of],
        share=[rng.choice([0, 200, 300, 500, 500, 700, 1000, 2000]) for _ in range(jobs)],
        then=["fragmentation"],
    )


@settings(max_examples=50)
@given(node_placements(), st.booleans())
def test_the_answer_is_that_of_cp_sat(problem, weightless):
    assume(problem.share.any())
    later = [name for name in problem.then if name != "fragmentation"]
    weights = problem.weights if weightless else problem.weights + 1
    problem = changed(problem, then=["fragmentation", *later], span=None, weights=weights)
    result, other = solve(problem, SOLVER), solve(problem, "cp-sat")
    assert result.status is other.status is Status.OPTIMAL
    assert result.verified
    assert result.objective == other.objective


@st.composite
def single_nodes(draw):
    """Draw a node with devices, of which some are useless, and a few jobs of one chunk."""
    jobs = draw(st.integers(1, 4))
    share = st.sampled_from([0, 300, 500, 700, 1000, 2000])
    return NodePlacement(
        ["cores", "memory"],
        [[draw(st.integers(2, 8)), draw(st.integers(2, 8))]],
        [1] * jobs,
        [[draw(st.integers(0, 4)), draw(st.integers(0, 4))] for _ in range(jobs)],
        devices=[draw(st.lists(st.sampled_from([1000, 1000, 650, 200]), min_size=1, max_size=3))],
        share=draw(st.lists(share, min_size=jobs, max_size=jobs)),
        then=["fragmentation"],
    )  # fmt: skip


def contents_of(problem):
    """Yield all placements on the one node."""

    def further(job, devices):
        if job == len(problem.chunks):
            yield Placements(tuple((0,) if on is not None else () for on in devices),
                             tuple((on,) if on is not None else () for on in devices))  # fmt: skip
            return
        yield from further(job + 1, [*devices, None])
        share, there = int(problem.share[job]), len(problem.devices[0])
        if share >= 2000:
            ways = [(one, two) for one in range(there) for two in range(one + 1, there)]
        else:
            ways = [(one,) for one in range(there)] if share else [()]
        for way in ways:
            yield from further(job + 1, [*devices, way])

    return (one for one in further(0, []) if not problem.violations(one))


@settings(max_examples=80)
@given(single_nodes(), st.lists(st.integers(-40, 40), min_size=4, max_size=4))
def test_the_best_content_is_that_of_all_contents(problem, tenths):
    instance = Instance(problem, exact=True)
    assume(len(instance.nodes) and problem.share.any())
    prices = np.array(tenths[: len(instance.types.most)]) / 20
    losses, scale = losses_of(instance), device_scale(instance)

    def worth(placements):
        chunks = [job for job, at in enumerate(placements.nodes) if at]
        lost = problem.measures(placements)["fragmentation"] / scale
        return sum(prices[instance.type_of[job]] for job in chunks) - lost

    placeable = instance.type_of >= 0
    best = max(
        worth(one)
        for one in contents_of(problem)
        if all(placeable[job] for job, at in enumerate(one.nodes) if at)
    )
    kind, most = np.array([0]), instance.types.most
    exact, quick = (Pricing(instance, losses, progress()) for _ in "ab")
    exact.price(prices, kind, most, 0.0, 10**6)
    assert exact.bounds[0] == pytest.approx(best)
    content = next(exact.contents(0))
    assert content.counts @ prices - content.cost == pytest.approx(best)
    assert content.cost == pytest.approx(with_cost(instance, losses, content).cost)
    quick.price(prices, kind, most, 0.0, 1)
    assert quick.bounds[0] >= best - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_holds_for_the_placements_that_cp_sat_finds(seed):
    problem = packing(seed, nodes=6, jobs=(6, 12)[seed % 2])
    problem = changed(problem, weights=[1] * len(problem.chunks))
    other = solve(problem, "cp-sat", budget=Budget(work=0.5))
    search = FragmentationSearch(problem, progress(work=0.3), other.solution)
    for _ in search.run():
        pass
    measured = problem.measures(other.solution)
    assert search.weight == measured["weight"]
    assert search.bound <= measured["fragmentation"]
    assert seed % 2 or search.bound > 0
    found = problem.measures(search.plan.placements())
    assert found["weight"] == search.weight
    assert search.bound <= found["fragmentation"] <= measured["fragmentation"]
    if other.status is Status.OPTIMAL:
        assert found["fragmentation"] == measured["fragmentation"]


@pytest.mark.parametrize("jobs", [50, pytest.param(70, marks=pytest.mark.long)])
def test_many_nodes_are_left_with_less_fragmentation(jobs):
    problem = packing(1, nodes=90, jobs=jobs)
    weight_only = solve(changed(problem, then=()), SOLVER, budget=Budget(work=1))
    search = FragmentationSearch(problem, progress(work=1), weight_only.solution)
    for _ in search.run():
        pass
    before, after = (
        problem.measures(one) for one in (weight_only.solution, search.plan.placements())
    )
    assert after["weight"] == before["weight"]
    assert search.bound <= after["fragmentation"]
    assert search.proven or after["fragmentation"] < before["fragmentation"]


def test_the_same_work_gives_the_same_answer():
    problem = packing(2, nodes=70, jobs=50)
    one, other = (solve(problem, SOLVER, budget=Budget(work=0.2), seed=3) for _ in range(2))
    assert (one.objective, one.bound, one.work) == (other.objective, other.bound, other.work)
    assert one.solution == other.solution


def test_a_weight_that_is_not_proven_bounds_no_fragmentation():
    problem = packing(3, nodes=90, jobs=300)
    result = solve(problem, SOLVER, budget=Budget(work=0.01))
    most = problem.radices[0]
    assert result.verified
    assert result.bound % most == 0
    assert result.bound >= most * (problem.measures(result.solution)["weight"] + 1)
