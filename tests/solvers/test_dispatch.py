"""One name for solvers of several models."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from optsched import Budget, registry, solve
from optsched.errors import InputError
from optsched.models import GangPacking, PartitionMKP, WindowMKP
from optsched.simulator.policy import Answers
from optsched.simulator.problem_solver import choose_solvers
from optsched.solvers.finding import Dispatch, classes_of, find_solver
from optsched.solvers.gang_packing.fit_rules import FirstFit
from optsched.solvers.result import Result, Status
from optsched.solvers.solver import Solver
from optsched.testing import check_solver

WINDOW = WindowMKP(weights=[6, 4, 3], capacities=[3, 6])
OTHER = PartitionMKP((8, 2, 1), ["4x2x1@0,0,0"], waiting=[6])
GANG = GangPacking(4, 2, running=[0b0011], rows_of_running=[0], waiting=[1, 2])


def window_solver(models=frozenset({"window-mkp"})):
    """Return the class of a solver that leaves all jobs out, with an option."""

    @dataclass(frozen=True)
    class LeaveOut(Solver):
        """Leave all jobs out."""

        patience: int = 1

        exact = False
        work_unit = "looks"
        default_work = 7e7

        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            solution = (-1,) * len(problem.weights) if hint is None else hint
            return Result(self.name, Status.FEASIBLE, solution, work=float(self.patience))

    LeaveOut.models = models
    return LeaveOut


@pytest.fixture
def shared(monkeypatch):
    """Register a solver of window knapsacks as a further first fit."""
    assert "first-fit" in registry.solvers
    monkeypatch.setitem(registry.solvers._classes, "first-fit", registry.solvers["first-fit"])
    cls = window_solver()
    registry.solvers.register("first-fit")(cls)
    return cls


def test_each_problem_goes_to_the_solver_of_its_model(shared):
    assert solve(WINDOW, "first-fit").solution == (-1, -1, -1)
    assert solve(GANG, "first-fit").solution.rows_of_waiting == (0, 1)
    assert isinstance(find_solver("first-fit", "gang-packing")[0], FirstFit)
    assert isinstance(find_solver("first-fit", "window-mkp")[0], shared)
    assert find_solver("greedy", "window-mkp")[0].name == "greedy"
    with pytest.raises(InputError, match="'first-fit' does not answer 'partition-mkp' problems"):
        solve(OTHER, "first-fit")


def test_a_solver_without_a_model_yet_answers_for_all_of_them(shared):
    solver = registry.solvers["first-fit"]()
    assert isinstance(solver, Dispatch)
    models = {"gang-packing", "node-placement", "threshold-allocation", "window-mkp"}
    assert solver.models == models
    assert (solver.exact, solver.is_rule, solver.default_work) == (False, False, 7e7)
    assert solver.installed_version() is not None
    assert len(classes_of("first-fit")) == 4
    assert classes_of("greedy") == (registry.solvers["greedy"],)
    solver.prepare()
    for problem in (WINDOW, GANG):
        check_solver(solver, problem)
    assert solve(WINDOW, solver, budget=Budget(work=1)).solver == "first-fit"
    with pytest.raises(InputError, match="'first-fit' does not answer 'partition-mkp' problems"):
        solver.solve(OTHER, budget=Budget())


def test_a_simulation_has_the_solver_of_each_model():
    models = ("gang-packing", "threshold-allocation")
    chosen = choose_solvers(dict.fromkeys(models, Answers("first-fit", "first-fit")), "first-fit")
    assert {one.solver.models for one in chosen.values()} == {frozenset({m}) for m in models}
    assert all(one.solver is one.fallback for one in chosen.values())


def test_options_are_those_of_the_solver_of_the_model(shared, tmp_path):
    profile = tmp_path / "patient.toml"
    profile.write_text('solver = "first-fit"\n[options]\npatience = 5\n')
    assert solve(WINDOW, str(profile)).work == 5
    assert solve(WINDOW, find_solver(str(profile))[0]).work == 5
    with pytest.raises(InputError, match="unknown setting 'patience' of solver 'first-fit'"):
        solve(GANG, str(profile))


@pytest.mark.parametrize("models", [frozenset({"window-mkp", "gang-packing"}), None])
def test_a_model_has_a_name_once(models):
    namesake = type("FirstFit", (FirstFit,), {"__module__": "theirs"})
    for name, cls in (
        ("first-fit", window_solver(models)),
        ("first-fit", namesake),
        ("greedy", window_solver()),
    ):
        taken = registry.solvers[name].__qualname__
        with pytest.raises(ValueError, match=f"solver '{name}' is already {taken}"):
            registry.solvers.register(name)(cls)


def test_a_class_takes_the_place_of_its_earlier_version(shared):
    registry.solvers.register("first-fit")(again := window_solver())
    assert len(classes_of("first-fit")) == 4
    assert isinstance(find_solver("first-fit", "window-mkp")[0], again)
