from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.models import DataPlacement
from optsched.models.data_placement.fields import Plan
from optsched.models.data_placement.problem import _load_times
from optsched.models.data_placement.program import latest_start
from optsched.testing import check_problem, data_placements


def loads_second_by_second(problem: DataPlacement, plan: Plan) -> list[int]:
    """Return the load times as a node would meet them: (loaded, until) of each file it has."""
    times = problem.loads.tolist()
    memory = {(node, file): (loaded, until) for node, file, _, loaded, until in problem.resident}
    starts = [(node, 0) for node in np.flatnonzero(problem.started)]
    starts += list(zip(plan.node, plan.start))
    for job in sorted(range(len(times)), key=lambda job: (plan.start[job], job)):
        node, file, start = plan.node[job], problem.files[job], plan.start[job]
        if node == -1 or file == -1:
            continue
        loaded, until = memory.get((node, file), (0, -1))
        left = problem.kept == "next" and (node, file) in memory
        if left and not any((node, second) in starts for second in range(until, start)):
            until = max(until, start)
        if start > until:
            loaded, until = start + times[job], -1
        times[job] = max(0, loaded - start)
        memory[node, file] = loaded, max(until, start + problem.walltimes[job])
    return times


def is_feasible(problem: DataPlacement, plan: Plan) -> bool:
    """Return whether a plan keeps the maths, core by core and second by second."""
    busy = Counter()
    for job, (node, start, mask) in enumerate(zip(plan.node, plan.start, plan.cores)):
        if node == -1:
            if not problem.partial:
                return False
            continue
        end = start + problem.walltimes[job]
        held = [core for core in range(problem.available.shape[1]) if mask >> core & 1]
        if len(held) != problem.processors[job]:
            return False
        for core in held:
            hole = problem.reserved is not None and end <= problem.reserved[node, core]
            if start < problem.available[node, core] and not hole:
                return False
            busy.update((node, core, second) for second in range(start, end))
    return max(busy.values(), default=0) <= 1


@st.composite
def planned(draw) -> tuple[DataPlacement, Plan]:
    """Return a problem and any plan of its jobs."""
    problem = draw(data_placements(max_jobs=5))
    nodes, cores = problem.available.shape
    rows = []
    for _ in problem.processors:
        mask = draw(st.integers(0, (1 << cores) - 1))
        row = (draw(st.integers(0, nodes - 1)), draw(st.integers(0, 20)), mask)
        rows.append(draw(st.sampled_from([row, row, row, (-1, 0, 0)])))
    return problem, Plan(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


@settings(max_examples=300, deadline=None)
@given(planned())
def test_verification_follows_the_maths(drawn):
    problem, plan = drawn
    assert problem.load_times(plan).tolist() == loads_second_by_second(problem, plan)
    assert (problem.violations(plan) == []) == is_feasible(problem, plan)
    start = [problem.horizon if node == -1 else at for node, at in zip(plan.node, plan.start)]
    times = loads_second_by_second(problem, plan)
    assert problem.objective(plan) == sum(
        p * (s + problem.load_weight * t) for p, s, t in zip(problem.priorities, start, times)
    )


def crowded(problem, rng):
    """Return a random plan of the right sizes that starts early."""
    nodes, cores = problem.available.shape
    rows = []
    for size in problem.processors.tolist():
        mask = sum(1 << int(core) for core in rng.permutation(cores)[:size])
        row = (rng.integers(nodes), rng.integers(1 + min(latest_start(problem), 8)), mask)
        rows.append((-1, 0, 0) if problem.partial and rng.random() < 0.2 else row)
    return Plan(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


@settings(max_examples=12, deadline=None)
@given(data_placements(max_jobs=3, max_nodes=2, max_cores=2, longest=3), st.integers(0, 99))
def test_it_keeps_the_contract_of_a_problem(problem, seed):
    rng = np.random.default_rng(seed)
    drawn = [crowded(problem, rng) for _ in range(150)]
    feasible = [plan for plan in drawn if is_feasible(problem, plan)]
    check_problem(problem, solutions=[*feasible[:25], *drawn[:3]])


EXAMPLE = DataPlacement(
    available=[[0, 0], [50, 0]], processors=[2, 1, 1], walltimes=[100, 100, 40], files=[1, 1, -1],
    loads=[30, 30, 0], resident=[[1, 1, 30, 10, 50]], reserved=[[0, 0], [40, 0]], load_weight=3,
    priorities=[1, 2, 1], partial=True, jobs=["A", "B", "C"],
)  # fmt: skip
GOOD = Plan([0, 1, 1], [0, 0, 0], [0b11, 0b10, 0b01])


@settings(max_examples=300, deadline=None)
@given(planned(), st.data())
def test_the_quick_check_passes_just_what_has_no_violations(drawn, data):
    problem, plan = drawn
    rows = np.array([plan.node, plan.start, plan.cores])
    if rows.size and data.draw(st.booleans()):
        place = data.draw(st.integers(0, 2)), data.draw(st.integers(0, rows.shape[1] - 1))
        rows[place] = data.draw(st.integers(-2, 9) | st.sampled_from([2**62, -(2**62), 10**12]))
    damaged = Plan(*rows)
    assert problem.passes_quick_check(damaged) == (not problem.violations(damaged))
    if problem.passes_quick_check(damaged):
        assert problem.load_times(damaged).tolist() == _load_times(problem, damaged).tolist()


def test_the_quick_check_passes_no_other_objects():
    problem = DataPlacement([[0]], [1], [9], [-1], [0])
    sound = Plan([0], [0], [1])
    assert problem.passes_quick_check(sound)
    parts = (sound.node, sound.start, sound.cores)
    others = (Plan([0, 0], [0, 9], [1, 1]), Plan(0, 0, 1), Plan([[0]], [[0]], [[1]]))
    for damaged in (None, parts, *others):
        assert not problem.passes_quick_check(damaged)


def test_a_plan_is_described_job_by_job():
    assert EXAMPLE.horizon == 50 + 100
    assert EXAMPLE.describe(Plan([0, 0, -1], [0, 100, 0], [0b11, 0b10, 0]))[1:] == [
        ("job A (2)", "at 0 s on node 0, cores 0-1, loads file 1, 30 s"),
        ("job B (1)", "at 100 s on node 0, cores 1, finds file 1"),
        ("left out", "C"),
        ("waiting", "100 s in all"),
        ("loading", "30 s in all"),
    ]
    assert "waits for file 1, 10 s" in dict(EXAMPLE.describe(GOOD))["job B (1)"]


@pytest.mark.parametrize(
    ("node", "start", "cores", "expected"),
    [
        ([0, 1], [0, 0], [0b11, 0b10], ["once"]),
        ([0, 2, 1], [0, 0, 0], [0b11, 0b10, 0b01], ["node"]),
        ([0, 1, 1], [0, 2**62, 0], [0b11, 0b10, 0b01], ["start"]),
        ([0, 1, 1], [0, 0, 0], [-1, 0b10, 0b01], ["cores"]),
        ([0, 1, 1], [0, 0, 1], [0b11, 0b10, 0b01], ["free"]),
        ([0, 1, 1], [0, 0, 20], [0b11, 0b10, 0b10], ["overlap"]),
        ([0, 0, 0], [0, 20, 119], [0b11, 0b10, 0b10], ["overlap", "overlap"]),
    ],
)
def test_violations_are_named(node, start, cores, expected):
    found = EXAMPLE.violations(Plan(node, start, cores))
    assert [violation.constraint for violation in found] == expected


def test_plans_are_compared_by_content():
    assert Plan([0], [1], [1]) == Plan(np.array([0]), [1], [1]) != Plan([0], [2], [1])
    assert len({Plan([0], [1], [1]), Plan([0], [1], [1])}) == 1
    assert repr(GOOD) == "<Plan 3 of 3 jobs>"
