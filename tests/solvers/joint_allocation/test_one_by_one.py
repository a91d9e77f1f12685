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


def stated(problem):
    """Place job by job as the page says, trying every row for its least penalised time."""
    free = alone(problem)
    processes = np.zeros((len(problem.asked), problem.nodes), dtype=np.int64)
    for job in range(len(problem.asked)):
        best = None
        for row in rows(problem, job):
            processes[job] = row
            placement = JointPlacement(processes)
            if free.violations(placement):
                continue
            lost = int(free.penalised_times(placement)[job])
            best = min(best or (lost, row), (lost, row), key=lambda found: found[0])
        processes[job] = 0 if best is None else best[1]
        yield None if best is None else best[0]


@settings(max_examples=80, deadline=None)
@given(joint_allocations(max_jobs=1))
def test_one_job_loses_as_little_as_it_can(problem):
    placement = OneByOne().place(alone(problem))
    assert problem.penalised_times(placement).tolist() == [lost or 0 for lost in stated(problem)]


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


@settings(max_examples=60, deadline=None)
@given(joint_allocations(max_jobs=3, max_nodes=2, max_processors=3))
def test_a_job_that_is_left_out_has_no_place_beside_those_before_it(problem):
    free = alone(problem)
    processes = OneByOne().place(free).processes.copy()
    for job in np.flatnonzero(~processes.any(axis=1)):
        beside = processes.copy()
        beside[job:] = 0
        for row in rows(free, job):
            beside[job] = row
            assert free.violations(JointPlacement(beside)) != []


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


@pytest.mark.parametrize("name", ["worked-example", "later-windows", "two-resources"])
def test_it_leaves_out_what_the_optimum_starts(name):
    problem = load_snapshot(bundled("models") / "joint-allocation" / f"{name}.json")
    assert solve(problem, "one-by-one").objective > solve(problem).objective


def test_a_job_does_not_push_those_before_it_over_the_threshold():
    # A is at the threshold as long as nobody else comes to its node; B would not mind
    machine = {"nodes": 1, "processors": 3, "capacity": [10], "held": [[0, 1, 0, 100, 6]]}
    jobs = {"asked": [1, 1], "walltimes": [100, 1000], "demands": [[5], [1]]}
    problem = JointAllocation(**machine, **jobs, threshold=1100)
    assert OneByOne().place(problem).processes.tolist() == [[1], [0]]
    generous = JointAllocation(**machine, **jobs, threshold=1200)
    assert OneByOne().place(generous).processes.tolist() == [[1], [1]]
