from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.models import JointAllocation, JointPlacement
from optsched.models.joint_allocation.fields import Fields
from optsched.testing import check_problem, joint_allocations


def lost_second_by_second(problem, rows, node, seconds):
    """Return what is lost on a node from now on, in seconds, with these (count, end, demand)."""
    lost = Fraction(0)
    for second in range(seconds):
        active = [(h[1], h[4:]) for h in problem.held if h[0] == node and h[2] <= second < h[3]]
        active += [(count, demand) for count, end, demand in rows if second < end]
        for resource, capacity in enumerate(problem.capacity.tolist()):
            level = sum(int(count) * int(demand[resource]) for count, demand in active)
            lost += Fraction(max(0, level - capacity), capacity)
    return lost


def jobs_on(problem, placement, node):
    return [
        (count, walltime, demand)
        for count, walltime, demand in zip(
            placement.processes[:, node].tolist(), problem.walltimes.tolist(), problem.demands
        )
        if count
    ]


def factor_of(problem, placement, job):
    walltime = int(problem.walltimes[job])
    nodes = np.flatnonzero(placement.processes[job])
    lost = [
        lost_second_by_second(problem, jobs_on(problem, placement, node), node, walltime)
        for node in nodes
    ]
    return 1 + max(lost, default=Fraction(0)) / walltime


def is_feasible(problem, placement):
    for job, row in enumerate(placement.processes):
        if row.sum() != problem.asked[job] and (row.any() or problem.goal == "penalty"):
            return False
        limit = problem.threshold
        if limit is not None and factor_of(problem, placement, job) > Fraction(limit, 1000):
            return False
    for node, second in product(range(problem.nodes), range(6)):
        active = sum(h[1] for h in problem.held if h[0] == node and h[2] <= second < h[3])
        jobs = jobs_on(problem, placement, node)
        active += sum(count for count, end, _ in jobs if second < end)
        # when no job of the set is there, what is held is no matter of theirs
        if active > problem.processors:
            return False
    return True


def added_second_by_second(problem, placement):
    """Return the processor-time that everybody loses more, in seconds."""
    added = Fraction(0)
    for node in range(problem.nodes):
        jobs = jobs_on(problem, placement, node)
        for second in range(max((end for _, end, _ in jobs), default=0)):
            running = sum(h[1] for h in problem.held if h[0] == node and h[2] <= second < h[3])
            own = sum(count for count, end, _ in jobs if second < end)

            def lost(rows, node=node, second=second):
                until = lost_second_by_second(problem, rows, node, second + 1)
                return until - lost_second_by_second(problem, rows, node, second)

            added += int(running + own) * lost(jobs) - int(running) * lost([])
    return added


@st.composite
def placed(draw):
    """Return a problem and any placement of its jobs, most of them whole."""
    problem = draw(joint_allocations())
    processes = np.zeros((len(problem.asked), problem.nodes), dtype=np.int64)
    for job, asked in enumerate(problem.asked.tolist()):
        count = draw(st.sampled_from([0, asked, asked, asked, asked + 1]))
        for node in draw(
            st.lists(st.integers(0, problem.nodes - 1), min_size=count, max_size=count)
        ):
            processes[job, node] += 1
    return problem, JointPlacement(processes)


@settings(max_examples=300, deadline=None)
@given(placed())
def test_verification_follows_the_maths(drawn):
    problem, placement = drawn
    assert (problem.violations(placement) == []) == is_feasible(problem, placement)
    factors = [float(factor_of(problem, placement, job)) for job in range(len(problem.asked))]
    assert problem.factors(placement).tolist() == pytest.approx(factors)
    if problem.goal == "penalty":
        added = added_second_by_second(problem, placement)
        assert problem.objective(placement) == added * problem.unit
    else:
        started = placement.processes.any(axis=1)
        assert problem.objective(placement) == problem.asked[~started].sum()


@settings(max_examples=40, deadline=None)
@given(joint_allocations(max_jobs=2, max_nodes=2, max_processors=2))
def test_it_keeps_the_contract_of_a_problem(problem):
    check_problem(problem)


EXAMPLE = JointAllocation(
    2,
    4,
    capacity=[6000],
    held=[[0, 2, 0, 100, 2000], [1, 2, 300, 400, 500]],
    asked=[2, 3],
    walltimes=[200, 100],
    demands=[[2000], [1000]],
    threshold=1150,
    jobs=["A", "B"],
)
GOOD = JointPlacement(np.array([[0, 2], [1, 2]]))


def changed(**fields):
    """Return the example with other fields, as on file."""
    return EXAMPLE.to_json() | fields


def test_an_example_by_hand():
    assert EXAMPLE.violations(GOOD) == []
    assert EXAMPLE.objective(GOOD) == 0
    # on node 1: 2 x 2000 + 2 x 1000 are just its 6000 MB/s; on node 0 they are 5000
    assert EXAMPLE.penalised_times(GOOD).tolist() == [0, 0]
    both = JointPlacement(np.array([[1, 1], [1, 2]]))
    # node 0 has 7000 for 100 s: 100/6 s, in units of 1/6000 s, for four processes
    assert EXAMPLE.penalised_times(both).tolist() == [100_000, 100_000]
    everybody = JointAllocation.from_json(changed(goal="penalty"))
    assert everybody.objective(both) == 4 * 100_000
    assert EXAMPLE.describe(both) == [
        ("cluster", "2 nodes of 4 processors, 6 of 8 free now"),
        ("job A (2)", "1 on node 0, 1 on node 1; factor 1.0833"),
        ("job B (3)", "1 on node 0, 2 on node 1; factor 1.1667"),
        ("left out", "-"),
        ("penalty factor", "at most 1.150"),
    ]
    nobody = JointPlacement(np.zeros((2, 2), dtype=np.int64))
    assert EXAMPLE.objective(nobody) == 5
    assert dict(EXAMPLE.describe(nobody))["left out"] == "A (2) B (3)"
    assert dict(EXAMPLE.describe())["goal"] == "processors"


def test_what_was_held_already_loses_too():
    """Two holdings exceed a node by themselves: only what the job adds to their loss counts."""
    machine = {"nodes": 1, "processors": 4, "capacity": [6000]}
    held = [[0, 2, 0, 30, 4000], [0, 1, 10, 60, 3000]]
    problem = JointAllocation(
        **machine, held=held, asked=[1], walltimes=[40], demands=[[1000]], goal="penalty"
    )
    placement = JointPlacement(np.array([[1]]))
    # demand and processes without the job: 8000 of two, 11000 of three, 3000 of one
    lost = 10 * (3 * 3000 - 2 * 2000) + 20 * (4 * 6000 - 3 * 5000) + 10 * 0
    assert problem.objective(placement) == lost
    assert problem.penalised_times(placement).tolist() == [10 * 3000 + 20 * 6000]


def test_windows_behind_a_job_do_not_count_for_it():
    machine = {"nodes": 1, "processors": 2, "capacity": [10]}
    jobs = {"asked": [1, 1], "walltimes": [50, 80], "demands": [[6], [6]]}
    problem = JointAllocation(**machine, **jobs, held=[[0, 1, 50, 90, 9]])
    assert problem.penalised_times(JointPlacement(np.array([[1], [0]]))).tolist() == [0, 0]
    alone = JointPlacement(np.array([[0], [1]]))
    assert problem.penalised_times(alone).tolist() == [0, 30 * 5]
    both = JointPlacement(np.array([[1], [1]]))
    assert problem.penalised_times(both).tolist() == [50 * 2, 50 * 2 + 30 * 5]
    assert problem.violations(both) == []


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ([[0, 2]], ["processes"]),
        ([[0, 2], [4, -1]], ["processes"]),
        ([[0, 1], [1, 2]], ["asked"]),
        ([[0, 2], [2, 2]], ["asked"]),
        ([[0, 0], [3, 0]], ["free"]),
        ([[0, 10**12], [0, 3]], ["asked", "free"]),
        ([[2, 0], [0, 3]], ["threshold"]),
        ([[1, 1], [1, 2]], ["threshold"]),
    ],
)
def test_violations_are_named(processes, expected):
    found = EXAMPLE.violations(JointPlacement(np.array(processes)))
    assert [violation.constraint for violation in found] == expected


def test_all_have_to_start_where_the_penalty_is_the_goal():
    problem = JointAllocation.from_json(changed(goal="penalty", threshold=None))
    found = problem.violations(JointPlacement(np.array([[0, 0], [1, 2]])))
    assert [str(violation) for violation in found] == ["all: job 1 does not start"]


def test_the_program_is_the_page_of_the_model_in_numbers():
    # node 0 is half full for longer than the job runs, nodes 1 and 2 are alike
    machine = {"nodes": 3, "processors": 2, "capacity": [10], "held": [[0, 1, 0, 90, 5]]}
    jobs = {"asked": [3, 1], "walltimes": [40, 60], "demands": [[6], [1]]}
    program = JointAllocation(**machine, **jobs, threshold=1150).formulate()
    names = [program.variable_name(v) for v in range(program.num_variables)]
    rows = {
        program.row_name(r): {
            names[program.columns[k]]: int(program.values[k])
            for k in range(program.row_start[r], program.row_start[r + 1])
        }
        for r in range(program.num_rows)
    }
    # 11 of 10 are demanded beside what node 0 holds: a factor of 1.1; 12 of 10 by two: 1.2
    one, two = ["class1_1_0", "class1_0_1"], ["class2_1_1", "class2_1_0", "class2_0_1"]
    assert names == ["start_job1", "start_job2", *one, *two]
    assert program.objective.tolist() == [-3, -1, 0, 0, 0, 0, 0]
    assert program.offset == 4
    assert program.upper.tolist() == [1, 1, 1, 1, 2, 2, 2]
    assert rows == {
        "nodes_class1": dict.fromkeys(one, 1),
        "nodes_class2": dict.fromkeys(two, 1),
        "asked_job1": {"start_job1": -3, one[0]: 1, two[0]: 1, two[1]: 1},
        "asked_job2": {"start_job2": -1, one[1]: 1, two[0]: 1, two[2]: 1},
    }


def test_nodes_are_alike_by_what_they_admit():
    """What ends at other times, but bothers nobody of the set, makes no class of its own."""
    held = [[0, 1, 0, 900, 5], [1, 1, 0, 800, 4], [2, 1, 0, 30, 1], [2, 1, 30, 99, 2]]
    jobs = {"asked": [2], "walltimes": [600], "demands": [[5]]}
    problem = JointAllocation(4, 2, [10], held, **jobs, threshold=1000)
    program = problem.formulate()
    names = [program.variable_name(v) for v in range(program.num_variables)]
    assert names == ["start_job1", "class1_1", "class2_2", "class2_1"]
    assert program.upper.tolist() == [1, 3, 1, 1]
    assert problem.decode(np.array([1, 2, 0, 0])).processes.tolist() == [[1, 1, 0, 0]]


def test_a_program_too_large_for_any_solver_is_refused():
    jobs = {"asked": [16] * 12, "walltimes": [60] * 12, "demands": [[1]] * 12}
    problem = JointAllocation(40, 16, [6000], [], **jobs)
    with pytest.raises(InputError, match="one-by-one needs none"):
        problem.formulate()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"nodes": 0}, "nodes: 0; expected an integer from 1"),
        ({"processors": 65}, "processors: 65; expected an integer from 1 to 64"),
        ({"capacity": [0]}, r"capacity\[0\]: 0; expected an integer of at least 1"),
        ({"capacity": [6000, 100]}, r"demands\[0\]: 1 values; expected 2"),
        ({"asked": [9, 3]}, r"asked\[0\]: 9; expected at most the 8 processors"),
        ({"asked": [0, 3]}, r"asked\[0\]: 0; expected an integer of at least 1"),
        ({"walltimes": [1]}, "walltimes: 1 values; expected 2, one for each of asked"),
        ({"demands": [[1]]}, "demands: 1 values; expected 2, one for each of asked"),
        ({"demands": [[1], [-1]]}, r"demands\[1\]\[0\]: -1; expected an integer from 0"),
        ({"demands": [1, 2]}, r"demands\[0\]: 1; expected a list of integers"),
        ({"demands": 3}, "demands: expected a list with a list"),
        ({"threshold": 999}, "threshold: 999; expected an integer from 1000"),
        ({"threshold": 10**13}, "threshold: 10000000000000; expected .* to 1000000000000"),
        ({"goal": "start"}, "goal: 'start'; expected processors or penalty"),
        ({"resources": ["a", "b"]}, "resources: 2 values; expected 1"),
        ({"jobs": ["A"]}, "jobs: 1 values; expected 2"),
        ({"held": [[2, 1, 0, 9, 1]]}, r"held\[0\].node: 2; expected a node from 0 to 1"),
        ({"held": [[0, 0, 0, 9, 1]]}, r"held\[0\].processes: 0; expected an integer from 1"),
        ({"held": [[0, 1, 9, 9, 1]]}, r"held\[0\].end: 9; expected more than its start, 9"),
        ({"held": [[0, 1, 0, 9]]}, r"held\[0\].demand: 0 values; expected 1"),
        ({"held": [{"node": 0}]}, r"held\[0\]: expected an object with node, processes"),
        ({"held": [[0, 3, 0, 9, 1], [0, 2, 8, 9, 1]]}, r"held\[1\]: more than 4 processes"),
        ({"demands": [[10**12], [1]], "walltimes": [10**12, 1]}, "too large together"),
    ],
)
def test_wrong_input_is_refused_by_name(changes, expected):
    with pytest.raises(InputError, match=expected) as caught:
        JointAllocation.from_json(changed(**changes))
    named = next(iter(changes))
    assert all(named in mistake or "demands" in mistake for mistake in caught.value.mistakes[:1])


@pytest.mark.parametrize(
    "held",
    [
        [[2, 1, 0, 9, 1]],
        [[0, 0, 0, 9, 1]],
        [[0, 1, 9, 9, 1]],
        [[0, 1, 0, 9]],
        [[0, 1, 0, 9, -1]],
        [[0, 3, 0, 9, 1], [0, 2, 8, 9, 1]],
    ],
)
def test_wrong_arrays_of_holdings_are_refused_too(held):
    given = {name: getattr(EXAMPLE, name) for name in Fields._fields}
    with pytest.raises(InputError, match=r"held\[\d\]"):
        JointAllocation(**(given | {"held": np.array(held)}))


@given(joint_allocations())
def test_a_problem_of_arrays_is_the_same(problem):
    again = JointAllocation(**{name: getattr(problem, name) for name in Fields._fields})
    assert again.to_json() == problem.to_json()


def test_all_mistakes_are_reported_at_once():
    wrong = {"asked": [9, 3], "goal": 1, "threshold": "low", "colour": 1}
    with pytest.raises(InputError) as caught:
        JointAllocation.from_json(changed(**wrong))
    named = [mistake.split(":")[0] for mistake in caught.value.mistakes]
    assert named == ["colour", "asked[0]", "threshold", "goal"]


@pytest.mark.parametrize(
    "places",
    [None, [None], [[{"node": 2, "processes": 1}], None], [[{"node": 0}], None], [3, None]],
)
def test_a_solution_of_another_form_is_refused(places):
    with pytest.raises(InputError, match="places_of_job"):
        EXAMPLE.solution_from_json({"places_of_job": places})
