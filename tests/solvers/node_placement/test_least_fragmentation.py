"""Least fragmentation by column generation, against enumeration and CP-SAT."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from solvers.drawn import with_devices

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
    return Progress(Budget(**limits), None)


def fragmenting(seed, **numbers):
    return with_devices(seed, **numbers, then=["fragmentation"])


@settings(max_examples=50)
@given(node_placements(), st.booleans())
def test_the_answer_is_that_of_cp_sat(problem, weightless):
    assume(problem.share.any())
    later = [name for name in problem.then if name != "fragmentation"]
    weights = problem.weights if weightless else problem.weights + 1
    problem = replace(problem, then=["fragmentation", *later], span=None, weights=weights)
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
    problem = fragmenting(seed, nodes=6, jobs=(6, 12)[seed % 2])
    problem = replace(problem, weights=[1] * len(problem.chunks))
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
    problem = fragmenting(1, nodes=90, jobs=jobs)
    weight_only = solve(replace(problem, then=()), SOLVER, budget=Budget(work=1))
    search = FragmentationSearch(problem, progress(work=1), weight_only.solution)
    for _ in search.run():
        pass
    before, after = (
        problem.measures(one) for one in (weight_only.solution, search.plan.placements())
    )
    assert after["weight"] == before["weight"]
    assert search.bound <= after["fragmentation"]
    assert search.proven or after["fragmentation"] < before["fragmentation"]


def test_a_weight_that_is_not_proven_bounds_no_fragmentation():
    problem = fragmenting(3, nodes=90, jobs=300)
    result = solve(problem, SOLVER, budget=Budget(work=0.01))
    most = problem.radices[0]
    assert result.verified
    assert result.bound % most == 0
    assert result.bound >= most * (problem.measures(result.solution)["weight"] + 1)
