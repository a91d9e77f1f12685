"""Switch groups: optimal, bounded, warm-started, deterministic, and for whole nodes only."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import Budget
from optsched.models.node_placement import NodePlacement
from optsched.solvers.node_placement import _groups
from optsched.solvers.result import Limit, Status
from optsched.solvers.solving import solve


def whole_nodes(room, jobs, weights=None, *, blocks=None, span="anywhere"):
    """Return the problem of jobs on leaves with free nodes, which may be in blocks."""
    leaves = [leaf for leaf, nodes in enumerate(room) for _ in range(nodes)]
    return NodePlacement(
        ["cores"],
        [[8]] * len(leaves),
        jobs,
        [[8]] * len(jobs),
        weights=weights,
        then=("switches",),
        switches=[f"leaf {leaf}" for leaf in leaves],
        blocks=None if blocks is None else [f"block {blocks[leaf]}" for leaf in leaves],
        span=[span] * len(jobs),
    )


def ways(size, room):
    """Yield all ways to take a number of nodes from leaves, as a tuple with a number for each."""
    if not room:
        if size == 0:
            yield ()
        return
    for taken in range(min(size, room[0]) + 1):
        for rest in ways(size - taken, room[1:]):
            yield (taken, *rest)


def optimum_of(problem):
    """Try all ways of every job, by the data of the problem alone."""
    keys = [
        (
            problem.switches[node],
            "" if problem.blocks is None else problem.blocks[node],
            "" if problem.kinds is None else problem.kinds[node],
        )
        for node in range(len(problem.free))
    ]
    leaves = sorted({*keys})
    room = tuple(keys.count(leaf) for leaf in leaves)
    radix = problem.radices[0]

    def allowed(job, way):
        used = [leaf for leaf, taken in zip(leaves, way) if taken]
        kinds = problem.allowed[job]
        if kinds is not None and any(kind not in kinds for _, _, kind in used):
            return None
        switches, blocks = {leaf[0] for leaf in used}, {leaf[1] for leaf in used}
        span = problem.span[job]
        if (span == "switch" and len(switches) > 1) or (span == "block" and len(blocks) > 1):
            return None
        return len(switches)

    best = {room: 0}
    for job, size in enumerate(problem.chunks.tolist()):
        after = dict(best)
        for left, value in best.items():
            for way in ways(size, left):
                switches = allowed(job, way)
                if switches is not None:
                    rest = tuple(a - b for a, b in zip(left, way))
                    gain = value + int(problem.weights[job]) * radix - switches
                    after[rest] = max(after.get(rest, gain), gain)
        best = after
    return max(best.values())


@st.composite
def placements_of_whole_nodes(draw, pools=2):
    """Draw a problem that `switch-groups` accepts, with one pool of nodes or several."""
    room, blocks, kinds, jobs, weights, spans, allowed = [], [], [], [], [], [], []
    number = draw(st.integers(1, pools))
    for pool in range(number):
        leaves = draw(st.integers(1, 4 if number == 1 else 2))
        room += draw(st.lists(st.integers(1, 5), min_size=leaves, max_size=leaves))
        blocks += draw(st.lists(st.integers(0, 1), min_size=leaves, max_size=leaves))
        kinds += [f"kind {pool}"] * leaves
        here = draw(st.integers(0, 5 if number == 1 else 3))
        jobs += draw(st.lists(st.integers(1, 7), min_size=here, max_size=here))
        weight = st.just(1) | st.integers(0, 4)
        weights += draw(st.lists(weight, min_size=here, max_size=here))
        spans += [draw(st.sampled_from(["anywhere", "anywhere", "block", "switch"]))] * here
        allowed += [[f"kind {pool}"] if number > 1 else None] * here
    nodes = draw(st.permutations([leaf for leaf, free in enumerate(room) for _ in range(free)]))
    apart = draw(st.booleans())  # or leaves of several pools or blocks are on a switch
    return NodePlacement(
        ["cores"],
        [[8]] * len(nodes),
        jobs,
        [[8]] * len(jobs),
        weights=weights,
        then=("switches",),
        kinds=[kinds[leaf] for leaf in nodes],
        allowed=allowed,
        switches=[str(leaf if apart else leaf % 2) for leaf in nodes],
        blocks=[str(blocks[leaf]) for leaf in nodes],
        span=spans,
    )


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


@settings(max_examples=25)
@given(placements_of_whole_nodes())
def test_column_generation_leaves_whole_nodes_on_switches_to_switch_groups(problem):
    result, other = solve(problem, "column-generation"), solve(problem, "switch-groups")
    assert (result.solver, result.status) == ("column-generation", Status.OPTIMAL)
    assert result.objective == optimum_of(problem)
    assert result.solution == other.solution


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
