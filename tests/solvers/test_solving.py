from __future__ import annotations

import sys
import time

import pytest

from optsched import Budget, registry, solve
from optsched.errors import InputError, MissingDependencyError, UnknownNameError
from optsched.models import WindowMKP
from optsched.solvers.finding import find_solver
from optsched.solvers.result import Incumbent, Result, Status
from optsched.solvers.solver import Solver

PROBLEM = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
GOOD = (1, 2, 0, -1, 2)


def test_a_solver_that_is_not_installed_is_named_with_what_it_needs(monkeypatch):
    fields = {"solve": None, "name": "absent", "requires": "no-such-distribution"}
    monkeypatch.setitem(registry.solvers._classes, "absent", type("Fake", (Solver,), fields))
    with pytest.raises(MissingDependencyError, match=r"'absent' needs .*'no-such-distribution'"):
        solve(PROBLEM, "absent")
    assert registry.solvers["scip"].install_command() == "pip install 'optsched[scip]'"
    assert registry.solvers["absent"].install_command() == "pip install no-such-distribution"


def test_a_solver_of_another_model_is_refused():
    expected = "'eft' does not answer 'window-mkp' problems; expected one of best-first, branch-"
    with pytest.raises(InputError, match=expected):
        solve(PROBLEM, "eft")


def test_a_solver_in_a_file_fails_with_the_line(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from optsched.extend import Solver\n"
        "class Mine(Solver):\n"
        "    models = frozenset({'window-mkp'})\n"
        "    def solve(self, problem, **others):\n"
        "        return [self.place(job) for job in range(3)]\n"
        "    def place(self, job):\n"
        "        return romo[job]\n"
    )
    place = "(mine.py, line 5 in solve, line 5 in <listcomp>, line 7 in place)"
    if sys.version_info >= (3, 12):
        place = place.replace("line 5 in <listcomp>, ", "")
    message = solve(PROBLEM, str(file)).message
    assert message.endswith(f"Mine raised NameError: name 'romo' is not defined {place}")


@pytest.mark.parametrize(("name", "close"), [("cpsat", "cp-sat"), ("high-quick", "highs-quick")])
def test_unknown_names_come_with_close_ones_from_solvers_and_profiles(name, close):
    with pytest.raises(UnknownNameError, match=f"did you mean {close}"):
        find_solver(name)


def test_a_hint_may_be_the_name_of_a_solver_and_must_be_feasible():
    assert solve(PROBLEM, "highs", hint="greedy").objective == 15
    for hint, why in (((0, 0, 0, 0, 0), "capacity"), (5, "form")):
        with pytest.raises(InputError, match=f"hint is not a feasible solution: {why}"):
            solve(PROBLEM, "highs", hint=hint)


def test_a_result_says_who_answered_under_which_seed():
    result = solve(PROBLEM, "highs-quick", seed=7)
    assert (result.solver, result.seed) == ("highs-quick", 7)
    assert result.version == registry.solvers["highs"].installed_version()
    default = solve(PROBLEM)
    assert default.version
    assert default.solver == PROBLEM.default_solver


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_limit_is_a_positive_number(limit):
    with pytest.raises(InputError, match="time limit"):
        Budget(seconds=limit)
    with pytest.raises(InputError, match="work limit"):
        Budget(work=limit)


class Slow(Solver):
    """Needs a third of its time limit, and keeps the budgets it was given."""

    given: list[Budget]

    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
        self.given.append(budget)
        time.sleep((budget.seconds or 0) / 3)
        found = Incumbent(0.0, 15, None)
        if on_incumbent:
            on_incumbent(found)
        return Result(self.name, Status.FEASIBLE, GOOD, incumbents=(found,))


@pytest.fixture
def slow(monkeypatch):
    Slow.given = []
    Slow.name = "slow"
    monkeypatch.setitem(registry.solvers._classes, "slow", Slow)
    return Slow


def test_the_time_limit_is_for_the_hint_and_the_answer_together(slow):
    told = []
    result = solve(PROBLEM, "slow", hint="slow", budget=Budget(0.3, 7.0), on_incumbent=told.append)
    first, second = slow.given
    assert first == Budget(0.15)
    assert (second.seconds <= 0.3 - 0.05, second.work) == (True, 7.0)
    assert result.seconds >= 0.05 + second.seconds / 3
    assert told == list(result.incumbents)
    assert told[0].seconds >= 0.05


def test_a_hint_under_a_work_limit_has_work_of_its_own(slow):
    solve(PROBLEM, "slow", hint="slow", budget=Budget(work=7.0))
    assert slow.given == [Budget(work=slow.default_work), Budget(work=7.0)]
    slow.given.clear()
    solve(PROBLEM, "slow", hint="slow")
    assert slow.given == [Budget(), Budget()]
