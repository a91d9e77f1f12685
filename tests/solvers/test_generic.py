"""The solvers of any program: what they must get right at the edges, and against brute force."""

from __future__ import annotations

import math
import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optsched import Budget, registry, solve
from optsched.errors import InputError
from optsched.models import Hold, WindowMKP
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.generic import Outcome, Search
from optsched.solvers.highs import Highs
from optsched.solvers.result import Limit, Status
from optsched.testing import brute_force

HARD = WindowMKP(
    weights=[60, 99, 87, 73, 52, 91, 66, 78, 95, 57, 83, 70, 62, 88, 97, 54, 76, 81, 69, 93] * 3,
    capacities=[301, 317, 329, 331, 337, 347, 349, 353],
)
"""Open after minutes for every generic solver."""


def test_optimal_in_both_senses_with_an_offset(generic, program):
    rows = [(-3, {0: 1, 1: 2}, 4)]
    for sense, best, at in (("max", 111, (4, 0)), ("min", 95, (-3, 0))):
        problem = program(sense, [3, 1], [(-3, 5), (0, 9)], rows, offset=99 if at[0] > 0 else 104)
        result = solve(problem, generic)
        assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, best, best)
        assert result.solution == at


@pytest.mark.parametrize(
    ("objective", "bounds", "rows"),
    [
        ([1], [(0, 1)], [(2, {0: 1}, 9)]),
        ([1, 1], [(0, 1)] * 2, [(1, {0: 2, 1: 2}, 1)]),
        ([1, 1, 1], [(0, 9)] * 3, [(29, {0: 6, 1: 10, 2: 15}, 29), (5, {0: 2, 1: 4, 2: 6}, 5)]),
        ([1], [(2, 1)], []),
        ([1], [(0, 1)], [(1, {}, 2)]),
        ([1], [(0, 1)], [(1, {0: 1}, 0)]),
        ([], [], [(1, {}, 2)]),
    ],
    ids=["rows", "parity", "gcd", "crossed bounds", "empty row", "crossed row", "no variables"],
)
def test_infeasible_is_proven(generic, program, objective, bounds, rows):
    result = solve(program("max", objective, bounds, rows), generic)
    assert (result.status, result.limit, result.bound) == (Status.INFEASIBLE, None, None)
    assert result.solution is None


@pytest.mark.parametrize(
    ("objective", "bounds", "rows", "best"),
    [
        ([], [], [], 7),
        ([], [], [(-1, {}, 0)], 7),
        ([2, -1], [(0, 3), (-2, 5)], [], 15),
        ([0, 0], [(0, 1)] * 2, [(1, {0: 1, 1: 1}, 1)], 7),
        ([2, 1], [(1, 1), (0, 0)], [(0, {0: 1, 1: 1}, 3)], 9),
        ([2, 1], [(0, 1), (0, 1)], [(0, {0: 0, 1: 1}, 0)], 9),
    ],
    ids=["nothing", "empty row", "no rows", "no objective", "all fixed", "zero coefficient"],
)
def test_programs_with_next_to_nothing_in_them(generic, program, objective, bounds, rows, best):
    result = solve(program("max", objective, bounds, rows, offset=7), generic)
    assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, best, best)


@pytest.mark.parametrize("sense", ["max", "min"])
def test_an_unbounded_program_is_an_error_that_says_so(generic, program, unbounded, sense):
    sign = 1 if sense == "max" else -1
    bounds = [(0, unbounded), (0, 1)]
    problem = program(sense, [sign, sign], bounds, [(-1, {0: 1, 1: -1}, unbounded)])
    result = solve(problem, generic)
    assert result.status is Status.ERROR
    assert not result.verified
    assert "unbounded" in result.message or "domain" in result.message


def test_a_variable_without_bounds_is_no_obstacle_in_floating_point(generic, program, unbounded):
    if not generic.floating_point:
        pytest.skip("needs bounds")
    rows = [(-unbounded, {0: 1, 1: 1}, 9)]
    result = solve(program("max", [1, 2], [(0, unbounded), (-unbounded, 5)], rows), generic)
    assert (result.status, result.objective) == (Status.OPTIMAL, 14)


def test_numbers_that_floating_point_cannot_hold_are_refused(generic, program):
    # x1 <= 1 and 7 x1 <= 14, and the numbers of the row have no common divisor
    size = 10 * generic.largest_number
    rows = [(0, {0: size, 1: 7}, size + 14)]
    result = solve(program("max", [100, 3], [(0, 1), (0, 10)], rows), generic)
    if generic.floating_point:
        assert (result.status, result.verified) == (Status.NO_SOLUTION, True)
        assert "use cp-sat" in result.message
    else:
        assert (result.status, result.objective) == (Status.OPTIMAL, 106)


def test_bounds_of_variables_that_floating_point_cannot_hold_are_refused(generic, program):
    bounds = [(10**12, 10**12 + 2), (10**12 - 1, 10**12)]
    result = solve(program("max", [1, -1], bounds, [(0, {0: 1, 1: -1}, 1)]), generic)
    expected = Status.NO_SOLUTION if generic.floating_point else Status.OPTIMAL
    assert result.status is expected


def test_rows_and_objectives_are_divided_by_what_they_have_in_common(generic, program):
    giga = 10**9
    rows = [(0, {0: 6 * giga, 1: 4 * giga, 2: 3 * giga}, 10 * giga - 1)]
    objective = [3 * giga, 2 * giga, 2 * giga]
    found = []
    result = solve(
        program("max", objective, [(0, 1)] * 3, rows, offset=-(10**12)),
        generic,
        on_incumbent=found.append,
    )
    assert (result.status, result.objective) == (Status.OPTIMAL, 5 * giga - 10**12)
    assert result.bound == result.objective
    assert {one.objective for one in result.incumbents} <= {one.objective for one in found}


def test_large_objectives_are_exact_or_refused(generic, program):
    rows = [(0, {0: 6, 1: 4, 2: 3}, 9)]
    for size in (10**8, 10**10, 10**12):
        values = [size + 1, size, size - 1]
        result = solve(program("max", values, [(0, 1)] * 3, rows), generic)
        if generic.floating_point and size > generic.largest_objective:
            assert result.status is Status.NO_SOLUTION
            assert "use cp-sat" in result.message
        else:
            assert (result.status, result.objective) == (Status.OPTIMAL, values[0] + values[2])


def test_a_proof_beyond_the_largest_objective_does_not_count(generic, program):
    size = generic.largest_objective - 1
    values = [size, size - 1, size - 2, 1]
    result = solve(
        program("max", values, [(0, 1)] * 4, [(0, dict.fromkeys(range(4), 1), 2)]), generic
    )
    assert result.objective == 2 * size - 1
    if generic.floating_point:
        assert (result.status, result.bound, result.limit) == (Status.FEASIBLE, None, None)
        assert "use cp-sat" in result.message
    else:
        assert result.status is Status.OPTIMAL
    few = program("min", values, [(0, 1)] * 4, [(1, dict.fromkeys(range(4), 1), 4)])
    assert (solve(few, generic).status, solve(few, generic).objective) == (Status.OPTIMAL, 1)


@st.composite
def programs(draw):
    """Integer programs of a few variables, some of them infeasible."""
    size = draw(st.integers(1, 4))
    number = st.integers(-9, 9)
    bounds = [
        (low, low + draw(st.integers(0, 3)))
        for low in draw(st.lists(st.integers(-3, 3), min_size=size, max_size=size))
    ]
    rows = []
    for _ in range(draw(st.integers(0, 4))):
        row = draw(st.dictionaries(st.integers(0, size - 1), number, max_size=size))
        low = draw(st.integers(-20, 10))
        rows.append((low, row, low + draw(st.integers(0, 20))))
    objective = draw(st.lists(number, min_size=size, max_size=size))
    sense = draw(st.sampled_from(["max", "min"]))
    return sense, objective, bounds, rows, draw(st.integers(-5, 5))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(stated=programs())
def test_every_generic_solver_agrees_with_brute_force(stated, program):
    problem = program(*stated)
    best = brute_force(problem)
    for name in registry.solvers:
        cls = registry.solvers[name]
        if cls.models is None and cls.installed_version() is not None:
            result = solve(problem, name)
            expected = Status.INFEASIBLE if best is None else Status.OPTIMAL
            assert (result.status, result.objective) == (expected, best), (name, result.message)


def test_a_relative_gap_stops_early_and_is_not_called_optimal():
    for name in ("cp-sat", "highs", "scip", "cbc"):
        cls = registry.solvers[name]
        if cls.installed_version() is None:
            continue
        result = solve(HARD, cls(relative_gap=0.2), budget=Budget(seconds=60))
        assert result.limit is None, name
        assert result.status is Status.FEASIBLE, name
        assert 0 < result.gap <= 0.21, name


@pytest.mark.parametrize("gap", [-0.1, 1, math.nan])
def test_a_gap_is_a_share(generic, gap):
    with pytest.raises(InputError, match="relative_gap"):
        type(generic)(relative_gap=gap)


def test_the_first_solution_is_enough(solver_named):
    result = solve(HARD, solver_named("cp-sat", first_solution=True), budget=Budget(work=20))
    assert (result.status, result.limit) == (Status.FEASIBLE, None)
    with pytest.raises(InputError, match="workers"):
        solver_named("cp-sat", workers=0)


def test_the_limit_that_stopped_it_is_named(generic):
    unfinished = (Status.FEASIBLE, Status.NO_SOLUTION)
    problem = HARD
    if generic.name == "gurobi":  # which solves that one at once
        sizes = range(101, 301, 2)
        profits = [size + size * size % 17 for size in sizes]
        problem = WindowMKP([*sizes], [641] * 9, profits)
    by_time = solve(problem, generic, budget=Budget(seconds=0.2, work=1e12))
    assert by_time.status in unfinished
    assert by_time.limit is Limit.TIME
    by_work = solve(problem, generic, budget=Budget(seconds=60, work=0.04 * generic.default_work))
    assert by_work.status in unfinished
    assert by_work.limit is Limit.WORK
    assert by_work.work > 0


def test_an_answer_is_never_worse_than_the_hint(generic):
    start = solve(HARD, "greedy").solution
    result = solve(HARD, generic, hint=start, budget=Budget(seconds=1e-3))
    assert result.objective >= HARD.objective(start)
    assert result.incumbents[0].objective == HARD.objective(start)


def test_an_infeasibility_claim_against_the_hint_is_an_error(generic, program):
    problem = program("max", [1], [(0, 1)], [(2, {0: 1}, 9)])
    result = generic.solve(problem, budget=Budget(), hint=(1,))
    assert result.status is Status.ERROR
    assert "was given one" in result.message


def test_a_solver_that_fails_is_an_error_and_no_exception(generic, program, monkeypatch):
    def fail(*_):
        raise RuntimeError("licence expired")

    monkeypatch.setattr(type(generic), "run", fail)
    result = solve(program("max", [1], [(0, 1)]), generic)
    told = f"{generic.name}: RuntimeError: licence expired"
    assert (result.status, result.message) == (Status.ERROR, told)


class StopAtOnceError(Exception):
    pass


def test_what_a_callback_raises_gets_through(generic):
    def stop(_incumbent):
        raise StopAtOnceError

    with pytest.raises(StopAtOnceError):
        solve(HARD, generic, budget=Budget(seconds=10), on_incumbent=stop)
    assert solve(WindowMKP([3, 2], [4]), generic).objective == 3


def test_callbacks_come_in_the_callers_thread(generic):
    threads = set()
    solve(
        HARD,
        generic,
        budget=Budget(seconds=0.5),
        on_incumbent=lambda _: threads.add(threading.get_ident()),
    )
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize(
    ("sense", "raw", "rounded"),
    [
        ("max", 15.0, 15),
        ("max", 15.999, 15),
        ("max", 15.9999999, 16),
        ("max", 15.0000001, 15),
        ("min", 15.0, 15),
        ("min", 15.001, 16),
        ("min", 15.0000001, 15),
        ("min", -0.9999999, -1),
        ("max", 5e11 - 100.5, 5 * 10**11 + 399),
        ("max", math.inf, None),
        ("min", -1e20, None),
        ("max", math.nan, None),
        ("max", None, None),
    ],
)
def test_bounds_are_rounded_to_the_side_that_is_valid(program, sense, raw, rounded):
    search = Search(Budget(), 0, None)
    search.begin(program(sense, [1], [(0, 1)]), None)
    assert search.valid_bound(raw) == rounded


def test_incumbents_are_monotone_whatever_the_solver_says(program):
    search = Search(Budget(), 0, None)
    search.begin(program("max", [1], [(0, 100)]), None)
    for told in ((3, 90.5), (2, 50), (5, 95), (5, 80), (7, math.inf), (8, 7.2)):
        search.found(*told)
    assert [(i.objective, i.bound) for i in search.incumbents] == [
        (3, 90),
        (5, 90),
        (7, 90),
        (8, 8),
    ]


def test_highs_is_not_upset_by_another_user_of_its_threads():
    highspy = pytest.importorskip("highspy")
    other = highspy.Highs()
    other.silent()
    other.setOptionValue("threads", 2)
    other.addVar(0, 1)
    other.run()
    assert solve(WindowMKP([3, 2], [4]), "highs").status is Status.OPTIMAL


@pytest.mark.usefixtures("interruptible")
def test_python_hears_ctrl_c_after_cp_sat():
    """CP-SAT's own handler would have replaced Python's."""
    import signal

    before = signal.getsignal(signal.SIGINT)
    solve(WindowMKP([3, 2], [4]), "cp-sat")
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_random_windows_agree_between_solvers(generic):
    rng = np.random.default_rng(2014)
    for _ in range(6):
        weights = rng.integers(1, 60, 8)
        problem = WindowMKP(weights, rng.integers(1, 90, 3), weights * rng.integers(1, 4, 8))
        assert solve(problem, generic).objective == solve(problem, "branch-and-bound").objective


class Rounding(Highs):
    """A solver that finds one point, which its tolerance admits, and another that is feasible."""

    def run(self, search):
        search.found(search.value_near([1.0, 1e-7]), 3)
        assert search.value_near([1.0, 0.9999999]) is None
        return Outcome(Status.OPTIMAL, np.array([1, 1]), 3.0)


def test_an_answer_that_breaks_a_row_is_refused_and_a_feasible_one_kept(program):
    problem = program("max", [2, 1], [(0, 1)] * 2, [(0, {0: 1, 1: 1}, 1)])
    result = solve(problem, Rounding())
    assert (result.status, result.verified) == (Status.FEASIBLE, True)
    assert (result.objective, result.bound, result.solution) == (2, None, (1, 0))
    assert "use cp-sat" in result.message


def test_the_bound_is_loosened_by_the_largest_objective_of_floating_point(program):
    search = Search(Budget(), 0, None)
    search.begin(program("min", [10**10, -(10**10) + 1], [(0, 1)] * 2), None, Highs())
    assert search.valid_bound(-33.0) == -52  # less 1e-9 of 2 * 10^10 - 1, rounded up


@pytest.mark.parametrize(
    ("megabytes", "cost"), [(4_000_001, 3), (4_000_001, 10**11), (101, 10**11)]
)
def test_cp_sat_goes_on_where_the_default_solver_refuses(megabytes, cost):
    problem = Hold(
        resources=["memory"],
        free=[[0]],
        chunks=1,
        demand=[megabytes],
        costs=[cost, cost + 1, cost - 1],  # any two claims hold enough
        held=[[[0, megabytes // 2 + 1]], [[0, megabytes // 2 + 3]], [[0, megabytes - 7]]],
    )
    assert problem.default_solver == "highs"
    for hint in (None, "cheapest-first"):
        result = solve(problem, hint=hint, budget=Budget(seconds=60))
        assert (result.solver, result.objective) == ("cp-sat", 2 * cost - 1)
        assert result.status is Status.OPTIMAL
    assert result.version == CpSat.installed_version()
    refused = solve(problem, "highs")
    assert (refused.status, refused.verified) == (Status.NO_SOLUTION, True)
    assert solve(problem, budget=Budget(work=100)).status is Status.OPTIMAL


@pytest.mark.parametrize(("free", "told"), [(100, "no space left in "), (2**30, "no answer")])
def test_cbc_says_that_the_disk_of_its_files_is_full(free, told, monkeypatch):
    pulp = pytest.importorskip("pulp")
    monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", shutil.which("true"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=free))
    result = solve(HARD, "cbc")
    assert result.status is Status.ERROR
    assert told in result.message
