"""The solvers of any program: what they must get right at the edges, and against brute force."""

import math
import shutil
import signal
import threading
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from optsched import Budget, solve
from optsched.errors import InputError
from optsched.models import Hold, WindowMKP
from optsched.models.problem import Problem, Violation
from optsched.models.program import UNBOUNDED, Formulation, Program, formulations
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.generic import Outcome, Search
from optsched.solvers.highs import Highs
from optsched.solvers.result import Limit, Status


@dataclass(frozen=True, eq=False)
class Stated(Problem):
    """A problem that is no more than its program; a solution is the vector as a tuple."""

    program: Program
    name, size = "stated", "any"
    sense = property(lambda self: self.program.sense)

    def objective(self, solution):
        return self.program.value(np.array(solution, dtype=np.int64))

    def violations(self, solution):
        good = self.program.admits(np.array(solution, dtype=np.int64))
        return [] if good else [Violation("program", "not within bounds")]

    # never written, and so never read
    to_json = from_json = solution_to_json = solution_from_json = describe = None


@formulations.register("stated")
class AsStated(Formulation):
    """The program of a problem that is no more than that."""

    program = property(lambda self: self.problem.program)

    def decode(self, x):
        return tuple(x.tolist())

    def encode(self, solution):
        return np.array(solution, dtype=np.int64)


def program(sense, objective, bounds, rows=(), offset=0):
    """State a program row by row: (lower, {variable: coefficient}, upper)."""

    def array(values):
        return np.array(values, dtype=np.int64)

    lower, upper = array(bounds).reshape(-1, 2).T
    return Stated(
        Program(
            sense=sense,
            objective=array(objective),
            lower=lower.copy(),
            upper=upper.copy(),
            row_start=np.cumsum([0, *(len(row) for _, row, _ in rows)]),
            columns=array([v for _, row, _ in rows for v in row]),
            values=array([a for _, row, _ in rows for a in row.values()]),
            row_lower=array([row[0] for row in rows]),
            row_upper=array([row[2] for row in rows]),
            offset=offset,
        )
    )


NO_SUM = [(29, {0: 6, 1: 10, 2: 15}, 29), (5, {0: 2, 1: 4, 2: 6}, 5)]


@pytest.mark.parametrize(
    ("objective", "bounds", "rows", "best"),
    [
        pytest.param([1], [(0, 1)], [(2, {0: 1}, 9)], None, id="rows"),
        pytest.param([1, 1], [(0, 1)] * 2, [(1, {0: 2, 1: 2}, 1)], None, id="parity"),
        pytest.param([1] * 3, [(0, 9)] * 3, NO_SUM, None, id="gcd"),
        pytest.param([1], [(2, 1)], [], None, id="crossed bounds"),
        pytest.param([1], [(0, 1)], [(1, {}, 2)], None, id="row of nothing"),
        pytest.param([1], [(0, 1)], [(1, {0: 1}, 0)], None, id="crossed row"),
        pytest.param([], [], [(1, {}, 2)], None, id="no variables"),
        pytest.param([], [], [], 7, id="nothing"),
        pytest.param([], [], [(-1, {}, 0)], 7, id="empty row"),
        pytest.param([2, -1], [(0, 3), (-2, 5)], [], 15, id="no rows"),
        pytest.param([0, 0], [(0, 1)] * 2, [(1, {0: 1, 1: 1}, 1)], 7, id="no objective"),
        pytest.param([2, 1], [(1, 1), (0, 0)], [(0, {0: 1, 1: 1}, 3)], 9, id="all fixed"),
        pytest.param([2, 1], [(0, 1)] * 2, [(0, {0: 0, 1: 1}, 0)], 9, id="zero coefficient"),
    ],
)
def test_optima_and_infeasibility_of_odd_programs_are_proven(
    generic, objective, bounds, rows, best
):
    result = solve(program("max", objective, bounds, rows, offset=7), generic)
    status = Status.INFEASIBLE if best is None else Status.OPTIMAL
    assert (result.status, result.objective, result.bound) == (status, best, best)
    assert (result.limit, result.solution is None) == (None, best is None)


@pytest.mark.parametrize(("sense", "sign"), [("max", 1), ("min", -1)])
def test_an_unbounded_program_is_an_error_that_says_so(generic, sense, sign):
    rows = [(-1, {0: 1, 1: -1}, UNBOUNDED)]
    result = solve(program(sense, [sign, sign], [(0, UNBOUNDED), (0, 1)], rows), generic)
    assert (result.status, result.verified) == (Status.ERROR, False)
    assert "unbounded" in result.message or "domain" in result.message


def test_a_variable_without_bounds_is_no_obstacle_in_floating_point(generic):
    if not generic.floating_point:
        pytest.skip("needs bounds")
    rows = [(-UNBOUNDED, {0: 1, 1: 1}, 9)]
    result = solve(program("max", [1, 2], [(0, UNBOUNDED), (-UNBOUNDED, 5)], rows), generic)
    assert (result.status, result.objective) == (Status.OPTIMAL, 14)


def test_numbers_that_floating_point_cannot_hold_are_refused(generic):
    # x1 <= 1 and 7 x1 <= 14, and the numbers of the row have no common divisor
    size = 10 * generic.largest_number
    rows = [(0, {0: size, 1: 7}, size + 14)]
    result = solve(program("max", [100, 3], [(0, 1), (0, 10)], rows), generic)
    bounds = [(10**12, 10**12 + 2), (10**12 - 1, 10**12)]
    other = solve(program("max", [1, -1], bounds, [(0, {0: 1, 1: -1}, 1)]), generic)
    if generic.floating_point:
        assert (result.status, result.verified) == (Status.NO_SOLUTION, True)
        assert "use cp-sat" in result.message
        assert other.status is Status.NO_SOLUTION
    else:
        assert (result.status, result.objective) == (Status.OPTIMAL, 106)
        assert (other.status, other.objective) == (Status.OPTIMAL, 1)


def test_rows_and_objectives_are_divided_by_what_they_have_in_common(generic):
    giga, found = 10**9, []
    rows = [(0, {0: 6 * giga, 1: 4 * giga, 2: 3 * giga}, 10 * giga - 1)]
    objective = [3 * giga, 2 * giga, 2 * giga]
    problem = program("max", objective, [(0, 1)] * 3, rows, offset=-(10**12))
    result = solve(problem, generic, on_incumbent=found.append)
    assert (result.status, result.objective) == (Status.OPTIMAL, 5 * giga - 10**12)
    assert {one.objective for one in result.incumbents} <= {one.objective for one in found}


def test_a_proof_beyond_the_largest_objective_does_not_count(generic):
    size, row = generic.largest_objective - 1, dict.fromkeys(range(4), 1)
    values = [size, size - 1, size - 2, 1]
    result = solve(program("max", values, [(0, 1)] * 4, [(0, row, 2)]), generic)
    assert result.objective == 2 * size - 1
    if generic.floating_point:
        assert (result.status, result.bound, result.limit) == (Status.FEASIBLE, None, None)
        assert "use cp-sat" in result.message
    else:
        assert result.status is Status.OPTIMAL
    few = solve(program("min", values, [(0, 1)] * 4, [(1, row, 4)]), generic)
    assert (few.status, few.objective) == (Status.OPTIMAL, 1)


def test_a_relative_gap_stops_early_and_is_not_called_optimal(generic, hard):
    result = solve(hard, type(generic)(relative_gap=0.2), budget=Budget(seconds=60))
    assert (result.status, result.limit) == (Status.FEASIBLE, None)
    assert 0 < result.gap <= 0.21


@pytest.mark.parametrize("gap", [-0.1, 1, math.nan])
def test_a_gap_is_a_share(generic, gap):
    with pytest.raises(InputError, match="relative_gap"):
        type(generic)(relative_gap=gap)


def test_the_first_solution_is_enough(hard):
    result = solve(hard, CpSat(first_solution=True), budget=Budget(work=20))
    assert (result.status, result.limit) == (Status.FEASIBLE, None)
    with pytest.raises(InputError, match="workers"):
        CpSat(workers=0)


def test_the_limit_that_stopped_it_is_named(generic, hard):
    for limit, budget in (
        (Limit.TIME, Budget(seconds=0.2, work=1e12)),
        (Limit.WORK, Budget(seconds=60, work=0.04 * generic.default_work)),
    ):
        result = solve(hard, generic, budget=budget)
        assert result.status in (Status.FEASIBLE, Status.NO_SOLUTION)
        assert result.limit is limit
    assert result.work > 0


def test_an_answer_is_never_worse_than_the_hint(generic, hard):
    start = solve(hard, "greedy")
    result = solve(hard, generic, hint=start.solution, budget=Budget(seconds=1e-3))
    assert result.objective >= start.objective == result.incumbents[0].objective


def test_an_infeasibility_claim_against_the_hint_is_an_error(generic):
    problem = program("max", [1], [(0, 1)], [(2, {0: 1}, 9)])
    result = generic.solve(problem, budget=Budget(), hint=(1,))
    assert result.status is Status.ERROR
    assert "was given one" in result.message


def test_a_solver_that_fails_is_an_error_and_no_exception(generic, monkeypatch):
    def fail(*_):
        raise RuntimeError("licence expired")

    monkeypatch.setattr(type(generic), "run", fail)
    result = solve(program("max", [1], [(0, 1)]), generic)
    told = f"{generic.name}: RuntimeError: licence expired"
    assert (result.status, result.message) == (Status.ERROR, told)


def test_what_a_callback_raises_gets_through_in_the_callers_thread(generic, hard):
    threads = set()

    def stop(_incumbent):
        threads.add(threading.get_ident())
        raise LookupError

    with pytest.raises(LookupError):
        solve(hard, generic, budget=Budget(seconds=10), on_incumbent=stop)
    assert threads == {threading.get_ident()}
    assert solve(WindowMKP([3, 2], [4]), generic).objective == 3


@pytest.mark.parametrize(
    ("sense", "raw", "rounded"),
    [
        ("max", 15.999, 15),
        ("max", 15.9999999, 16),
        ("max", 15.0000001, 15),
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
def test_bounds_are_rounded_to_the_side_that_is_valid(sense, raw, rounded):
    search = Search(Budget(), 0, None)
    search.begin(program(sense, [1], [(0, 1)]), None)
    assert search.valid_bound(raw) == rounded


def test_incumbents_are_monotone_whatever_the_solver_says():
    search = Search(Budget(), 0, None)
    search.begin(program("max", [1], [(0, 100)]), None)
    for told in ((3, 90.5), (2, 50), (5, 95), (5, 80), (7, math.inf), (8, 7.2)):
        search.found(*told)
    found = [(i.objective, i.bound) for i in search.incumbents]
    assert found == [(3, 90), (5, 90), (7, 90), (8, 8)]


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
    before = signal.getsignal(signal.SIGINT)
    solve(WindowMKP([3, 2], [4]), "cp-sat")
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


class Rounding(Highs):
    """A solver that finds one point, which its tolerance admits, and another that is feasible."""

    def run(self, search):
        search.found(search.value_near([1.0, 1e-7]), 3)
        assert search.value_near([1.0, 0.9999999]) is None
        return Outcome(Status.OPTIMAL, np.array([1, 1]), 3.0)


def test_an_answer_that_breaks_a_row_is_refused_and_a_feasible_one_kept():
    problem = program("max", [2, 1], [(0, 1)] * 2, [(0, {0: 1, 1: 1}, 1)])
    result = solve(problem, Rounding())
    assert (result.status, result.verified) == (Status.FEASIBLE, True)
    assert (result.objective, result.bound, result.solution) == (2, None, (1, 0))
    assert "use cp-sat" in result.message


def test_the_bound_is_loosened_by_the_largest_objective_of_floating_point():
    search = Search(Budget(), 0, None)
    search.begin(program("min", [10**10, -(10**10) + 1], [(0, 1)] * 2), None, Highs())
    assert search.valid_bound(-33.0) == -52  # less 1e-9 of 2 * 10^10 - 1, rounded up


@pytest.mark.parametrize(
    ("megabytes", "cost"), [(4_000_001, 3), (4_000_001, 10**11), (101, 10**11)]
)
def test_cp_sat_goes_on_where_the_default_solver_refuses(megabytes, cost):
    # any two claims hold enough
    held = [[[0, megabytes // 2 + 1]], [[0, megabytes // 2 + 3]], [[0, megabytes - 7]]]
    costs = [cost, cost + 1, cost - 1]
    problem = Hold(["memory"], [[0]], 1, [megabytes], costs, held)
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
def test_cbc_says_that_the_disk_of_its_files_is_full(free, told, hard, monkeypatch):
    pulp = pytest.importorskip("pulp")
    monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", shutil.which("true"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=free))
    result = solve(hard, "cbc")
    assert result.status is Status.ERROR
    assert told in result.message
