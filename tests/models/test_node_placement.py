from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product
from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from optsched import InputError, solve
from optsched.models import NodePlacement, Placements
from optsched.models.node_placement import fragmentation
from optsched.solvers.result import Status
from optsched.testing import node_placements

MOST = 300
"""Most placements that are tried."""


def placements_of(problem):
    """Return all ways to put chunks on nodes and devices, whatever else limits them."""
    ways = []
    for job, chunks in enumerate(problem.chunks.tolist()):
        share = int(problem.share[job])
        several = max(1, share // 1000) if share else 0
        places = [
            (node, devices)
            for node, free in enumerate(problem.devices)
            for devices in combinations(range(len(free)), several)
        ]
        ways.append([(), *combinations_with_replacement(places, chunks)])
    if prod(map(len, ways)) > MOST:
        return None
    return [
        Placements(*(tuple(tuple(at[part] for at in chunks) for chunks in way) for part in (0, 1)))
        for way in product(*ways)
    ]


@settings(max_examples=40, deadline=None)
@given(node_placements(), st.permutations(["fragmentation", "nodes"]))
def test_the_program_leaves_the_least_fragmentation_of_all_placements(problem, then):
    assume(problem.share.any())
    problem = replace(problem, then=then)
    tried = placements_of(problem)
    assume(tried is not None)
    best = max(problem.objective(one) for one in tried if not problem.violations(one))
    result = solve(problem, "cp-sat")
    assert result.status is Status.OPTIMAL
    assert result.objective == best


def test_fragmentation_comes_after_the_weight():
    # of two devices, half of one is wanted: the other one stays whole
    common = {"free": [[4], [4]], "devices": [[1000], [500]], "chunks": [1, 1]}
    common |= {"share": [500, 1000], "then": ["fragmentation"]}
    problem = NodePlacement(["cores"], **common, demand=[[1], [5]], weights=[3, 1])
    on_whole = Placements(((0,), ()), (((0,),), ()))
    on_half = Placements(((1,), ()), (((0,),), ()))
    # two chunks in the mix, of which the second fits on no node
    assert [problem.measures(one)["fragmentation"] for one in (on_whole, on_half)] == [1000, 1000]
    small = NodePlacement(["cores"], **common, demand=[[1], [1]], weights=[3, 0])
    measures = [small.measures(one)["fragmentation"] for one in (on_whole, on_half)]
    assert measures == [1000, 0]
    assert [fragmentation(small, one) for one in (on_whole, on_half)] == [0.5, 0.0]
    # at most two chunks cannot use 1500 thousandths
    assert small.radices == (3001,)
    assert [small.objective(one) for one in (on_whole, on_half)] == [3 * 3001 - 1000, 3 * 3001]


def test_an_objective_that_fragmentation_makes_too_large_is_refused():
    one = {"free": [[1]], "chunks": [1000], "demand": [[1]], "weights": [10**11]}
    one |= {"devices": [[1000]], "share": [1000]}
    NodePlacement(["cores"], **one)
    with pytest.raises(InputError, match="weights: the objective may reach"):
        NodePlacement(["cores"], **one, then=["fragmentation"])
