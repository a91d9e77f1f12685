"""Bounds and roundings of node placements beside the optimum of CP-SAT."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import Budget, solve
from optsched.models.node_placement import NodePlacement
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._packing import dive
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._relaxation import Relaxation
from optsched.solvers.node_placement._types import Instance
from optsched.solvers.result import Status


@st.composite
def placements(draw):
    """Draw few nodes and jobs, with devices, kinds, gangs, limits, own nodes and licences."""
    nodes, jobs, resources = (draw(st.integers(1, most)) for most in (4, 6, 3))

    def rows(number, values):
        return draw(st.lists(values, min_size=number, max_size=number))

    def some(number):
        return tuple(sorted(draw(st.sets(st.integers(0, number - 1), max_size=2))))

    amounts = st.lists(st.integers(0, 8), min_size=resources, max_size=resources)
    needs = st.lists(st.integers(0, 4), min_size=resources, max_size=resources)
    shares = st.sampled_from([0, 0, 250, 300, 500, 700, 1000, 2000])
    return NodePlacement(
        resources=[f"r{number}" for number in range(resources)],
        free=np.array(rows(nodes, amounts)),
        chunks=rows(jobs, st.integers(1, 4)),
        demand=np.array(rows(jobs, needs)),
        weights=rows(jobs, st.integers(0, 9)),
        most_per_node=rows(jobs, st.integers(0, 2)),
        devices=rows(nodes, st.lists(st.sampled_from([0, 400, 650, 1000, 1000]), max_size=3)),
        share=rows(jobs, shares),
        kinds=["a", *rows(nodes - 1, st.sampled_from("ab"))],
        allowed=rows(jobs, st.none() | st.just(("a",))),
        exclusive=some(jobs),
        busy=some(nodes),
        licences=[3],
        licences_of=np.array(rows(jobs, st.integers(0, 2))).reshape(jobs, 1),
    )


def relaxed(problem):
    budget = Budget()
    return Relaxation(Instance(problem), Progress(budget, None))


@settings(max_examples=150)
@given(placements())
def test_the_bound_holds_and_roundings_are_feasible(problem):
    best = solve(problem, "cp-sat")
    assert best.status is Status.OPTIMAL
    relaxation = relaxed(problem)
    instance = relaxation.instance
    if not instance.jobs_of:
        assert best.objective == 0
        return
    relaxation.tighten(0.0, 1.0)
    assert relaxation.bound >= best.objective - 1e-6
    roundings = [Counter(), dive(relaxation)]
    assert relaxation.solve()
    roundings.append(relaxation.solve_integer(1.0)[1])
    for chosen in roundings:
        plan = Plan(instance)
        plan.place_contents(relaxation.spread(chosen))
        plan.fill_up()
        plan.fill(instance.weightless)
        solution = plan.placements()
        assert problem.violations(solution) == []
        assert problem.objective(solution) == plan.value <= best.objective


def test_a_better_type_of_few_chunks_replaces_no_other():
    problem = NodePlacement(
        resources=["cores"],
        free=np.array([[9]]),
        chunks=[1, 1, 1],
        demand=np.array([[1], [2], [2]]),
        weights=[9, 5, 5],
        devices=[[1000]],
        share=[300, 300, 300],
    )
    relaxation = relaxed(problem)
    relaxation.tighten(0.0, 1.0)
    assert relaxation.bound == pytest.approx(19)
