"""The published rules: compiled as stated, feasible, and as the paper's examples have it."""

from dataclasses import replace
from inspect import signature

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import registry, solve
from optsched.models import DataPlacement
from optsched.testing import data_placements

from . import stated

SCORES = {
    "fcfs": lambda: {"loading": 0, "reloading": 0},
    "eft": lambda: {"loading": 1, "reloading": 0},
    "lea": lambda weight, evicted: {
        "loading": weight,
        "reloading": 1,
        "in_memory": evicted == "memory",
    },
    "leo": lambda weight, evicted, opportune: {
        **SCORES["lea"](weight, evicted),
        "opportune": True,
        "whole_scan": opportune == "scan",
    },
    "lem": lambda weight, evicted, threshold: {
        **SCORES["lea"](weight, evicted),
        "threshold": threshold,
    },
}


@pytest.mark.parametrize("rule", SCORES)
@given(
    problem=st.one_of(
        data_placements(max_jobs=8, max_nodes=4, max_cores=4, longest=12),
        data_placements(max_jobs=8, max_nodes=20, max_cores=2, longest=12),
    ),
    backfill=st.sampled_from(["none", "holes", "conservative"]),
    stop=st.sampled_from(["full", "short"]),
    threshold=st.integers(0, 110),
    weight=st.integers(0, 5),
    capacity=st.integers(1, 20),
    loads=st.sampled_from(["now", "start"]),
    evicted=st.sampled_from(["unused", "memory"]),
    opportune=st.sampled_from(["scan", "node"]),
)
@settings(max_examples=100, deadline=None)
def test_the_kernels_do_what_is_stated(
    rule, problem, backfill, stop, threshold, weight, capacity, loads, evicted, opportune
):
    problem = replace(problem, capacity=capacity, noticed=None)
    of_rule = {"weight": weight, "threshold": threshold, "evicted": evicted, "opportune": opportune}
    own = {name: of_rule[name] for name in signature(SCORES[rule]).parameters}
    both = {"backfill": backfill, "stop": stop}
    plan = registry.solvers[rule](**own, **both, loads=loads).place(problem)
    scored = SCORES[rule](**own) | {"from_start": loads == "start"}
    assert plan == stated.stated(problem, stated.Rule(**scored, **both))
    assert problem.violations(plan) == []


def placed(problem, rule, *, kept="users", noticed=None, **options):
    solver = registry.solvers[rule](**options)
    result = solve(replace(problem, kept=kept, noticed=noticed), solver=solver)
    assert result.status == "feasible"
    plan = result.solution
    return list(zip(plan.node.tolist(), plan.start.tolist()))


def one_job(available, walltime, load, resident, **more):
    """Return the problem of a job of one core with file 1."""
    return DataPlacement(available, [1], [walltime], [1], [load], resident=resident, **more)


ONE_FILE = one_job([[100], [0]], 500, 60, [[0, 1, 60, 0, 100]])
LEFT = one_job([[100], [0]], 500, 60, [[0, 1, 60, 0, 50]])
AS_WRITTEN = {"loads": "start", "evicted": "memory", "opportune": "node"}
BY_HAND = {
    "first come does not see files, and lea waits for them": (
        ONE_FILE,
        ("fcfs", {}, (1, 0)),
        ("eft", {}, (1, 0)),  # 60 s of loading against 100 s of waiting
        ("lea", {}, (0, 100)),
        ("lea", {"weight": 1}, (1, 0)),
        ("leo", {}, (1, 0)),  # it can start now
        ("lem", {}, (1, 0)),  # not all nodes run a job
        ("lem", {"threshold": 50}, (0, 100)),
    ),
    "a file that was left is there until the next start": (
        LEFT,
        ("lea", {}, (1, 0)),
        ("lea", {"kept": "next"}, (0, 100)),
    ),
    "node 0: 0 + 100; node 1: 50 + 60, or, as file 1 is complete at 60, 50 + 10": (
        one_job([[0], [50]], 1000, 100, [[1, 1, 100, 60, 50]]),
        ("eft", {}, (0, 0)),
        ("eft", {"loads": "start"}, (1, 50)),
    ),
    # as written, file 2 counts only while it is in memory, until the next start
    "node 0: 0 + 100; node 1: 50 in the scan, 50 + 1280 x 100 / 1280 by itself": (
        one_job([[0], [50]], 1000, 100, [[1, 1, 100, 0, 50], [1, 2, 1280, 0, 20]]),
        ("leo", {}, (1, 50)),
        ("leo", {"opportune": "node"}, (0, 0)),
        ("leo", AS_WRITTEN | {"kept": "next"}, (0, 0)),
        ("leo", AS_WRITTEN, (1, 50)),
    ),
}


@pytest.mark.parametrize("case", BY_HAND)
@pytest.mark.parametrize("backfill", ["none", "conservative"])
def test_a_job_is_placed_as_it_is_by_hand(case, backfill):
    problem, *answers = BY_HAND[case]
    for rule, options, place in answers:
        assert placed(problem, rule, **options, backfill=backfill) == [place]


BEHIND_A_WIDE_JOB = DataPlacement([[0, 50]], [2, 1, 1], [10, 50, 51], [-1] * 3, [0] * 3)


def test_backfilling_fills_holes_and_full_profiles_all_gaps():
    problem = BEHIND_A_WIDE_JOB
    assert placed(problem, "fcfs") == [(0, 50), (0, 60), (0, 60)]
    assert placed(problem, "fcfs", backfill="holes") == [(0, 50), (0, 0), (0, 60)]
    later = replace(problem, available=[[20, 50]], walltimes=[10, 30, 31])
    assert placed(later, "fcfs", backfill="holes") == [(0, 50), (0, 60), (0, 60)]
    assert placed(later, "fcfs", backfill="conservative") == [(0, 50), (0, 20), (0, 60)]


def test_a_partial_plan_ends_when_nothing_is_free():
    problem = replace(BEHIND_A_WIDE_JOB, partial=True)
    assert placed(problem, "fcfs") == [(0, 50), (-1, 0), (-1, 0)]
    assert placed(problem, "fcfs", stop="short") == [(-1, 0)] * 3
    assert placed(problem, "fcfs", backfill="holes") == [(0, 50), (0, 0), (-1, 0)]
    unnoticed = placed(problem, "fcfs", backfill="holes", noticed=(0, 0))
    assert unnoticed == [(0, 50), (0, 0), (-1, 0)]  # noticed as the wide job is planned
