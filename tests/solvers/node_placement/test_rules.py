"""Rules of node placement, against plain loops over nodes as the rules are stated."""

import numpy as np
import pytest
from hypothesis import given

import optsched
from optsched.content import bundled
from optsched.models import NodePlacement
from optsched.models.snapshot_file import read_snapshot
from optsched.solvers.node_placement.fit_rules import (
    BestFit,
    DevicePacking,
    FirstFit,
    LeastFragmentation,
    TreeBestFit,
)
from optsched.testing import node_placements

CLASSES = (FirstFit, BestFit, DevicePacking, TreeBestFit, LeastFragmentation)
RULES = ("first-fit", "best-fit", "device-packing", "tree-best-fit", "least-fragmentation")


@pytest.mark.parametrize("rule", CLASSES)
@given(problem=node_placements())
def test_every_answer_of_a_rule_is_feasible(rule, problem):
    for order in ("queue", "largest"):
        result = optsched.solve(problem, rule(order=order))
        assert problem.violations(result.solution) == []
        assert result.objective == problem.objective(result.solution)


def first_fit(problem):
    """Place each chunk on the first node with room; only resources."""
    free, nodes = problem.free.copy(), []
    for job, chunks in enumerate(problem.chunks.tolist()):
        left, at = free.copy(), []
        for node in range(len(free)):
            while len(at) < chunks and (left[node] >= problem.demand[job]).all():
                left[node] -= problem.demand[job]
                at.append(node)
        free = left if len(at) == chunks else free
        nodes.append(tuple(at) if len(at) == chunks else ())
    return tuple(nodes)


@pytest.mark.parametrize("seed", range(20))
def test_first_fit_places_on_the_first_nodes_with_room(seed):
    rng = np.random.default_rng(seed)
    jobs, nodes = int(rng.integers(1, 9)), int(rng.integers(1, 7))
    problem = NodePlacement(
        resources=["cores", "memory"],
        free=rng.integers(0, 9, (nodes, 2)),
        chunks=rng.integers(1, 4, jobs),
        demand=rng.integers(1, 5, (jobs, 2)),
    )
    assert optsched.solve(problem, "first-fit").solution.nodes == first_fit(problem)


@pytest.mark.parametrize("rule", RULES)
def test_a_job_that_no_node_can_hold_is_left_out_and_the_next_placed(rule):
    problem = NodePlacement(["cores"], [[4]], [1, 1], [[5], [4]])
    assert optsched.solve(problem, rule).solution.nodes == ((), (0,))


def test_the_rule_of_the_tree_splits_a_job_that_has_room_in_one_leaf():
    """A real Slurm did the same; the optimum is one switch less."""
    problem = read_snapshot(bundled("models") / "node-placement" / "two-leaves.json").problem
    rule = optsched.solve(problem, "tree-best-fit").solution
    assert problem.measures(rule) == {"weight": 4, "switches": 5, "nodes": 11}
    exact = optsched.solve(problem, "cp-sat").solution
    assert problem.measures(exact)["switches"] == 4


DEVICES = {"devices": [[1000], [1000, 1000]], "share": [500]}


@pytest.mark.parametrize(
    ("rule", "devices", "node"),
    [("device-packing", DEVICES, 0), ("best-fit", {}, 1), ("first-fit", {}, 0)],
)
def test_best_fit_fills_the_fullest_node_and_device_packing_that_with_fewest_devices(
    rule, devices, node
):
    problem = NodePlacement(["cores"], [[8], [6]], [1], [[2]], **devices)
    assert optsched.solve(problem, rule).solution.nodes == ((node,),)
