"""Threshold allocation: the rules as stated and by hand, and the optimum of all placements."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from optsched import Budget, solve
from optsched.models import ThresholdAllocation
from optsched.models.threshold_allocation import Placement
from optsched.models.threshold_allocation.problem import GOALS
from optsched.solvers.result import Status
from optsched.testing import threshold_allocations

RULES = ("first-fit", "less-consume", "less-consume-threshold")


def seconds(problem: ThresholdAllocation, node: int, start: int) -> list[tuple[int, list[int]]]:
    """Return processes and demands of each second on a node from start on."""
    found = []
    for second in range(start, start + problem.walltime):
        rows = [r for r in problem.held.tolist() if r[0] == node and r[2] <= second < r[3]]
        demands = [sum(row[1] * row[4 + r] for row in rows) for r in range(len(problem.capacity))]
        found.append((sum(row[1] for row in rows), demands))
    return found


def free(problem: ThresholdAllocation, start: int) -> list[int]:
    """Return the processors of each node that are free for the walltime."""
    return [
        problem.processors - max(count for count, _ in seconds(problem, node, start))
        for node in range(problem.nodes)
    ]


def lost(problem: ThresholdAllocation, node: int, start: int, count: int) -> int:
    """Return A_n(k), what the job loses in units with so many processes on a node."""
    limits = list(zip(problem.demand.tolist(), problem.capacity.tolist()))
    return count and sum(
        max(0, demand + count * own - capacity) * problem.unit // capacity
        for _, demands in seconds(problem, node, start)
        for demand, (own, capacity) in zip(demands, limits)
    )


def first_fit(problem: ThresholdAllocation, start: int) -> list[int] | None:
    """Return the processes on each node, on free processors in order; none if there are too few."""
    left, processes = problem.asked, []
    for room in free(problem, start):
        processes.append(min(room, left))
        left -= processes[-1]
    return None if left else processes


def moved(problem: ThresholdAllocation, start: int, processes: list[int], enough: int) -> list[int]:
    """Return the processes after each unused processor was offered, until enough is reached."""
    processes = processes.copy()
    buckets = [
        node
        for node, (room, used) in enumerate(zip(free(problem, start), processes))
        for _ in range(room - used)
    ]
    for bucket in buckets:
        losses = [lost(problem, node, start, count) for node, count in enumerate(processes)]
        if max(losses) <= enough:
            break
        # a node without processes is never the worst while something is lost
        worst = losses.index(max(losses))
        if lost(problem, bucket, start, processes[bucket] + 1) < max(losses):
            processes[worst] -= 1
            processes[bucket] += 1
    return processes


def is_within(problem: ThresholdAllocation, start: int, processes: list[int]) -> bool:
    """Return whether the factor is at most the threshold."""
    most = max(lost(problem, node, start, count) for node, count in enumerate(processes))
    requested = problem.walltime * problem.unit
    return problem.threshold is None or 1000 * (requested + most) <= problem.threshold * requested


def by_rule(problem: ThresholdAllocation, rule: str) -> tuple[int, list[int]] | None:
    """Return start and processes by a published rule; none if it has no answer."""
    for start in problem.starts.tolist():
        processes = first_fit(problem, start)
        if processes is None:
            continue
        if rule == "less-consume-threshold" and problem.threshold is not None:
            enough = (problem.threshold - 1000) * problem.walltime * problem.unit // 1000
            processes = moved(problem, start, processes, enough)
            if not is_within(problem, start, processes):
                continue
        elif rule != "first-fit":
            processes = moved(problem, start, processes, 0)
        return (start, processes) if is_within(problem, start, processes) else None
    return None


@settings(max_examples=150, deadline=None)
@given(threshold_allocations(max_nodes=4, max_processors=4, max_held=8))
def test_rules_place_as_stated(problem):
    for rule in RULES:
        expected = by_rule(problem, rule)
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
        ("first-fit", LATE, None),
        ("less-consume-threshold", LATE | {"latest": 199}, None),
    ],
)
def test_the_rules_by_hand(rule, fields, place):
    job = {"asked": 3, "walltime": 100, "demand": [2000]}
    problem = ThresholdAllocation(nodes=3, processors=4, capacity=[6000], held=HELD, **job | fields)
    solution = solve(problem, rule).solution
    assert (solution and (solution.start, solution.processes.tolist())) == place


def best_by_trying(problem: ThresholdAllocation) -> int | None:
    """Return the least objective of all placements."""
    counts = [
        np.array(counts)
        for counts in product(range(problem.processors + 1), repeat=problem.nodes)
        if sum(counts) == problem.asked
    ]
    every = (Placement(start, some) for start in problem.starts.tolist() for some in counts)
    return min((problem.objective(p) for p in every if not problem.violations(p)), default=None)


@settings(max_examples=60, deadline=None)
@given(threshold_allocations())
def test_bottleneck_search_is_optimal(problem):
    for goal in GOALS:
        goaled = replace(problem, goal=goal)
        best = best_by_trying(goaled)
        result = solve(goaled)
        expected = Status.INFEASIBLE if best is None else Status.OPTIMAL
        assert (result.solver, result.status) == ("bottleneck-search", expected)
        assert result.objective == result.bound == best


def test_for_the_earliest_start_the_job_loses_least_there():
    held = [[0, 2, 0, 300, 2500], [1, 1, 0, 200, 5000], [2, 3, 0, 500, 500]]
    job = {"asked": 3, "walltime": 100, "demand": [2000]}
    result = solve(ThresholdAllocation(3, 4, [6000], held, **job))
    assert result.objective == 0
    # ties go to nodes of lower number
    assert result.solution.processes.tolist() == [1, 1, 1]
    assert solve(ThresholdAllocation(3, 4, [6000], [], **job)).solution.processes[0] == 3


@pytest.mark.parametrize("goal", GOALS)
def test_a_budget_ends_the_search_with_a_bound(goal):
    """There are many times to start, none of them but the last without loss."""
    held = [[0, 1, at, at + 1, 6000] for at in range(300)]
    problem = ThresholdAllocation(1, 2, [6000], held, 1, 1, [10], goal=goal)
    whole = solve(problem)
    cut = solve(problem, budget=Budget(work=70))
    assert whole.status is Status.OPTIMAL
    assert cut.bound <= whole.objective <= cut.objective
    if goal in ("penalty", "everybody"):
        assert (whole.objective, whole.work, whole.solution.start) == (0, 301, 300)
        assert cut.status is Status.FEASIBLE
        assert cut.limit.value == "work"
        assert solve(problem, budget=Budget(work=70), hint=whole.solution).objective == 0
    tight = ThresholdAllocation(1, 1, [1], held[:250], 1, 1, [1], goal=goal)
    unknown = solve(tight, budget=Budget(work=70))
    assert unknown.status is Status.NO_SOLUTION
    assert solve(tight).solution.start == 250
    assert unknown.bound <= solve(tight).objective


def test_what_is_proven_by_the_time_the_budget_ends_is_optimal():
    # the job starts at 65 s, the first second that two turns do not look at
    held = [[0, 1, at, at + 1, 0] for at in range(65)]
    problem = ThresholdAllocation(1, 1, [1], held, 1, 1, [1], goal="response")
    best = solve(problem).solution
    result = solve(problem, budget=Budget(work=64), hint=best)
    assert (result.status, result.limit, result.bound) == (Status.OPTIMAL, None, 65)
