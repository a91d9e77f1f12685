from collections import Counter
from itertools import chain, combinations, combinations_with_replacement, islice, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.models.hold import Hold, Release
from optsched.models.hold.program import shortage
from optsched.solvers.solving import solve
from optsched.testing import check_problem, holds


def feasible(problem):
    """Yield every feasible release: what may be lifted, drained and moved, and all nodes."""
    claims, nodes = range(len(problem.costs)), range(len(problem.free))
    movable = [claim for claim in claims if problem.moved[claim]]
    drainable = [] if problem.drain_costs is None else nodes
    for lifted, drained, moved in product(*map(subsets, (claims, drainable, movable))):
        if not {*lifted} & {*moved}:
            moves = [[(claim, at) for at in new_nodes(problem, claim)] for claim in moved]
            ways = combinations_with_replacement(nodes, problem.chunks)
            for new, at in product(product(*moves), ways):
                release = Release(lifted, at, drained, new)
                if not problem.violations(release):
                    yield release


def new_nodes(problem, claim):
    """All nodes for the chunks of a claim, ascending for chunks of one row."""
    nodes = range(len(problem.free))
    for each in product(*(combinations(nodes, count) for count, *_ in problem.moved[claim])):
        yield tuple(chain(*each))


def subsets(values):
    return [each for count in range(len(values) + 1) for each in combinations(values, count)]


def rows_of(held):
    """Return the numbers of chunks of each amount that a claim has."""
    return [[count, need] for need, count in Counter(need for _, need in held).items()]


@st.composite
def contested(draw):
    """Draw a hold in which draining a node or moving a claim costs less than lifting claims."""
    nodes, claims = 3, draw(st.integers(1, 3))
    amounts = st.integers(1, 3)
    rows = st.lists(st.integers(0, nodes - 1), min_size=1, max_size=2, unique=True)
    held = [[[node, draw(amounts)] for node in draw(rows)] for _ in range(claims)]
    pending = [claim for claim in range(claims) if draw(st.booleans())]
    taken = st.integers(0, 3).map(lambda free: [free])
    free = st.lists(taken, min_size=nodes, max_size=nodes)
    switches = draw(st.none() | st.just(["s", "s", "t"]))
    costs = [draw(st.integers(5, 20)) for _ in range(claims)]
    return Hold(
        *(["cores"], np.array(draw(free)), draw(st.integers(1, 2)), [3], costs, held),
        kinds=["a", "b", "b"],
        switches=switches,
        span="switch" if switches else "anywhere",
        exclusive=draw(st.booleans()),
        pending=pending,
        fixed=[claim for claim in range(claims) if draw(st.booleans())],
        drain_costs=[draw(st.integers(0, 6)) for _ in range(nodes)],
        moved=[[] if claim in pending else rows_of(held[claim]) for claim in range(claims)],
        move_costs=[draw(st.integers(0, 6)) for _ in range(claims)],
        moved_to=[draw(st.sampled_from([None, ["b"]])) for _ in range(claims)],
        free_before=draw(st.none() | free.map(np.array)),
    )


@settings(max_examples=80, deadline=None)
@given(holds())
def test_it_keeps_the_contract_of_a_problem(problem):
    check_problem(problem, solutions=list(islice(feasible(problem), 50)))


@settings(max_examples=100, deadline=None)
@given(contested())
def test_a_release_is_feasible_if_what_is_used_is_there(problem):
    """Amounts are counted here by hand, from all that is on each node."""
    best = None
    claims = range(len(problem.costs))
    nodes = range(len(problem.free))
    for lifted, drained, moved in product(*map(subsets, (claims, nodes, claims))):
        gone = {*lifted, *moved}
        if {*lifted} & {*moved, *problem.fixed} or not all(problem.moved[c] for c in moved):
            continue
        cost = problem.costs[[*lifted]].sum() + problem.drain_costs[[*drained]].sum()
        cost += problem.move_costs[[*moved]].sum()
        if best is not None and cost >= best:
            continue
        now, then = [], []
        for node in nodes:
            on_node = [(c, row[1]) for c in claims for row in problem.held[c] if row[0] == node]
            away = {*problem.pending} if node in drained else set()
            kept = [c for c, _ in on_node if c not in gone | away]
            left = problem.free[node, 0] + sum(n for c, n in on_node if c not in kept)
            freed = sum(n for c, n in on_node if c in gone and c not in problem.pending)
            now.append(problem.free_before[node, 0] + freed)
            then.append((left, bool(kept)))
        for new in product(*(new_nodes(problem, claim) for claim in moved)):
            if any(len({*at}) < len(at) for at in new):
                continue
            used = [0, 0, 0]
            for claim, at in zip(moved, new):
                needs = [need for count, need in problem.moved[claim] for _ in range(count)]
                for node, amount in zip(at, needs):
                    used[node] += 100 if problem.moved_to[claim] and not node else amount
            if any(taken > min(one, left) for taken, one, (left, _) in zip(used, now, then)):
                continue
            room = [
                0 if problem.exclusive and (kept or taken) else (left - taken) // 3
                for taken, (left, kept) in zip(used, then)
            ]
            if drained:  # jobs that are kept away would take the other nodes
                room = [one if node in drained else 0 for node, one in enumerate(room)]
            most = max(room[0] + room[1], room[2]) if problem.switches else sum(room)
            if most >= problem.chunks:
                best = cost
                break
    assert solve(problem, "highs").objective == best


USUAL = {
    "resources": ["cores", "memory"], "chunks": 2, "demand": [4, 8], "most_per_node": 1,
    "free": [[8, 16], [1, 16], [2, 0], [4, 8]], "kinds": ["b", "a", "a", "a"], "allowed": ["a"],
    "switches": ["s", "s", "t", "t"], "licences": [1], "licences_of": [2], "costs": [5, 7, 9],
    "held": [[[1, 3, 0]], [[2, 1, 4]], [[1, 1, 0], [2, 2, 8]]], "held_licences": [[1], [0], [2]],
}  # fmt: skip
"""Two chunks of 4 cores and 8 GB; jobs on n1, on n2 and on both n2 and n3."""


def hold(**fields):
    """Return the usual problem with other fields."""
    fields = USUAL | fields
    return Hold(**fields | {name: np.array(fields[name]) for name in ("free", "held_licences")})


@pytest.mark.parametrize(
    ("fields", "lifted", "nodes", "broken"),
    [
        ({}, (0,), (1, 3), []),
        ({}, (2,), (2, 3), []),
        ({}, (), (1, 3), ["resource", "licence"]),
        ({}, (1,), (2, 3), ["resource", "resource", "licence"]),
        ({}, (0,), (1,), ["chunks"]),
        ({}, (0,), (0, 3), ["kind"]),
        ({}, (0, 2), (1, 1), ["per node", "resource"]),
        ({}, (0,), (1, 4), ["node"]),
        ({}, (0, 0), (1, 3), ["claim"]),
        ({}, (3,), (1, 3), ["claim"]),
        ({"span": "switch"}, (0,), (1, 3), ["span"]),
        ({"span": "switch"}, (2,), (2, 3), []),
        ({"exclusive": True, "busy": (3,)}, (0,), (1, 3), ["exclusive"] * 2),
        ({"exclusive": True}, (1, 2), (2, 3), []),
    ],
)
def test_violations(fields, lifted, nodes, broken):
    found = hold(**fields).violations(Release(lifted, nodes))
    assert [each.constraint for each in found] == broken


def test_costs_that_cannot_be_counted_are_refused():
    with pytest.raises(InputError, match=r"2\^53"):
        hold(costs=[10**12] * 9008, held=[[]] * 9008, held_licences=[[0]] * 9008)


def test_describe():
    problem = hold(claims=["requeue 7", "requeue 8", "resume n2"], nodes=["n0", "n1", "n2", "n3"])
    assert dict(problem.describe())["chunks"] == "2 of 4 cores, 8 memory"
    release = [("lift requeue 7", "cost 5"), ("start on", "n1 n3")]
    assert problem.describe(Release((0,), (1, 3))) == release


@settings(max_examples=200, deadline=None)
@given(holds())
def test_a_shortage_is_there_exactly_if_the_job_cannot_start_with_all_claims_kept(problem):
    found = shortage(problem)
    nodes = range(len(problem.free))
    ways = combinations_with_replacement(nodes, problem.chunks)
    starts = any(not problem.violations(Release((), at)) for at in ways)
    assert found.is_proof == (not starts)
    counts = [count for _, count in found.filters]
    assert counts == sorted(counts, reverse=True)
    assert found.chunks == problem.chunks


def test_room_counts_beyond_the_chunks_of_the_job():
    free = [[40, 88], [1, 16], [9, 20], [4, 8]]
    assert shortage(hold(allowed=None, free=free)).room == 3
    anywhere = hold(allowed=None, free=free, most_per_node=0, span="anywhere")
    assert shortage(anywhere).room == 10 + 0 + 2 + 1
    one = hold(allowed=None, free=free, chunks=1, most_per_node=0, span="anywhere")
    assert shortage(one).room == 3  # nodes, where a job of one chunk takes one
    assert shortage(hold(demand=[0, 0], free=free, most_per_node=0)).is_proof


def test_a_shortage_names_what_rules_out_nodes():
    found = shortage(hold(exclusive=True, busy=(), span="switch"))
    kinds = (("nodes", 4), ("of a kind that it may use", 3))
    assert found.filters == (*kinds, ("without other jobs", 1))
    assert (found.room, found.group, found.chunks) == (1, "t", 2)
    assert found.licences == ((0, 1, 2),)
    own = [("up", np.array([True, True, False, True])), ("in a", np.array([False] + [True] * 3))]
    filters = (("nodes", 4), ("up", 3), ("in a", 2), ("with 4 or more cores free", 1))
    assert shortage(hold(), own).filters == filters
    gpus = {"free": [[8, 2, 0], [8, 4, 4]], "chunks": 1, "demand": [1, 3, 3]}
    typed = Hold(["cores", "gpu", "gpu:h100"], **gpus, costs=[], held=[])
    assert shortage(typed).filters == (("nodes", 2), ("with 3 or more gpu:h100 free", 1))


@pytest.mark.parametrize("solver", ["cp-sat", "highs", "scip", "cheapest-first"])
def test_a_node_where_no_chunk_goes_is_not_drained(solver):
    held = [[[0, 2]], [[1, 1]]]
    problem = Hold(
        ["cores"], [[0], [0], [4], [4]], 1, [2], [3, 3], held, pending=[0, 1], fixed=[0, 1],
        drain_costs=[0, 0, 0, 0],
    )  # fmt: skip
    unused = Release((), (2,), (1, 2))
    assert [each.constraint for each in problem.violations(unused)] == ["drain"]
    assert "node 1 is drained, where no chunk goes" in str(problem.violations(unused)[0])
    result = solve(problem, solver)
    assert result.objective == 0
    assert {*result.solution.drained} <= {*result.solution.nodes}
