"""The conformance kit finds what it is there to find."""

import ctypes
import itertools
import os
from dataclasses import dataclass, replace

import numpy as np
import pytest

from optsched import Budget
from optsched.models import WindowMKP
from optsched.solvers.result import Incumbent, Limit, Result, Status
from optsched.solvers.solver import Solver
from optsched.testing import brute_force, check_problem, check_solver

POSIX = pytest.mark.skipif(os.name != "posix", reason="calls the C library by name")

PROBLEM = WindowMKP([6, 4, 3], [3, 6], [6, 5, 3], jobs=["A", "B", "C"], slots=[1, 6])
BEST = (1, -1, 0)


class Honest(Solver):
    """Knows the answer to the one problem, and needs one node for it."""

    name = "honest"

    def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
        assert problem.to_json() == PROBLEM.to_json()
        return self.answer(Result(self.name, Status.OPTIMAL, BEST, 9, 9, work=1), budget, seed)

    def answer(self, result, budget, seed):
        return result


def test_an_honest_solver_and_a_good_problem_pass():
    assert check_solver(Honest(), PROBLEM).objective == 9
    check_problem(PROBLEM, solutions=[BEST, (1, 1, 1)])
    assert brute_force(PROBLEM) == 9


COUNTER = itertools.count()
FEASIBLE = {"status": Status.FEASIBLE, "bound": 12}


def stating(**fields):
    return lambda result, *_: replace(result, **fields)


def incumbents(*rows):
    return stating(incumbents=tuple(Incumbent(*row) for row in rows))


def shout(result, *_):
    print("solving")
    return result


def shout_from_c(result, *_):
    os.write(2, b"warning")
    return result


def shout_from_a_buffer(result, *_):
    ctypes.CDLL(None).printf(b"solving")
    return result


def blame_another_limit(result, budget, _):
    if budget.work is None:
        return result
    return replace(result, **FEASIBLE, limit=Limit.TIME)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (stating(solution=(1, 1, 0)), "capacity"),
        (stating(bound=12), "9 is optimal with a bound of 12"),
        (stating(solution=(-1, 1, 0), objective=8, bound=8), "8 is not a bound"),
        (lambda *_: Result("x", Status.INFEASIBLE), "claims infeasibility"),
        (stating(status=Status.NO_SOLUTION), "no-solution with"),
        (stating(**FEASIBLE), "stopped by None"),
        (stating(limit=Limit.WORK), "but stopped by work"),
        (shout, "printed 'solving"),
        (shout_from_c, "printed 'warning'"),
        pytest.param(shout_from_a_buffer, "printed 'solving", marks=POSIX),
        (lambda r, b, _: r if b == Budget() else replace(r, **FEASIBLE), "stopped by None under"),
        (blame_another_limit, "stopped by time under"),
        (lambda r, *_: replace(r, work=next(COUNTER)), "the same work, but the work differs"),
        (incumbents((1e9, 9, 9)), "after the"),
        (incumbents((0, 9, 9), (0, 8, 9)), "after Incumbent"),
        (incumbents((0, 8, 9), (0, 9, 10)), "after Incumbent"),
        (incumbents((0, 8, 9)), "last incumbent 8, objective 9"),
    ],
)
def test_a_solver_that_breaks_the_contract_is_caught(change, message):
    broken = type("Broken", (Honest,), {"answer": lambda _, *given: change(*given)})
    with pytest.raises(AssertionError, match=message):
        check_solver(broken(), PROBLEM)


def test_a_lost_hint_is_caught():
    class Forgetful(Honest):
        def answer(self, result, budget, seed):
            if budget.work is None or budget.seconds is not None:
                return result
            return Result("x", Status.FEASIBLE, (-1, -1, -1), 0, 9, limit=Limit.WORK)

    with pytest.raises(AssertionError, match="was given 9, returns 0"):
        check_solver(Forgetful(), PROBLEM)


def test_a_large_problem_is_sampled():
    rng = np.random.default_rng(0)
    problem = WindowMKP(rng.integers(1, 99, 30), rng.integers(50, 200, 6))
    check_problem(problem, solutions=[tuple(-1 if job else 0 for job in range(30))])


FORMULATE = WindowMKP.formulate


def change_program(**changes):
    def formulate(self):
        formulation = FORMULATE(self)
        program = formulation.program
        changed = {name: call(program) for name, call in changes.items()}
        formulation.program = replace(program, **changed)
        return formulation

    return {"formulate": formulate}


def encode_as_nothing(self):
    formulation = FORMULATE(self)
    formulation.encode = lambda solution: np.zeros(6, dtype=np.int64)
    return formulation


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (change_program(row_upper=lambda p: p.row_upper + 4 * (p.row_upper > 1)), "verification"),
        (change_program(row_upper=lambda p: p.row_upper - 3), "does not admit"),
        (change_program(objective=lambda p: 2 * p.objective), "objective"),
        (change_program(offset=lambda p: 1), "objective"),
        (change_program(values=lambda p: p.values.astype(float)), "float64, expected int64"),
        (change_program(columns=lambda p: 0 * p.columns), "names a variable twice"),
        (change_program(columns=lambda p: p.columns + 1), "does not exist"),
        (change_program(variable_name=lambda p: "x".format), "have the same name"),
        (change_program(row_name=lambda p: "row {}".format), "not a name for an LP file"),
        ({"violations": lambda self, solution: []}, "does not admit"),
        ({"objective": lambda self, solution: 0}, "objective 0"),
        ({"formulate": encode_as_nothing}, "comes back from"),
        ({"solution_to_json": lambda self, solution: {"slot_of_job": [1, 1, 1]}}, "read back"),
        ({"solution_from_json": lambda self, fields: BEST}, "comes back as|accepts"),
        ({"to_json": lambda self: {"weights": [1], "capacities": [1]}}, "read back"),
        ({"describe": lambda self, solution=None: [("jobs", 3)]}, "describe gives"),
    ],
)
def test_a_problem_that_breaks_the_contract_is_caught(methods, message, monkeypatch):
    problem = PROBLEM.copy()
    for name, method in methods.items():
        monkeypatch.setattr(WindowMKP, name, method)
    with pytest.raises(AssertionError, match=message):
        check_problem(problem)


def test_a_problem_that_can_be_changed_is_caught():
    @dataclass
    class Loose:
        name = "window-mkp"

    with pytest.raises(AssertionError, match="is another class"):
        check_problem(Loose())


def test_a_solver_of_this_package_that_alters_the_problem_is_caught(monkeypatch):
    class Renaming(Honest):
        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            object.__setattr__(problem, "slots", (8, 9))
            return self.answer(Result(self.name, Status.OPTIMAL, BEST, 9, 9, work=1), budget, seed)

    problem = PROBLEM.copy()
    check_solver(Renaming(), problem)  # of another package: what it alters is a copy
    assert problem.slots == PROBLEM.slots
    monkeypatch.setattr(Renaming, "__module__", "optsched.solvers.renaming")
    with pytest.raises(AssertionError, match="altered slots of the problem"):
        check_solver(Renaming(), problem)
