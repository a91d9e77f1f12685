"""Rules of node placement as stated, and limits of groups against all ways to place chunks."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import optsched
from optsched import Budget
from optsched.content import bundled
from optsched.errors import InputError
from optsched.models import NodePlacement, Placements
from optsched.models.snapshot_file import read_snapshot
from optsched.solvers.node_placement.fit_rules import (
    BestFit,
    DevicePacking,
    FirstFit,
    LeastFragmentation,
    TreeBestFit,
)
from optsched.solvers.result import Status
from optsched.solvers.solving import solve
from optsched.testing import node_placements

CLASSES = (FirstFit, BestFit, DevicePacking, TreeBestFit, LeastFragmentation)
RULES = ("first-fit", "best-fit", "device-packing", "tree-best-fit", "least-fragmentation")


@pytest.mark.parametrize("rule", CLASSES)
@given(problem=node_placements())
def test_every_answer_of_a_rule_is_feasible(rule, problem):
    for order in ("queue", "largest"):
        result = optsched.solve(problem, rule(order=order))
        assert problem.violations(result.solution) == []
        assert result.objective == problem.objective(result.solution)


def first_fit(problem):
    """Place each chunk on the first node with room; only resources."""
    free, nodes = problem.free.copy(), []
    for job, chunks in enumerate(problem.chunks.tolist()):
        left, at = free.copy(), []
        for node in range(len(free)):
            while len(at) < chunks and (left[node] >= problem.demand[job]).all():
                left[node] -= problem.demand[job]
                at.append(node)
        free = left if len(at) == chunks else free
        nodes.append(tuple(at) if len(at) == chunks else ())
    return tuple(nodes)


@pytest.mark.parametrize("seed", range(20))
def test_first_fit_places_on_the_first_nodes_with_room(seed):
    rng = np.random.default_rng(seed)
    jobs, nodes = int(rng.integers(1, 9)), int(rng.integers(1, 7))
    problem = NodePlacement(
        resources=["cores", "memory"],
        free=rng.integers(0, 9, (nodes, 2)),
        chunks=rng.integers(1, 4, jobs),
        demand=rng.integers(1, 5, (jobs, 2)),
    )
    assert optsched.solve(problem, "first-fit").solution.nodes == first_fit(problem)


@pytest.mark.parametrize("rule", RULES)
def test_a_job_that_no_node_can_hold_is_left_out_and_the_next_placed(rule):
    problem = NodePlacement(["cores"], [[4]], [1, 1], [[5], [4]])
    assert optsched.solve(problem, rule).solution.nodes == ((), (0,))


def test_the_rule_of_the_tree_splits_a_job_that_has_room_in_one_leaf():
    """A real Slurm did the same; the optimum is one switch less."""
    problem = read_snapshot(bundled("models") / "node-placement" / "two-leaves.json").problem
    rule = optsched.solve(problem, "tree-best-fit").solution
    assert problem.measures(rule) == {"weight": 4, "switches": 5, "nodes": 11}
    exact = optsched.solve(problem, "cp-sat").solution
    assert problem.measures(exact)["switches"] == 4


DEVICES = {"devices": [[1000], [1000, 1000]], "share": [500]}


@pytest.mark.parametrize(
    ("rule", "devices", "node"),
    [("device-packing", DEVICES, 0), ("best-fit", {}, 1), ("first-fit", {}, 0)],
)
def test_best_fit_fills_the_fullest_node_and_device_packing_that_with_fewest_devices(
    rule, devices, node
):
    problem = NodePlacement(["cores"], [[8], [6]], [1], [[2]], **devices)
    assert optsched.solve(problem, rule).solution.nodes == ((node,),)


EXACT = ("column-generation", "cp-sat", "highs")


def racks(free, jobs, *, most=None, segments=None, weights=None):
    """Return jobs of chunks of a core on nodes, by racks, of which two are in a row."""
    rack_of = [rack for rack, there in enumerate(free) for _ in there]
    none = [[0, 0]] * len(jobs)
    return NodePlacement(
        ["cores"],
        np.array([cores for rack in free for cores in rack], dtype=np.int64).reshape(-1, 1),
        jobs,
        [[1]] * len(jobs),
        weights=weights or jobs,
        levels=["rows", "racks"],
        groups=[[f"row {rack // 2}" for rack in rack_of], [f"rack {rack}" for rack in rack_of]],
        most_groups=np.array(most or none),
        segments=np.array(segments or none),
    )


def keeps(problem, job, counts):
    """Return whether numbers of chunks on nodes keep the limits of the levels of a job."""
    for level, groups in enumerate(problem.groups):
        sums = Counter()
        for group, count in zip(groups, counts):
            sums[group] += count
        most, segment = problem.most_groups[job, level], problem.segments[job, level]
        if most and sum(map(bool, sums.values())) > most:
            return False
        if segment and any(count % segment for count in sums.values()):
            return False
    return True


def optimum_of(problem):
    """Try all numbers of chunks of every job on every node."""
    best = {tuple(problem.free[:, 0].tolist()): 0}
    for job, chunks in enumerate(problem.chunks.tolist()):
        after = dict(best)
        for free, value in best.items():
            for counts in product(*(range(min(chunks, one) + 1) for one in free)):
                if sum(counts) == chunks and keeps(problem, job, counts):
                    rest = tuple(one - count for one, count in zip(free, counts))
                    gain = value + int(problem.weights[job])
                    after[rest] = max(after.get(rest, 0), gain)
        best = after
    return max(best.values())


@st.composite
def in_racks(draw, jobs=3):
    """Draw jobs with limits at both levels, on at most six nodes of one chunk or of two."""
    nodes = st.lists(st.integers(0, draw(st.integers(1, 2))), min_size=1, max_size=2)
    free = draw(st.lists(nodes, max_size=3))
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=jobs))
    pairs = st.tuples(st.integers(0, 2), st.integers(0, 3))
    segments = [
        [draw(st.sampled_from([0, *(n for n in range(1, 5) if size % n == 0)])) for _ in range(2)]
        for size in sizes
    ]
    most = [draw(pairs) for _ in sizes]
    return racks(free, sizes, most=most, segments=segments)


@settings(max_examples=60)
@example(racks([[2]], [2], segments=[[0, 2]]))
@given(in_racks())
def test_exact_solvers_find_the_best_of_all_placements(problem):
    best = optimum_of(problem)
    for name in EXACT:
        result = solve(problem, name)
        assert (result.status, result.objective) == (Status.OPTIMAL, best)


@settings(max_examples=100)
@given(in_racks(jobs=1))
def test_a_rule_places_a_job_alone_where_racks_are_parts_of_one_row(problem):
    """For one row, or where the racks are not limited, the rules miss no placement."""
    if problem.most_groups[0, 0] != 1 and problem.most_groups[0, 1]:
        return
    best = optimum_of(problem)
    for name in RULES:
        result = solve(problem, name)
        assert problem.violations(result.solution) == []
        assert result.objective == best


ODD = ("3 chunks in rack 0,", "1 chunks in rack 1,")


@pytest.mark.parametrize(
    ("first", "second", "broken"),
    [
        ((0, 1, 3, 4), (), []),
        ((), (0, 3, 4, 5), []),
        ((0, 1, 6, 7), (), ["groups: job 1 spans 2 of rows, more than 1"]),
        ((), (0, 1, 3, 6), ["groups: job 2 spans 3 of racks, more than 2"]),
        ((0, 1, 2, 3), (), [f"segment: job 1 has {n} in segments of 2" for n in ODD]),
    ],
)
def test_violations_name_the_groups_and_segments(first, second, broken):
    problem = racks([[1] * 3] * 3, [4, 4], most=[[1, 0], [0, 2]], segments=[[0, 2], [0, 0]])
    placed = Placements((first, second), (((),) * len(first), ((),) * len(second)))
    found = [f"{each.constraint}: {each.detail}" for each in problem.violations(placed)]
    assert found == broken


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"segments": [[0, 3]]}, r"segments\[0\]\[1\]: 3; expected a divisor of 4"),
        ({"groups": [["a", "a"], ["b"]]}, r"groups\[1\]: 1 groups; expected 2"),
        ({"groups": [["a", "a"], ["b", 1]]}, r"groups\[1\]: expected a list of texts"),
        ({"most_groups": [[1]]}, r"most_groups\[0\]: 1 value; expected 2, one for each of levels"),
    ],
)
def test_mistakes_are_named(changed, said):
    with pytest.raises(InputError, match=said):
        replace(racks([[1], [1]], [4]), **changed)


def test_a_queue_on_64_nodes_is_proven():
    """8 racks of 8 nodes, three quarters of them free, and jobs with segments or within a row."""
    rng = np.random.default_rng(7)
    free = [[int(rng.random() < 0.75) for _ in range(8)] for _ in range(8)]
    sizes = [int(size) for size in rng.choice([4, 8, 12, 16, 24], 20)]
    segments = [[0, (2, 0, 4, 4)[place % 4]] for place in range(20)]
    most = [[int(size <= 16), 0] for size in sizes]
    problem = racks(free, sizes, most=most, segments=segments)
    result = solve(problem, "column-generation", budget=Budget(work=20))
    assert result.status is Status.OPTIMAL
    assert result.objective >= solve(problem, "tree-best-fit").objective


def test_jobs_with_limits_are_placed_first_and_the_others_packed_around_them():
    """Jobs of cores on shared nodes, every tenth in one rack, too many to place them all."""
    rng = np.random.default_rng(3)
    jobs, nodes = 40, 32
    sizes, cores = rng.choice([1, 2, 4, 8], jobs), rng.choice([1, 2, 4, 8], (jobs, 1))
    problem = NodePlacement(
        ["cores"],
        rng.integers(1, 17, (nodes, 1)),
        sizes,
        cores,
        weights=rng.integers(1, 100, jobs) * sizes,
        most_per_node=[1] * jobs,
        exclusive=[5, 20],
        levels=["racks"],
        groups=[[f"rack {node // 8}" for node in range(nodes)]],
        most_groups=[[int(job % 10 == 0)] for job in range(jobs)],
    )
    result = solve(problem, "column-generation", budget=Budget(work=0.5))
    assert result.objective > solve(problem, "first-fit").objective
