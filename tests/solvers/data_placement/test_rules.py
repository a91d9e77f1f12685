"""The published rules: compiled as stated, feasible, and as the paper's examples have it."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature

import numpy as np
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


def changed(problem, **changes):
    kept = {field.name: getattr(problem, field.name) for field in fields(problem)}
    return DataPlacement(**(kept | changes))


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
    problem = changed(problem, capacity=capacity, noticed=None)
    of_rule = {"weight": weight, "threshold": threshold, "evicted": evicted, "opportune": opportune}
    own = {name: of_rule[name] for name in signature(SCORES[rule]).parameters}
    both = {"backfill": backfill, "stop": stop}
    plan = registry.solvers[rule](**own, **both, loads=loads).place(problem)
    scored = SCORES[rule](**own) | {"from_start": loads == "start"}
    assert plan == stated.stated(problem, stated.Rule(**scored, **both))
    assert problem.violations(plan) == []


def placed(problem, rule, *, kept="users", noticed=None, **options):
    solver = registry.solvers[rule](**options)
    result = solve(changed(problem, kept=kept, noticed=noticed), solver=solver)
    assert result.status == "feasible"
    plan = result.solution
    return list(zip(plan.node.tolist(), plan.start.tolist()))


@pytest.fixture
def one_file():
    """Return a problem: node 0 has file 7 and is busy for 100 s, node 1 is free; 60 s to load."""
    return DataPlacement(
        available=[[100], [0]],
        processors=[1],
        walltimes=[500],
        files=[7],
        loads=[60],
        resident=[[0, 7, 60, 0, 100]],
    )


def test_first_come_does_not_see_files_and_lea_waits_for_them(one_file):
    assert placed(one_file, "fcfs") == [(1, 0)]
    assert placed(one_file, "eft") == [(1, 0)]  # 60 s of loading against 100 s of waiting
    assert placed(one_file, "lea") == [(0, 100)]
    assert placed(one_file, "lea", weight=1) == [(1, 0)]
    assert placed(one_file, "leo") == [(1, 0)]  # it can start now
    assert placed(one_file, "lem") == [(1, 0)]  # not all nodes run a job
    assert placed(one_file, "lem", threshold=50) == [(0, 100)]


def test_eft_waits_for_a_load_that_is_nearly_done():
    problem = DataPlacement(
        available=[[0, 9], [0, 0]],
        processors=[1],
        walltimes=[50],
        files=[7],
        loads=[60],
        resident=[[0, 7, 60, 8, 9]],
    )
    assert placed(problem, "eft") == [(0, 0)]
    assert problem.load_times(solve(problem, solver="eft").solution).tolist() == [8]


def test_the_rest_of_a_load_counts_from_now_or_from_the_start():
    problem = DataPlacement(
        available=[[0], [50]],
        processors=[1],
        walltimes=[1000],
        files=[1],
        loads=[100],
        resident=[[1, 1, 100, 60, 50]],
    )
    for backfill in ("none", "conservative"):
        of_both = {"backfill": backfill}
        # node 0: 0 + 100; node 1: 50 + 60, or, as file 1 is complete at 60, 50 + 10
        assert placed(problem, "eft", **of_both) == [(0, 0)]
        assert placed(problem, "eft", **of_both, loads="start") == [(1, 50)]


def test_leo_decides_for_the_whole_scan_or_node_by_node():
    # node 0 is free now; file 1 is in use on node 1
    waiting = DataPlacement(
        available=[[0], [10]],
        processors=[1],
        walltimes=[1000],
        files=[1],
        loads=[100],
        resident=[[1, 1, 100, 60, 10]],
    )
    evicting = changed(
        waiting,
        available=np.array([[0], [50]]),
        resident=np.array([[1, 1, 100, 0, 50], [1, 2, 1280, 0, 20]]),
    )
    for backfill in ("none", "conservative"):
        of_both = {"backfill": backfill}
        # node 0: 0 + 100; node 1: 10 + 60 in the scan, 10 + 500 x 60 by itself
        assert placed(waiting, "leo", **of_both) == [(1, 10)]
        assert placed(waiting, "leo", **of_both, opportune="node") == [(0, 0)]
        # node 1: 50 in the scan, 50 + 1280 x 100 / 1280 by itself
        assert placed(evicting, "leo", **of_both) == [(1, 50)]
        assert placed(evicting, "leo", **of_both, opportune="node") == [(0, 0)]
        # as file 2 counts only while it is in memory, until the next start
        as_written = {"loads": "start", "evicted": "memory", "opportune": "node"}
        assert placed(evicting, "leo", **of_both, **as_written, kept="next") == [(0, 0)]
        assert placed(evicting, "leo", **of_both, **as_written, kept="users") == [(1, 50)]


def test_lea_counts_files_in_use_as_evicted_or_not():
    problem = DataPlacement(
        available=[[0, 500], [0, 0]],
        processors=[1],
        walltimes=[1000],
        files=[1],
        loads=[100],
        resident=[[0, 2, 1280, 0, 500]],
    )
    for kept in ("users", "next"):
        for backfill in ("none", "conservative"):
            options = {"kept": kept, "backfill": backfill}
            # node 0: 500 x 100, and 1280 x 100 / 1280 if file 2 counts; node 1: 500 x 100
            assert placed(problem, "lea", **options) == [(0, 0)]
            assert placed(problem, "lea", **options, evicted="memory") == [(1, 0)]


def test_lea_prefers_the_node_whose_memory_is_idle():
    problem = DataPlacement(
        available=[[0], [0]],
        processors=[1],
        walltimes=[50],
        files=[7],
        loads=[60],
        resident=[[0, 3, 60, 0, 0]],
        capacity=60,
    )
    assert placed(problem, "eft") == [(0, 0)]
    assert placed(problem, "lea") == [(1, 0)]  # on node 0 it would evict file 3


def test_rules_see_files_that_were_left_and_what_evicts_them(one_file):
    left = changed(one_file, resident=np.array([[0, 7, 60, 0, 50]]))
    assert placed(left, "lea") == [(1, 0)]
    assert placed(left, "lea", kept="next") == [(0, 100)]
    two = changed(
        left,
        processors=np.array([1, 1]),
        walltimes=np.array([10, 500]),
        files=np.array([-1, 7]),
        loads=np.array([0, 60]),
        available=np.array([[100, 100], [900, 900]]),
        occupied=None,
        priorities=None,
    )
    for backfill in ("none", "conservative"):
        assert placed(two, "lea", kept="next", backfill=backfill) == [(0, 100), (0, 100)]
        wide = changed(two, processors=np.array([2, 1]), kept="next")
        assert placed(wide, "eft", kept="next", backfill=backfill) == [(0, 100), (0, 110)]
        plan = solve(wide, solver=registry.solvers["eft"](backfill=backfill)).solution
        assert wide.load_times(plan).tolist() == [0, 60]


BEHIND_A_WIDE_JOB = {
    "available": [[0, 50]],
    "processors": [2, 1, 1],
    "walltimes": [10, 50, 51],
    "files": [-1, -1, -1],
    "loads": [0, 0, 0],
}


def test_backfilling_fills_holes_and_full_profiles_all_gaps():
    problem = DataPlacement(**BEHIND_A_WIDE_JOB)
    assert placed(problem, "fcfs") == [(0, 50), (0, 60), (0, 60)]
    assert placed(problem, "fcfs", backfill="holes") == [(0, 50), (0, 0), (0, 60)]
    later = changed(problem, available=np.array([[20, 50]]), walltimes=np.array([10, 30, 31]))
    assert placed(later, "fcfs", backfill="holes") == [(0, 50), (0, 60), (0, 60)]
    assert placed(later, "fcfs", backfill="conservative") == [(0, 50), (0, 20), (0, 60)]


def test_a_file_and_a_hole_are_found_behind_the_first_nodes():
    problem = DataPlacement(
        available=[[30], *[[500]] * 8, [100]],
        reserved=[*[[0]] * 9, [60]],
        processors=[1],
        walltimes=[50],
        files=[1],
        loads=[64],
        resident=[[0, 1, 64, 0, 30], [9, 1, 64, 0, 100]],
    )
    for rule in ("eft", "lea", "leo", "lem"):
        assert placed(problem, rule) == [(0, 30)]
        assert placed(problem, rule, backfill="holes") == [(9, 0)]


def test_a_partial_plan_ends_when_nothing_is_free():
    problem = DataPlacement(**BEHIND_A_WIDE_JOB, partial=True)
    assert placed(problem, "fcfs") == [(0, 50), (-1, 0), (-1, 0)]
    assert placed(problem, "fcfs", stop="short") == [(-1, 0)] * 3
    assert placed(problem, "fcfs", backfill="holes") == [(0, 50), (0, 0), (-1, 0)]
    unnoticed = placed(problem, "fcfs", backfill="holes", noticed=(0, 0))
    assert unnoticed == [(0, 50), (0, 0), (-1, 0)]  # noticed as the wide job is planned
