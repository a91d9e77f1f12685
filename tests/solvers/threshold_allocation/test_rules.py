"""The published rules: compiled as stated, verified, and by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from optsched import solve
from optsched.models import ThresholdAllocation
from optsched.solvers.result import Status
from optsched.testing import threshold_allocations

from . import stated

RULES = ("first-fit", "less-consume", "less-consume-threshold")


@settings(max_examples=150, deadline=None)
@given(threshold_allocations(max_nodes=4, max_processors=4, max_held=8))
def test_rules_place_as_stated(problem):
    for rule in RULES:
        expected = stated.by_rule(problem, rule)
        result = solve(problem, rule)
        if expected is None:
            assert result.status is Status.NO_SOLUTION
        else:
            assert result.status is Status.FEASIBLE
            assert (result.solution.start, result.solution.processes.tolist()) == expected


# Three nodes of four processors, 6000 MB/s: on node 0 two processes of 2500 MB/s until 300 s, on
# node 1 one of 5000 until 200 s, node 2 has one free processor.
HELD = [[0, 2, 0, 300, 2500], [1, 1, 0, 200, 5000], [2, 3, 0, 500, 500]]


LATE = {"threshold": 1150}


@pytest.mark.parametrize(
    ("rule", "fields", "place"),
    [
        # losses in units of a 6000th of 100 s: with 1 and 2 processes node 0 loses 1000 and 3000,
        # with 1 to 3 node 1 loses 1000, 3000 and 5000, node 2 nothing
        ("first-fit", {}, (0, [2, 1, 0])),
        # the second processor of node 1 would lose no less than the 3000 of node 0; node 2 does
        ("less-consume", {}, (0, [1, 1, 1])),
        # a threshold decides where moving ends and whether to wait
        ("less-consume-threshold", {"threshold": 1500}, (0, [2, 1, 0])),
        ("less-consume-threshold", {"threshold": 1499}, (0, [1, 1, 1])),
        # 1000 of 6000 are too much; from 200 s on node 1 is free
        ("less-consume-threshold", LATE, (200, [0, 3, 0])),
        ("less-consume", LATE, None),
        ("first-fit", {"threshold": 1499}, None),
        ("less-consume-threshold", LATE | {"latest": 199}, None),
        # never within the threshold
        ("less-consume-threshold", {"asked": 8, "demand": [3500], "threshold": 1000}, None),
    ],
)
def test_the_rules_by_hand(rule, fields, place):
    job = {"asked": 3, "walltime": 100, "demand": [2000]}
    problem = ThresholdAllocation(nodes=3, processors=4, capacity=[6000], held=HELD, **job | fields)
    solution = solve(problem, rule).solution
    assert (solution and (solution.start, solution.processes.tolist())) == place
