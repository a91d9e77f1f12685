from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from optsched import load_snapshot, solve
from optsched.content import bundled
from optsched.models import JointAllocation, JointPlacement
from optsched.solvers.joint_allocation.one_by_one import OneByOne
from optsched.solvers.result import Status
from optsched.testing import joint_allocations


def rows(problem, job):
    """Yield every way to place one job."""
    counts = range(int(problem.asked[job]) + 1)
    for row in product(counts, repeat=problem.nodes):
        if sum(row) == problem.asked[job]:
            yield row


def alone(problem):
    """Return the problem with jobs that may be left out, whatever the goal is."""
    return JointAllocation.from_json(problem.to_json() | {"goal": "processors"})


@settings(max_examples=120, deadline=None)
@given(joint_allocations(max_jobs=3))
def test_each_job_loses_as_little_as_it_can_beside_those_before_it(problem):
    free = alone(problem)
    chosen = OneByOne().place(free).processes
    for job, row in enumerate(chosen):
        processes = chosen.copy()
        processes[job:] = 0
        losses = []
        for other in rows(problem, job):
            processes[job] = other
            if not free.violations(JointPlacement(processes)):
                losses.append(free.penalised_times(JointPlacement(processes))[job])
        assert row.any() == bool(losses)
        if losses:
            processes[job] = row
            assert free.penalised_times(JointPlacement(processes))[job] == min(losses)


@settings(max_examples=150, deadline=None)
@given(joint_allocations(max_jobs=4, max_nodes=3, max_processors=4))
def test_answers_are_feasible(problem):
    placement = OneByOne().place(problem)
    if placement is None:
        assert problem.goal == "penalty"
        placement = OneByOne().place(alone(problem))
        assert not placement.processes.any(axis=1).all()
        problem = alone(problem)
    assert problem.violations(placement) == []


def everything(problem):
    """Return the optimum over every placement there is; none if nothing is feasible."""
    zero = (0,) * problem.nodes
    best = None
    for choice in product(*([zero, *rows(problem, j)] for j in range(len(problem.asked)))):
        placement = JointPlacement(
            np.array(choice, dtype=np.int64).reshape(len(problem.asked), problem.nodes)
        )
        if not problem.violations(placement):
            value = problem.objective(placement)
            best = value if best is None else min(best, value)
    return best


@pytest.mark.parametrize("solver", ["cp-sat", "highs"])
def test_generic_solvers_find_the_optimum_of_everything_there_is(solver):
    @settings(max_examples=25, deadline=None)
    @given(joint_allocations(max_jobs=2, max_nodes=2, max_processors=3))
    def check(problem):
        result = solve(problem, solver)
        optimum = everything(problem)
        assert result.status is (Status.INFEASIBLE if optimum is None else Status.OPTIMAL)
        assert result.objective == optimum
        heuristic = solve(problem, "one-by-one")
        assert heuristic.objective is None or heuristic.objective >= optimum

    check()


def test_equal_processors_are_taken_in_the_order_of_the_nodes():
    machine = {"nodes": 3, "processors": 4, "capacity": [10]}
    held = [[0, 3, 0, 50, 1], [1, 2, 0, 50, 4]]
    jobs = {"asked": [4], "walltimes": [60], "demands": [[2]]}
    problem = JointAllocation(**machine, held=held, **jobs)
    # one on node 0, one on node 1 and four on node 2 are free of any loss
    assert OneByOne().place(problem).processes.tolist() == [[1, 1, 2]]


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("worked-example", 4),
        ("later-windows", 2),
        ("all-start", 400_000),
        ("two-resources", 4),
        ("queue-64x4", 16),
        ("all-start-64x4", 210_664_000),
    ],
)
def test_its_answers_to_the_reference_snapshots_are_as_the_page_says(name, objective):
    problem = load_snapshot(bundled("models") / "joint-allocation" / f"{name}.json")
    result = solve(problem, "one-by-one")
    assert (result.objective, result.verified) == (objective, True)


def test_a_job_does_not_push_those_before_it_over_the_threshold():
    # A is at the threshold as long as nobody else comes to its node; B would not mind
    machine = {"nodes": 1, "processors": 3, "capacity": [10], "held": [[0, 1, 0, 100, 6]]}
    jobs = {"asked": [1, 1], "walltimes": [100, 1000], "demands": [[5], [1]]}
    problem = JointAllocation(**machine, **jobs, threshold=1100)
    assert OneByOne().place(problem).processes.tolist() == [[1], [0]]
    generous = JointAllocation(**machine, **jobs, threshold=1200)
    assert OneByOne().place(generous).processes.tolist() == [[1], [1]]
