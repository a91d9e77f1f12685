"""Plans on nodes of low weight, and on nodes in use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.slurm.node_weights import on_lighter_nodes
from optsched.solvers.solving import solve

WEIGHTS = np.array([20, 20, 1, 1, 5, 1])
"""Of two fat nodes on a leaf switch of their own, and four others on two."""

FULL = [[8, 9]] * 3 + [[0, 9]] + [[8, 9]] * 2
"""What is free where the fourth node has no core left."""


def problem_of(**fields) -> NodePlacement:
    jobs = len(fields["chunks"])
    usual = {
        "resources": ["cores", "memory"],
        "free": np.array([[8, 100]] * 2 + [[8, 10]] * 4),
        "switches": ["fat", "fat", "one", "one", "two", "two"],
        "demand": np.array([[1, 1]] * jobs),
        "then": ["switches"],
    }
    return NodePlacement(**usual | fields)


def at(*nodes: tuple[int, ...]) -> Placements:
    return Placements(nodes, tuple(((),) * len(each) for each in nodes))


@pytest.mark.parametrize(
    ("fields", "before", "after"),
    [
        ({"chunks": [1]}, [(0,)], [(2,)]),
        ({"chunks": [2], "most_per_node": [1]}, [(0, 1)], [(2, 3)]),  # to another switch
        ({"chunks": [2], "exclusive": [0]}, [(0, 1)], [(2, 2)]),
        ({"chunks": [1], "demand": [[1, 50]]}, [(1,)], [(1,)]),  # which needs the memory
        ({"chunks": [1], "kinds": list("aabbbb"), "allowed": [["a"]]}, [(1,)], [(1,)]),
        ({"chunks": [3], "most_per_node": [1]}, [(0, 1, 2)], [(0, 2, 3)]),  # no further switch
        ({"chunks": [1, 1], "exclusive": [0], "busy": [2]}, [(0,), (3,)], [(5,), (2,)]),
        ({"chunks": [1], "devices": [[1000]] * 6, "share": [1000]}, [(0,)], [(0,)]),
        # of nodes of the same weight, to those in use
        ({"chunks": [1], "busy": [5]}, [(2,)], [(5,)]),
        ({"chunks": [4], "busy": [3], "most_per_node": [2]}, [(2, 2, 5, 5)], [(2, 2, 3, 3)]),
        ({"chunks": [1, 1], "exclusive": [0]}, [(2,), (5,)], [(2,), (5,)]),
        ({"chunks": [1], "busy": [3], "free": FULL}, [(2,)], [(2,)]),
    ],
)
def test_jobs_move_to_the_lightest_nodes_on_as_many_switches(fields, before, after):
    problem = problem_of(**fields)
    placements = at(*before)
    if problem.share.any():
        placements = placements._replace(devices=(((0,),),))
    found = on_lighter_nodes(problem, placements, WEIGHTS)
    assert problem.violations(found) == []
    assert list(found.nodes) == after
    assert problem.objective(found) >= problem.objective(placements)


@given(st.data())
def test_moves_keep_the_objective_and_lower_the_weight(data):
    jobs = data.draw(st.integers(1, 5))
    numbers = st.integers(1, 4)
    each = st.lists(numbers, min_size=jobs, max_size=jobs)
    problem = problem_of(
        chunks=data.draw(each),
        demand=np.array([data.draw(each), data.draw(each)]).T * [2, 6],
        most_per_node=[n - 1 for n in data.draw(each)],
        exclusive=[job for job in range(jobs) if data.draw(st.booleans())],
        busy=[1] if data.draw(st.booleans()) else [],
        span=[data.draw(st.sampled_from(["anywhere", "switch"])) for _ in range(jobs)],
    )
    plan = solve(problem, "best-fit").solution
    found = on_lighter_nodes(problem, plan, WEIGHTS)
    assert problem.violations(found) == []
    assert [len(nodes) for nodes in found.nodes] == [len(nodes) for nodes in plan.nodes]
    assert problem.objective(found) >= problem.objective(plan)

    def weight(placements):
        return sum(WEIGHTS[list(nodes)].sum() for nodes in placements.nodes if nodes)

    def idle(placements):
        return len({*sum(placements.nodes, ())} - {*problem.busy})

    assert (weight(found), idle(found)) <= (weight(plan), idle(plan))
