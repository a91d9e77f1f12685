"""Node placements: their fragmentation, and rules, in the program and in verification."""

from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import optsched
from optsched import rules
from optsched.errors import InputError
from optsched.models import NodePlacement
from optsched.models.node_placement import Placements, fragmentation
from optsched.models.node_placement.rules import rule, with_rules
from optsched.solvers.conflict import conflict
from optsched.testing import node_placements
from optsched.testing.contract import is_small, points


@rule
def few_of_a_user(m, jobs, nodes, started, chunks):
    """At most two chunks of all jobs of a user."""
    m.require("per_user", (jobs.chunks * started).sum_by(jobs.user) <= 2)


@rule
def free_nodes(m, jobs, nodes, started, chunks):
    """A node of the group `night` takes no chunk."""
    used = m.some("used", chunks[:, nodes.group == "night"].sum(axis=0))
    m.require("free_nodes", used.sum() <= max(0, (nodes.group == "night").sum() - 1))


@rule
def spread_over_racks(m, jobs, nodes, started, chunks):
    """At most half of the chunks of a job, rounded up, in a rack."""
    half = (jobs.chunks + 1) // 2
    m.require("spread", chunks.T.sum_by(nodes.rack) <= half)


RULES = [few_of_a_user, free_nodes, spread_over_racks]


def broken_rules(problem, solution, user, group, rack) -> set[str]:
    """The three rules again, in words of Python."""
    found, placed = set(), [job for job, at in enumerate(solution.nodes) if at]
    for one in user:
        if sum(int(problem.chunks[job]) for job in placed if user[job] == one) > 2:
            found.add("per_user")
    night = [node for node, g in enumerate(group) if g == "night"]
    used = {node for job in placed for node in solution.nodes[job]}
    if len(used & {*night}) > max(0, len(night) - 1):
        found.add("free_nodes")
    for job in placed:
        for one in rack:
            there = sum(rack[node] == one for node in solution.nodes[job])
            if there > (int(problem.chunks[job]) + 1) // 2:
                found.add("spread")
    return found


@settings(max_examples=60, deadline=None)
@given(node_placements(max_jobs=2), st.data())
def test_rules_are_what_they_say(problem, data):
    def drawn(count, *labels):
        return data.draw(st.lists(st.sampled_from(labels), min_size=count, max_size=count))

    user = drawn(len(problem.chunks), "ada", "bob")
    group, rack = drawn(len(problem.free), "day", "night"), drawn(len(problem.free), "r1", "r2")
    rules = data.draw(st.lists(st.sampled_from(RULES), unique=True))
    ruled = with_rules(problem, rules, jobs={"user": user}, nodes={"group": group, "rack": rack})
    names = {"few_of_a_user": "per_user", "spread_over_racks": "spread"}
    chosen = {names.get(r.__name__, r.__name__) for r in rules}
    formulation = ruled.formulate()
    program, best = formulation.program, None
    base = problem.formulate()
    for x in points(base.program):
        solution = base.decode(x)
        if problem.violations(solution):
            continue
        broken = broken_rules(problem, solution, user, group, rack) & chosen
        found = [violation.constraint.split()[1] for violation in ruled.violations(solution)]
        assert {name.partition("[")[0] for name in found} == broken
        assert program.admits(formulation.encode(solution)) == (not broken)
        if not broken:
            best = max(problem.objective(solution), best if best is not None else -(2**60))
    for x in points(program):
        if program.admits(x):
            solution = formulation.decode(x)
            assert not ruled.violations(solution)
            assert ruled.objective(solution) == program.value(x)
    if is_small(base.program) and len(base.program.values):
        result = optsched.solve(ruled, "cp-sat")
        assert (result.status, result.objective, result.verified) == ("optimal", best, True)


def test_a_plan_with_all_rules_and_who_may_solve_it():
    problem = NodePlacement(
        ["cores"], np.full((4, 1), 4), [2, 1, 1, 2], np.full((4, 1), 2), weights=[3, 2, 2, 3]
    )
    assert optsched.solve(problem).objective == 10
    ruled = with_rules(
        problem, RULES,
        jobs={"user": ["ada", "ada", "bob", "bob"]},
        nodes={"group": ["night", "night", "day", "day"], "rack": ["r1", "r1", "r2", "r2"]},
    )  # fmt: skip
    for solver in ("cp-sat", "highs", "cbc"):
        result = optsched.solve(ruled, solver)
        assert (result.status, result.objective, result.verified) == ("optimal", 6, True)
    assert conflict(ruled) is None
    for solver in ("column-generation", "tree-best-fit", "first-fit"):  # by the relaxation
        result = optsched.solve(ruled, solver)
        is_exact = solver == "column-generation"
        assert (result.status, result.verified) == ("optimal" if is_exact else "feasible", True)
        assert result.objective == 6 if is_exact else 3 <= result.objective <= 6


# four nodes of 4 cores in two racks; a job of ada runs on the first. Each user asks for two jobs of
# two chunks of 2 cores, of which three fit: 14 cores are free, so the greatest weight is 9
SITE = NodePlacement(
    ["cores"], [[2], [4], [4], [4]], [2, 2, 2, 2], [[2]] * 4, weights=[4, 3, 2, 1],
    busy=[0], levels=["racks"], groups=[["r1", "r1", "r2", "r2"]],
    nodes=["n1", "n2", "n3", "n4"], jobs=["a1", "a2", "b1", "b2"],
    columns={
        "jobs": {"user": ["ada", "ada", "bob", "bob"]},
        "nodes": {"watts": [100, 100, 200, 200]},
        "running": {"nodes": [[0]], "user": ["ada"], "cores": [2]},
    },
)  # fmt: skip

CATALOGUE = {
    # rule: most weight, the nodes of jobs in a broken placement, and its violation
    "jobs": (rules.limit("jobs", 2, by="user"), 7, [[0, 1], [1, 2]], "jobs[ada]: 3; at most 2"),
    "cores": (rules.limit("cores", 4, by="user"), 2, [[1, 1]], "cores[ada]: 6; at most 4"),
    "nodes": (rules.limit("nodes", 2, by="user"), 7, [[1, 2]], "nodes[ada]: 3; at most 2"),
    "free": (rules.nodes_free(2), 4, [[1, 2]], "nodes: 2; at most 1"),
    "rack": (rules.nodes_free(2, where={"racks": "r2"}), 4, [[2, 2]], "nodes: 1; at most 0"),
    "power": (rules.power_cap(400), 7, [[2, 3]], "watts: 500; at most 400"),
    "spread": (rules.spread(1, over="racks"), 9, [[1, 1]], "chunks[r1,1]: 2; at most 1"),
    "apart": (rules.never_together(), 9, [(), (), [0, 1]], "user[1]: 2; at most 1"),
    "reserve": (rules.reserve("cores", 6), 7, [[1, 1], [2, 2], [3, 3]], "cores: 12; at most 8"),
    "moves": (rules.few_moves({"a1": ["n3"], "b1": ["n4"]}, 0), 9, [[1, 1]], "jobs: 1; at most 0"),
}


def placed(*nodes):
    """Return a placement of the first jobs of the site on nodes."""
    nodes = [*map(tuple, nodes), *[()] * (4 - len(nodes))]
    return Placements(tuple(nodes), tuple(((),) * len(at) for at in nodes))


@pytest.mark.parametrize("name", CATALOGUE)
def test_each_rule_of_the_catalogue_has_its_best_plan_and_refuses_a_broken_one(name):
    stated, best, broken, said = CATALOGUE[name]
    ruled = with_rules(SITE, {name: stated})
    answer = placed(*broken)
    assert not SITE.violations(answer)
    assert str(ruled.violations(answer)[0]) == f"{name} {said}"
    result = optsched.solve(ruled, "cp-sat")
    assert (result.status, result.objective, result.verified) == ("optimal", best, True)
    program, formulation = ruled.formulate().program, ruled.formulate()
    assert program.admits(formulation.encode(result.solution))
    assert not program.admits(formulation.encode(answer))


def test_jobs_that_are_to_be_together_are():
    chosen = {"pair": rules.together("name", ["b1"]), "own": rules.together("user", ["bob"])}
    ruled = with_rules(SITE, chosen)
    assert not ruled.violations(placed((1, 1), (2, 2)))  # of ada, to whom no rule applies
    result = optsched.solve(ruled, "cp-sat")
    assert result.objective == 9
    assert len({*result.solution.nodes[2], *result.solution.nodes[3]}) == 1


def test_objectives_of_rules_count_after_the_placement():
    even = with_rules(SITE, {"even": rules.balance("cores", over="racks", steps=4)})
    small, scale = optsched.solve(even, "cp-sat"), even.as_it_is.scale
    assert -(-small.objective // scale) == 9
    users = with_rules(SITE, {"few": rules.few_users_on_nodes()})
    result = optsched.solve(users, "cp-sat")
    assert (result.status, result.objective) == ("optimal", 9 * 9 - 4)
    pairs = zip(("ada", "ada", "bob", "bob"), result.solution.nodes)
    assert len({("ada", 0)} | {(user, node) for user, at in pairs for node in at}) == 4


def test_what_running_jobs_break_already_is_no_reason_to_refuse_all():
    ruled = with_rules(SITE, {"cores": rules.limit("cores", 1, by="user")})
    assert ruled.violations(placed()) == []
    only = ruled.violations(placed((), (), (1, 1)))
    assert [str(v) for v in only] == ["cores cores[bob]: 4; at most 1"]
    own = ruled.violations(placed((1, 1)))
    assert [str(v) for v in own] == ["cores cores[ada]: 6; at most 1, or 1 off, as it is now"]
    assert optsched.solve(ruled, "cp-sat").objective == 0
    two = with_rules(SITE, {"jobs": rules.limit("jobs", 0, by="user")})
    assert optsched.solve(two, "cp-sat").objective == 0


def test_the_part_of_an_answer_that_breaks_no_rule_is_the_heaviest_jobs_first():
    every = placed((0, 1), (1, 2), (2, 3))
    assert not SITE.violations(every)
    for most, kept in ((1, [False] * 2 + [True]), (2, [True, False, True]), (9, [True] * 3)):
        ruled = with_rules(SITE, {"jobs": rules.limit("jobs", most, by="user")})
        assert [bool(at) for at in ruled.restricted(every).nodes[:3]] == kept


def test_a_rule_that_blocks_a_job_is_named():
    ruled = with_rules(SITE, {"jobs": rules.limit("jobs", 2, by="user")})
    best = optsched.solve(ruled, "cp-sat").solution
    assert [bool(at) for at in best.nodes] == [True, False, True, True]
    assert ruled.blocking(best, 1) == ""  # no room
    left = best._replace(nodes=(*best.nodes[:3], ()), devices=(*best.devices[:3], ()))
    assert ruled.blocking(left, 1) == "rule jobs jobs[ada]: 3; at most 2"


MISTAKES = {
    "== in a rule": lambda s, j, n, started, c: s.require("a", started.sum() == 2),
    "SystemExit": lambda *_: exit(0),
    "unknown column 'users' of jobs; did you mean user": lambda s, jobs, *_: jobs.users,
    "a rule has no decisions of its own": lambda s, *_: s.binary("x", 2),
    "a rule may minimize": lambda s, j, n, started, c: s.maximize(started.sum()),
    "ZeroDivisionError": lambda *_: 1 / 0,
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_in_a_rule_is_one_line(words):
    with pytest.raises(InputError, match=rf"test_rules.py, line \d+: .*{words}"):
        with_rules(SITE, {"wrong": MISTAKES[words]})


def test_mistakes_in_the_use_of_the_catalogue_are_told():
    for stated, words in (
        (rules.limit("jobs", 3, by="usr"), "unknown column 'usr'"),
        (rules.nodes_free(1, where={"racks": "r9"}), "unknown value 'r9' of racks"),
    ):
        with pytest.raises(InputError, match=rf"test_rules.py, line \d+: {words}"):
            with_rules(SITE, {"wrong": stated})
    for most in (-1, 2.5, "3", True):
        with pytest.raises(InputError, match=r"most: .*; expected an integer from 0"):
            rules.limit("jobs", most, by="user")
    two = [rules.limit("jobs", 1, by="user"), rules.limit("cores", 8, by="user")]
    with pytest.raises(InputError, match="two rules are named limit"):
        with_rules(SITE, two)


def test_mistakes_in_columns_are_named(mistakes_of):
    for columns, words in (
        ({"jobs": {"user": ["ada"]}}, "columns.jobs.user: expected a list of 4 values"),
        ({"nodes": {"watts": [1.5] * 4}}, "expected texts or integers"),
        ({"job": {}}, "unknown part 'job'; did you mean jobs"),
        ({"running": {"nodes": [[4]]}}, "expected nodes from 0 to 3"),
        ({"running": {"user": []}}, "running: expected nodes"),
        ({"jobs": [1]}, "expected objects of lists"),
    ):
        [mistake] = mistakes_of(NodePlacement.from_json, SITE.to_json() | {"columns": columns})
        assert words in mistake


def test_columns_are_kept_on_file():
    assert NodePlacement.from_json(SITE.to_json()).columns == SITE.columns
    assert with_rules(SITE, {}).to_json() == SITE.to_json()


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
    result = optsched.solve(problem, "cp-sat")
    assert (result.status, result.objective) == ("optimal", best)


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
