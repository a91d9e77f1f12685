"""The published rules, compiled as the paper and its authors state them and by hand; all plans."""

from dataclasses import dataclass, field, replace
from inspect import signature
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched import registry, solve
from optsched.models import DataPlacement
from optsched.models.data_placement.fields import LEFT_OUT, Plan
from optsched.models.data_placement.program import latest_start
from optsched.solvers.data_placement.interval_search import first_plan
from optsched.solvers.data_placement.intervals import cores_for, lower_bound
from optsched.solvers.result import Limit, Status
from optsched.testing import data_placements


@dataclass
class Node:
    """What is known of a node while a plan is made."""

    available: list
    reserved: list
    visits: list = field(default_factory=list)  # file, load, start, loaded, end
    starts: list | None = None  # of all jobs, if they evict files
    held: list = field(default_factory=list)  # start, end, core

    def in_order(self):
        return sorted(range(len(self.available)), key=lambda core: (self.available[core], core))

    def loading(self, file, load, at, from_start):
        if file < 0:
            return 0
        visits = [visit for visit in self.visits if visit[0] == file]
        there = [loaded for *_, start, loaded, end in visits if start <= at <= end]
        there += [loaded for *_, loaded, end in visits if self.left_alone(end, at)]
        if not there:
            return load
        if there[0] <= at:
            return 0
        return there[0] - at if from_start else there[0]

    def left_alone(self, end, at):
        return self.starts is not None and end < at and not any(end <= s < at for s in self.starts)

    def reloading(self, file, load, at, capacity, in_memory):
        if in_memory:
            there = {
                other: size
                for other, size, start, _, end in self.visits
                if start <= at <= end or self.left_alone(end, at)
            }
            return sum(there.values()) * load // capacity
        last = {other: (size, end) for other, size, _, _, end in self.visits if other != file}
        return sum(size for size, end in last.values() if end <= at) * load // capacity

    def free_at(self, core, start, end):
        return all(core != other or end <= a or b <= start for a, b, other in self.held)


@dataclass
class Rule:
    """A rule by its score and its options."""

    loading: int
    reloading: int
    opportune: bool = False
    whole_scan: bool = False
    from_start: bool = False
    in_memory: bool = False
    threshold: int = 0
    backfill: str = "none"
    stop: str = "full"


def stated(problem, rule):
    """Return the plan of a rule, job after job and node after node."""
    nodes = [Node([max(0, t) for t in row], [0] * len(row)) for row in problem.available.tolist()]
    if problem.reserved is not None:
        for node, row in zip(nodes, problem.reserved.tolist()):
            node.reserved = row
    if problem.kept == "next":
        for node, started in zip(nodes, problem.started):
            node.starts = [0] if started else []
    for n, file, load, loaded, until in problem.resident.tolist():
        nodes[n].visits.append((file, load, 0, loaded, until))
    for node in nodes:
        for core, (free_from, hole) in enumerate(zip(node.available, node.reserved)):
            if free_from > 0:
                node.held.append((hole, free_from, core))
    running = list(problem.occupied)
    width = len(nodes[0].available)
    counts = [sum(1 for until in node.reserved if until > 0) for node in nodes]
    widest = list(problem.noticed or (max(counts), counts.index(max(counts))))
    out = [(-1, 0, 0)] * len(problem.processors)
    jobs = zip(problem.processors, problem.walltimes, problem.files, problem.loads)
    for job, (processors, walltime, file, load) in enumerate(np.array(list(jobs)).tolist()):
        only_holes = False
        if problem.partial:
            if rule.backfill == "conservative":
                idle = [n.free_at(c, 0, 1) for n in nodes for c in range(width)]
                if not any(idle):
                    break
            else:
                free = sum(t <= 0 for node in nodes for t in node.available)
                only_holes = free < processors if rule.stop == "short" else free == 0
        a, b, once = rule.loading, rule.reloading, rule.opportune
        if sum(running) * 100 // len(nodes) < rule.threshold:
            a, b, once = 1, 0, False
        if only_holes:
            if rule.backfill != "holes":
                break
            if processors > widest[0]:
                continue
        if only_holes and rule.whole_scan and once:
            a, b = 1, 0
        best = None
        for n, node in enumerate(nodes):
            for start, cores, hole in places(rule, node, processors, walltime, only_holes):
                if once and rule.whole_scan and start == 0 and not hole:
                    a, b = 1, 0
                x, y = (1, 0) if once and not rule.whole_scan and start == 0 else (a, b)
                wait = node.loading(file, load, start, rule.from_start) if x else 0
                score = start + x * wait
                if y:
                    score += y * node.reloading(file, load, start, problem.capacity, rule.in_memory)
                if best is None or score < best[0]:
                    best = (score, n, start, cores, hole, wait)
        if best is None:
            continue
        _, n, start, cores, hole, wait = best
        node = nodes[n]
        if start == 0 and not running[n] and no_plan_for(rule, node):
            running[n] = True
        if node.starts is not None:
            node.starts.append(start)
        if not only_holes:
            node.visits.append((file, load, start, start + wait, start + walltime))
        for core in cores:
            if hole and node.reserved[core] >= walltime:
                node.reserved[core] = 0
            else:
                if rule.backfill == "holes" and start > 0 and node.available[core] <= 0:
                    node.reserved[core] = start
                node.available[core] = start + walltime
            node.held.append((start, start + walltime, core))
        if rule.backfill == "holes" and n == widest[1]:
            counts = [sum(1 for until in node.reserved if until > 0) for node in nodes]
            widest = [max(counts), counts.index(max(counts))]
        out[job] = (n, start, sum(1 << core for core in cores))
    return Plan(*(np.array(column) for column in zip(*out))) if out else Plan([], [], [])


def no_plan_for(rule, node):
    """Whether the node counts as one that begins to run."""
    if rule.backfill == "conservative":
        return True
    return all(t <= 0 for t in node.available)


def places(rule, node, processors, walltime, only_holes):
    """Yield start, cores and whether they are backfilled, of what a node offers to a job."""
    width = len(node.available)
    if rule.backfill == "conservative":
        for start in sorted({0} | {end for _, end, _ in node.held}):
            free = [c for c in range(width) if node.free_at(c, start, start + walltime)]
            if len(free) >= processors:
                yield start, free[:processors], False
                return
    order = node.in_order()
    if not only_holes:
        start = max(0, node.available[order[processors - 1]])
        cores = order[:processors]
        if rule.backfill == "holes":
            cores = [c for c in range(width) if node.available[c] <= start][:processors]
        yield start, cores, False
    if rule.backfill != "holes" or not any(node.reserved):
        return
    long_enough = [c for c in range(width) if node.reserved[c] >= walltime > 0]
    holes = sorted(long_enough, key=lambda c: (node.reserved[c], c))[:processors]
    missing = processors - len(holes)
    others = order[:missing]
    if only_holes and missing:
        return
    if all(node.available[c] <= 0 for c in others):
        yield 0, holes + others, True


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
    assert plan == stated(problem, Rule(**scored, **both))
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
    "node 0: 0 + 100; node 1: 50 in the scan, 50 + 1280 x 100 / 1280 by itself": (
        one_job([[0], [50]], 1000, 100, [[1, 1, 100, 0, 50], [1, 2, 1280, 0, 20]]),
        ("leo", {}, (1, 50)),
        ("leo", {"opportune": "node"}, (0, 0)),
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


TINY = data_placements(max_jobs=3, max_nodes=2, max_cores=2, longest=3)
EXACT = ("interval-search", "cp-sat", "highs")


def optimum(problem: DataPlacement) -> int:
    """Return the least cost of all plans, by verification alone."""
    nodes, cores = problem.available.shape
    jobs = len(problem.processors)
    sizes = problem.processors.tolist()
    rows = np.full((3, jobs), LEFT_OUT)
    rows[1:] = 0
    # jobs that are not tried yet are left out for the moment
    partial = DataPlacement.from_json(problem.to_json() | {"partial": True})
    best = [None]

    def place(job: int, waited: int) -> None:
        if best[0] is not None and waited >= best[0]:
            return
        if job == jobs:
            value = problem.objective(Plan(*rows.copy()))
            best[0] = value if best[0] is None else min(best[0], value)
            return
        weight = int(problem.priorities[job])
        if problem.partial:
            place(job + 1, waited + weight * problem.horizon)
        for start in range(latest_start(problem) + 1):
            for node in range(nodes):
                for some in combinations(range(cores), sizes[job]):
                    rows[:, job] = node, start, sum(1 << core for core in some)
                    if not partial.violations(Plan(*rows.copy())):
                        place(job + 1, waited + weight * start)
        rows[:, job] = LEFT_OUT, 0, 0

    place(0, 0)
    return best[0]


@settings(max_examples=60, deadline=None)
@given(TINY)
def test_solvers_find_the_optimum_of_all_plans(problem):
    best = optimum(problem)
    assert lower_bound(problem) <= best <= problem.objective(first_plan(problem))
    for solver in EXACT:
        result = solve(problem, solver)
        assert (result.status, result.objective) == (Status.OPTIMAL, best), solver


def test_cores_with_holes_are_chosen_from_both_ends_of_time():
    at, free = {"reserved": [[5, 10, 0]]}, [[8, 20, 0]]
    problem = DataPlacement(free, [1, 1, 2], [5, 10, 4], [-1] * 3, [0] * 3, **at)
    masks = cores_for(problem, 0, np.arange(3), np.array([0, 0, 8]), np.array([0, 0, 2]))
    assert masks == {0: 0b001, 1: 0b010, 2: 0b101}


def test_what_is_too_large_to_be_stated_has_a_plan_and_a_bound():
    jobs = 300
    problem = DataPlacement([[0] * 4] * 8, [2] * jobs, [60] * jobs, [0] * jobs, [9] * jobs)
    result = solve(problem, "interval-search")
    assert (result.status, result.limit) == (Status.FEASIBLE, Limit.MEMORY)
    assert 0 < result.gap < 0.1


NO_FILES = {"files": [-1] * 2, "loads": [0] * 2}
LOADED = DataPlacement([[0], [40]], [1, 1], [90, 90], [7, 7], [60, 60])
LEFT_BEFORE = replace(LOADED, resident=[[1, 7, 60, 10, 30]])


@pytest.mark.parametrize(
    ("problem", "bound"),
    [
        (DataPlacement([[90]], [1], [30], [-1], [0]), 90),
        (DataPlacement([[90]], [1], [30], [-1], [0], reserved=[[30]]), 0),  # a hole
        # no job has its file before a node can have it
        (LOADED, 60 + 60),
        (replace(LOADED, resident=[[1, 7, 60, 10, 50]]), 40 + 40),
        (LEFT_BEFORE, 60 + 60),
        (replace(LEFT_BEFORE, kept="next"), 40 + 40),
        (replace(LOADED, available=[[0], [0]], load_weight=3), 60 + 60 + 2 * 60),
        # 10 s first, then 20 s; left out, the second would start at 20 s
        (DataPlacement([[0]], [1, 1], [20, 10], **NO_FILES), 10),
        (DataPlacement([[0]], [1, 1], [20, 10], **NO_FILES, partial=True), 10),
    ],
)
def test_the_bound_by_hand(problem, bound):
    assert lower_bound(problem) == bound
