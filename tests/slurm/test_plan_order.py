"""Plans in strict order, with reservations, and on nodes of low weight and in use."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from optsched.models.node_placement.problem import NodePlacement, Placements
from optsched.slurm.node_weights import on_lighter_nodes
from optsched.slurm.reserved import reserve, reserved, starts_now, with_reserved
from optsched.slurm.snapshot import placement_problem
from optsched.slurm.strict import strict
from optsched.solvers.result import Budget
from optsched.solvers.solving import solve

from .conftest import NOW, SITUATIONS, at, job, left_by, posed, queue_of, running


def solved(problem, hint=None):
    return solve(problem, "cp-sat", budget=Budget(work=5), hint=hint)


def fit_together(posed_now, chosen) -> bool:
    """Whether jobs fit, by trying every set of nodes for each of them."""
    problem, requests = posed_now.problem, [posed_now.rows[at].request for at in chosen]
    ways = [combinations(np.flatnonzero(one.nodes).tolist(), one.chunks) for one in requests]
    for places in product(*ways):
        free = problem.free.copy()
        for at, nodes in zip(chosen, places):
            free[list(nodes)] -= problem.demand[at]
        if (free >= 0).all():
            return True
    return False


@settings(max_examples=40, deadline=None)
@given(SITUATIONS)
def test_strict_order_is_the_first_set_of_all(situation):
    queue, supply = posed(*situation)
    now = placement_problem(queue, supply)
    found = strict(now, supply, solved)
    ranks = [(-row.job.priority, row.job.job_id) for row in now.rows]
    chosen: list[int] = []
    for at in sorted(range(len(ranks)), key=ranks.__getitem__):
        if fit_together(now, [*chosen, at]):
            chosen.append(at)
    placed = [] if found.placements is None else found.placements.nodes
    assert [at for at, nodes in enumerate(placed) if nodes] == sorted(chosen)
    assert found.proven == found.of


@settings(max_examples=40, deadline=None)
@given(SITUATIONS, st.integers(1, 3), st.sets(st.integers(1, 6)))
def test_no_plan_delays_the_jobs_that_have_reservations(situation, number, alone):
    queue, supply = posed(*situation)
    alike = (replace(each, exclusive="node" * (each.job_id in alone)) for each in queue.jobs)
    queue = queue_of(*alike)
    plain = placement_problem(queue, supply)
    kept = reserved(plain, queue, supply, number)
    now = with_reserved(plain, supply, kept)
    blocked = [row for row in plain.rows if not row.request.fits(supply)]
    assert len(kept) <= min(number, len(blocked))
    best = solved(now.problem).solution
    taken = [starts_now(row, at, supply) for row, at in zip(now.rows, best.nodes) if at]
    for place, one in enumerate(kept):
        found = reserve(one.row, queue, supply, [*taken, *kept[:place]])
        assert found is not None
        assert found.start == one.start
    # what is given up for it is nothing that would be over before
    short = [row.job.limit for row in now.rows]
    if kept and all(NOW + limit <= min(one.start for one in kept) for limit in short):
        assert now.problem.weights @ np.array([bool(at) for at in best.nodes]) == (
            solved(plain.problem).objective
        )


def test_licences_are_kept_for_a_reservation_too():
    there = running(9, "c1", cores=1, end=NOW + 100, licences="lab:2")
    blocked = job(job_id=1, licences="lab:3", priority=9)
    for limit, starts in ((100.0, True), (101.0, False)):
        queue = queue_of(there, blocked, job(job_id=2, licences="lab", limit=limit))
        supply = left_by(there)
        plain = placement_problem(queue, supply)
        kept = reserved(plain, queue, supply, 1)
        assert [one.start for one in kept] == [NOW + 100]
        nodes = solved(with_reserved(plain, supply, kept).problem).solution.nodes
        assert [bool(at) for at in nodes] == [False, starts]


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
