"""Plans in strict order, and plans that do not delay the first blocked jobs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.slurm.reserved import reserve, reserved, starts_now, with_reserved
from optsched.slurm.snapshot import placement_problem
from optsched.slurm.strict import strict
from optsched.solvers.result import Budget
from optsched.solvers.solving import solve

from .conftest import NOW, SITUATIONS, job, left_by, posed, queue_of, running


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
