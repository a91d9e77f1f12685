from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.models import ThresholdAllocation
from optsched.models.threshold_allocation import Placement
from optsched.models.threshold_allocation.problem import most_penalized
from optsched.models.threshold_allocation.timeline import added_penalty, checked_penalty
from optsched.testing import threshold_allocations


def overloads(problem: ThresholdAllocation, placement: Placement):
    """Yield node, processes of others, and penalties with and without the job, of each second."""
    for node, own in enumerate(placement.processes.tolist()):
        for second in range(placement.start, placement.start + problem.walltime):
            rows = [
                row for row in problem.held.tolist() if row[0] == node and row[2] <= second < row[3]
            ]
            penalties = []
            for count in (own, 0):
                penalty = Fraction(0)
                for r, capacity in enumerate(problem.capacity.tolist()):
                    level = sum(row[1] * row[4 + r] for row in rows)
                    demand = level + count * int(problem.demand[r])
                    penalty += Fraction(max(demand, capacity), capacity) - 1
                penalties.append(penalty)
            yield node, sum(row[1] for row in rows), own, *penalties


def penalised(problem: ThresholdAllocation, placement: Placement) -> Fraction:
    """Return the penalised seconds of the job."""
    of_node = [Fraction(0)] * problem.nodes
    for node, _, own, penalty, _ in overloads(problem, placement):
        if own:
            of_node[node] += penalty
    return max(of_node)


def stated_objective(problem: ThresholdAllocation, placement: Placement) -> Fraction:
    """Return the objective by the paper's equations (1) to (3), second by second."""
    if problem.goal == "start":
        return Fraction(placement.start)
    if problem.goal == "everybody":
        added = sum(
            (others + own) * with_job - others * without
            for _, others, own, with_job, without in overloads(problem, placement)
        )
        return Fraction(added * problem.unit)
    waited = placement.start if problem.goal == "response" else 0
    return (waited + penalised(problem, placement)) * problem.unit


def is_feasible(problem: ThresholdAllocation, placement: Placement) -> bool:
    """Return whether a placement keeps the maths, second by second."""
    start, processes = placement
    if start not in {0, *problem.held[:, 3].tolist()} or processes.sum() != problem.asked:
        return False
    if problem.latest is not None and start > problem.latest:
        return False
    active = [others + own for _, others, own, *_ in overloads(problem, placement) if own]
    if max(active) > problem.processors:
        return False
    factor = 1 + penalised(problem, placement) / problem.walltime
    return problem.threshold is None or 1000 * factor <= problem.threshold


def placements(problem: ThresholdAllocation):
    """Yield all that put the right number of processes onto nodes with so many processors."""
    for start in range(int(problem.held[:, 3].max(initial=0)) + 2):
        for counts in product(range(problem.processors + 1), repeat=problem.nodes):
            if sum(counts) == problem.asked:
                yield Placement(start, np.array(counts))


@settings(max_examples=150, deadline=None)
@given(threshold_allocations(longest=5), st.integers(0, 9))
def test_verification_follows_the_maths(problem, seed):
    rng = np.random.default_rng(seed)
    every = list(placements(problem))
    for number in rng.permutation(len(every))[:12]:
        placement = every[number]
        broken = problem.violations(placement)
        assert (broken == []) == is_feasible(problem, placement), broken
        assert problem.objective(placement) == stated_objective(problem, placement)


@settings(max_examples=100, deadline=None)
@given(threshold_allocations(longest=5), st.data())
def test_the_penalty_added_for_all_is_that_of_the_maths_in_a_kernel_too(problem, data):
    every = [one for one in placements(problem) if max(one.processes) <= problem.processors]
    start, processes = data.draw(st.sampled_from(every))
    added = added_penalty(problem.held, problem.in_kernels, start, processes)
    stated = stated_objective(replace(problem, goal="everybody"), Placement(start, processes))
    assert added == stated


@settings(max_examples=400, deadline=None)
@given(threshold_allocations(longest=5), st.data())
def test_the_quick_check_passes_just_what_has_no_violations(problem, data):
    def drawn(sound, *others):
        return data.draw(sound if data.draw(st.integers(0, 3)) else st.one_of(*others))

    starts, counts = problem.starts.tolist(), st.integers(0, 2)
    whole = st.lists(counts, min_size=problem.nodes, max_size=problem.nodes)
    row = drawn(whole, st.lists(st.integers(-1, 4), max_size=4), st.just([2**62] * 3))
    odd = st.sampled_from([1.0, True, 2**70, None])
    start = drawn(st.sampled_from(starts), st.integers(-2, 9), odd)
    processes = np.array(row, dtype=np.int64)
    processes.flags.writeable = data.draw(st.booleans())
    forms = [processes.astype(np.int32), processes.astype(np.float64), row]
    answer = Placement(start, drawn(st.just(processes), st.sampled_from(forms)))
    answer = drawn(st.just(answer), st.just(tuple(answer)))
    passes = problem.passes_quick_check(answer)
    try:
        broken = problem.violations(answer)
    except Exception:
        assert not passes
        return
    assert not (passes and broken)
    is_sound = type(answer) is Placement and type(start) is int and answer.processes is processes
    if is_sound and start in starts:
        assert passes == (not broken)
        others = [one for one in broken if one.constraint != "start"]
        if processes.shape == (problem.nodes,):
            processes.flags.writeable = False
            penalty = checked_penalty(problem.held, problem.in_kernels, start, processes, True)
            assert (0 <= penalty <= most_penalized(problem)) == (not others)
    if passes:
        plain = Placement(answer.start, answer.processes.copy())
        assert problem.penalised_time(answer) == penalised(problem, plain) * problem.unit


def test_a_placement_that_changes_after_its_check_is_checked_again():
    problem = ThresholdAllocation(1, 4, [6000], [[0, 2, 0, 9, 2000]], 2, 9, [2000], goal="penalty")
    answer = Placement(0, np.array([2]))
    assert problem.passes_quick_check(answer)
    answer.processes[0] = 3
    assert not problem.passes_quick_check(answer)


ONE_NODE = {"nodes": 1, "processors": 4, "capacity": [6000]}
JOB = {"asked": 1, "walltime": 100, "demand": [2000]}
HERE = Placement(0, np.array([1]))


def test_two_jobs_on_a_node_over_its_capacity():
    shared = {**ONE_NODE, **JOB, "held": [[0, 3, 0, 500, 2000]]}
    problem = ThresholdAllocation(**shared, goal="penalty")
    assert problem.unit == 6000
    assert problem.objective(HERE) == 100 * 2000  # a third of 100 s
    assert problem.factor(HERE) == pytest.approx(4 / 3)
    assert dict(problem.describe(HERE))["penalty factor"] == "1.3333, any"
    assert ThresholdAllocation(**shared, goal="everybody").objective(HERE) == 4 * 100 * 2000
    for threshold, broken in ((1333, True), (1334, False), (None, False)):
        problem = ThresholdAllocation(**shared, threshold=threshold)
        assert bool(problem.violations(HERE)) == broken


def test_what_is_wrong_with_a_placement_is_named():
    problem = ThresholdAllocation(2, 2, [6000], [[0, 1, 0, 50, 2000]], 2, 100, [2000], latest=10)
    for start, processes, names in (
        (0, [1, 1], []),
        (0, [2, 0], ["free"]),
        (0, [1, 0], ["asked"]),
        (50, [0, 2], ["start"]),
        (0, [3, -1], ["processes"]),
        (0, [2], ["processes"]),
    ):
        broken = problem.violations(Placement(start, np.array(processes)))
        assert [violation.constraint for violation in broken] == names


def test_a_node_never_holds_more_processes_than_processors():
    held = [[0, 2, 0, 50, 1], [0, 1, 20, 30, 1], [0, 1, 25, 60, 1], [0, 2, 50, 60, 1]]
    message = r"held\[2\]: more than 3 processes on node 0 at 25 s"
    with pytest.raises(InputError, match=message):
        ThresholdAllocation(1, 3, [1], held, 1, 1, [1])
    held[2][2] = 30
    assert len(ThresholdAllocation(1, 3, [1], held, 1, 1, [1]).held) == 4


def test_numbers_that_cannot_be_counted_are_refused():
    for fields in (
        {"capacity": [10**12 - 1, 10**12 - 3], "demand": [1, 1]},
        {"demand": [10**12], "walltime": 10**9},
        {"nodes": 10**6, "walltime": 10**12, "capacity": [], "demand": []},
    ):
        with pytest.raises(InputError, match="too large together"):
            ThresholdAllocation(**(ONE_NODE | JOB | {"held": []} | fields))
