from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.models import DataPlacement
from optsched.models.data_placement_plan import Plan
from optsched.models.data_placement_program import latest_start
from optsched.testing import check_problem, data_placements


def plans(problem: DataPlacement, latest: int) -> Iterator[Plan]:
    """Yield every plan in which jobs start by `latest`."""
    nodes, cores = problem.available.shape
    of_job = []
    for size in problem.processors.tolist():
        masks = [sum(1 << c for c in some) for some in combinations(range(cores), size)]
        places = list(product(range(nodes), range(latest + 1), masks))
        of_job.append([*places, (-1, 0, 0)] if problem.partial else places)
    for choice in product(*of_job):
        yield Plan(*np.array(choice, dtype=np.int64).reshape(-1, 3).T)


def loads_second_by_second(problem: DataPlacement, plan: Plan) -> list[int]:
    """Return the load times as a node would meet them: (loaded, until) of each file it has."""
    times = problem.loads.tolist()
    memory = {(node, file): (loaded, until) for node, file, _, loaded, until in problem.resident}
    for job in sorted(range(len(times)), key=lambda job: (plan.start[job], job)):
        node, file, start = plan.node[job], problem.files[job], plan.start[job]
        if node == -1 or file == -1:
            continue
        loaded, until = memory.get((node, file), (0, -1))
        if start > until:
            loaded, until = start + times[job], -1
        times[job] = max(0, loaded - start)
        memory[node, file] = loaded, max(until, start + problem.walltimes[job])
    return times


def is_feasible(problem: DataPlacement, plan: Plan) -> bool:
    """Return whether a plan keeps the maths, core by core and second by second."""
    busy = set()
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
            for second in range(start, end):
                if (node, core, second) in busy:
                    return False
                busy.add((node, core, second))
    return True


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


def some_plans(problem: DataPlacement, count: int, seed: int) -> list[Plan]:
    """Return random plans of the right sizes, most of them crowded."""
    rng = np.random.default_rng(seed)
    nodes, cores = problem.available.shape
    latest = min(latest_start(problem), 8)
    found = []
    for _ in range(count):
        rows = []
        for size in problem.processors.tolist():
            mask = sum(1 << int(core) for core in rng.permutation(cores)[:size])
            row = (rng.integers(nodes), rng.integers(latest, endpoint=True), mask)
            rows.append((-1, 0, 0) if problem.partial and rng.random() < 0.2 else row)
        found.append(Plan(*np.array(rows, dtype=np.int64).reshape(-1, 3).T))
    return found


@settings(max_examples=25, deadline=None)
@given(data_placements(max_jobs=3, max_nodes=2, max_cores=2, longest=3), st.integers(0, 99))
def test_it_keeps_the_contract_of_a_problem(problem, seed):
    drawn = some_plans(problem, 150, seed)
    feasible = [plan for plan in drawn if is_feasible(problem, plan)]
    check_problem(problem, solutions=[*feasible[:25], *drawn[:3]])
