"""Switch groups: optimal, bounded, warm-started, deterministic, and for whole nodes only."""

import random

import numpy as np
import pytest
from hypothesis import given, settings

from optsched import Budget
from optsched.models.node_placement import NodePlacement
from optsched.solvers.node_placement import _groups
from optsched.solvers.result import Limit, Status
from optsched.solvers.solving import solve

from .whole_nodes import optimum_of, placements_of_whole_nodes, whole_nodes


def random_problem(seed, *, leaves, jobs, largest=12, room=8, **options):
    """Draw more jobs than fit, so that weights choose among them."""
    rng = random.Random(seed)
    sizes = [rng.randint(1, largest) for _ in range(jobs)]
    weights = [size * rng.randint(1, 3) for size in sizes]
    return whole_nodes([rng.randint(1, room) for _ in range(leaves)], sizes, weights, **options)


@settings(max_examples=300)
@given(placements_of_whole_nodes())
def test_the_answer_is_that_of_trying_everything(problem):
    result = solve(problem, "switch-groups")
    assert result.status is Status.OPTIMAL, result.message
    assert result.objective == optimum_of(problem)


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_larger_ones_agree_with_cp_sat(seed, blocks):
    leaves = 6
    options = {"blocks": [leaf % 2 for leaf in range(leaves)], "span": "block"} if blocks else {}
    problem = random_problem(seed, leaves=leaves, jobs=7, room=5, largest=7, **options)
    result = solve(problem, "switch-groups")
    other = solve(problem, "cp-sat", budget=Budget(work=20))
    assert result.status is Status.OPTIMAL
    assert other.objective <= result.objective <= other.bound


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=pytest.mark.long)])
def test_the_bound_holds_wherever_work_ends(seed):
    problem = random_problem(seed, leaves=40, jobs=50, largest=20)
    whole = solve(problem, "switch-groups")
    assert whole.status is Status.OPTIMAL
    limits = set()
    for share in np.linspace(0, 1.1, 23)[1:]:
        result = solve(problem, "switch-groups", budget=Budget(work=share * whole.work))
        limits.add(result.limit)
        assert result.verified
        assert result.objective <= whole.objective <= result.bound
    assert limits == {None, Limit.WORK}


def test_too_many_sets_of_weights_leave_the_proven_weight(monkeypatch):
    problem = random_problem(1, leaves=60, jobs=60)
    whole = solve(problem, "switch-groups")
    monkeypatch.setattr(_groups, "MOST_SLACK", 0)
    result = solve(problem, "switch-groups")
    assert (result.status, result.limit) == (Status.FEASIBLE, Limit.MEMORY)
    assert result.objective <= whole.objective <= result.bound
    radix = problem.radices[0]
    assert -(-result.bound // radix) == -(-result.objective // radix)


GPUS = {
    "resources": ["cores"],
    "free": [[64]] * 4,
    "chunks": [1, 2],
    "demand": [[8], [8]],
    "then": ("switches",),
    "switches": [*"aabb"],
}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"then": ()}, "whole nodes whose then is switches alone; here then is empty"),
        ({"then": ("switches", "nodes")}, "here then is switches, nodes"),
        ({"licences": [3], "licences_of": [[1], [0]]}, "jobs need licences"),
        (
            {"levels": ["racks"], "groups": [[*"aabb"]], "segments": [[0], [2]]},
            "levels limit the groups of jobs",
        ),
        ({}, "two chunks of job 2 fit on node 0"),
        ({"most_per_node": [1, 1]}, "chunks of two jobs may fit on node 0"),
        (
            {"exclusive": [0, 1], "most_per_node": [1, 1], "kinds": [*"xxyy"],
             "allowed": [None, ["x"]]},
            "jobs 1 and 2 have some of their nodes in common",
        ),
        (
            {"exclusive": [0, 1], "most_per_node": [1, 1], "span": ["switch", "anywhere"]},
            "jobs 1 and 2 share nodes and differ in their span",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("solver", ["switch-groups", "leaf-best-fit"])
def test_other_problems_are_refused(solver, fields, reason):
    result = solve(NodePlacement(**GPUS | fields), solver)
    assert result.status is Status.NO_SOLUTION
    assert reason in result.message


ON_NODES = {"most_per_node": [1, 1]}


@pytest.mark.parametrize(
    ("fields", "whole"),
    [
        ({"exclusive": [0, 1]}, True),
        ({"exclusive": [0, 1], "busy": [0, 2]}, True),
        ({"exclusive": [1], "demand": [[8], [8]]}, True),
        ({"demand": [[40], [33]]}, True),
        ({"demand": [[40], [24]]}, False),
        ({"devices": [[1000] * 3] * 4, "share": [2000, 3000]}, True),
        ({"devices": [[1000] * 5] * 4, "share": [2000, 3000]}, False),
        ({"devices": [[1000, 600]] * 4, "share": [1000, 700]}, True),
        ({"devices": [[1000, 700]] * 4, "share": [1000, 700]}, False),
        ({"devices": [[900]] * 4, "share": [400, 600]}, True),
        ({"devices": [[1000]] * 4, "share": [400, 600]}, False),
        ({"devices": [[1000]] * 4, "share": [1000, 0]}, False),
        ({"exclusive": [0, 1], "devices": [[500, 300]] * 4, "share": [300, 400]}, True),
    ],
)
def test_nodes_that_are_whole_or_that_two_jobs_can_share_are_seen_from_the_data(fields, whole):
    problem = NodePlacement(**GPUS | ON_NODES | fields)
    result = solve(problem, "switch-groups")
    if whole:
        best = solve(problem, "cp-sat").objective
        assert (result.status, result.objective) == (Status.OPTIMAL, best)
    else:
        assert "chunks of two jobs may fit on node 0" in result.message
