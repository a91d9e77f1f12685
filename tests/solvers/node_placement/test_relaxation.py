"""Bounds and roundings of node placements beside the optimum of CP-SAT."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings

from optsched import Budget, solve
from optsched.models.node_placement import NodePlacement
from optsched.solvers.anytime import Progress
from optsched.solvers.node_placement._packing import dive
from optsched.solvers.node_placement._plan import Plan
from optsched.solvers.node_placement._relaxation import Relaxation
from optsched.solvers.node_placement._types import Instance
from optsched.solvers.result import Status
from optsched.testing import node_placements


def relaxed(problem):
    return Relaxation(Instance(problem), Progress(Budget(), None))


ANYWHERE = {"then": (), "span": None, "levels": (), "groups": (), "most_groups": None}


@settings(max_examples=150)
@given(node_placements(max_jobs=6, max_nodes=4))
def test_the_bound_holds_and_roundings_are_feasible(problem):
    problem = replace(problem, **ANYWHERE, segments=None)
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
    shares = {"devices": [[1000]], "share": [300] * 3}
    problem = NodePlacement(
        ["cores"], [[9]], [1] * 3, [[1], [2], [2]], weights=[9, 5, 5], **shares
    )
    relaxation = relaxed(problem)
    relaxation.tighten(0.0, 1.0)
    assert relaxation.bound == pytest.approx(19)
