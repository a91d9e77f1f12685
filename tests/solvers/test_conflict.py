"""Requirements in conflict, against all subsets of the rows."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

import optsched
from optsched.errors import InputError
from optsched.extend import Integer, Integers
from optsched.models import IntegerProgram, WindowMKP
from optsched.models.stated import model
from optsched.solvers.conflict import _Trials, conflict
from optsched.solvers.result import Conflict, Result, Status
from optsched.solvers.solver import Solver
from optsched.testing import migrations
from optsched.testing.contract import points

pytestmark = pytest.mark.usefixtures("own_models")


def stuck(
    m, need: Integer(0), free: Integers(0), switch: Integers(0, like="free"), most: Integer(0)
):
    """Nodes for a job, at most so many of a switch."""
    on = m.integer("on", len(free), upper=free)
    m.require("nodes", on.sum() >= need)
    m.require("switch", on.sum_by(switch, int(switch.max()) + 1) <= most)
    m.require("licence", 2 * on.sum() <= 100)


def test_a_stated_model_names_its_requirements():
    cls = model("stated-stuck")(stuck)
    fields = {"free": [1] * 12, "switch": np.repeat([0, 1, 2], 4), "most": 2}
    problem = cls(need=7, **fields)
    found = conflict(problem)
    assert found.names == ("nodes", "switch_1", "switch_2", "switch_3")
    assert found.families == ("nodes", "switch", "switch", "switch")
    assert str(found) == "together impossible: nodes, switch_1, switch_2, switch_3"
    assert conflict(cls(need=6, **fields)) is None
    assert conflict(cls(need=60, **fields)).names == ("nodes",)  # and the bounds
    many = cls(need=9, free=[1] * 16, switch=np.repeat(range(4), 4), most=2)
    assert str(conflict(many)) == "together impossible: nodes, switch (4 rows)"


def test_solve_and_its_card_name_the_conflict_and_a_false_claim_is_refuted():
    cls = model("stated-stuck")(stuck)
    problem = cls(need=5, free=[2, 1], switch=[0, 1], most=2)
    for solver in ("cp-sat", "highs", "cbc"):
        result = optsched.solve(problem, solver)
        assert (result.status, result.conflict.names) == ("infeasible", ("nodes",))
    assert "together impossible: nodes" in result._repr_html_()
    assert optsched.solve(problem, "highs", explain=False).conflict is None

    class Pessimist(Solver):
        name, models = "pessimist", frozenset({"stated-stuck"})

        def solve(self, problem, *, budget, hint=None, seed=0, on_incumbent=None):
            return Result(self.name, Status.INFEASIBLE)

    result = optsched.solve(cls(need=1, free=[2], switch=[0], most=2), Pessimist())
    assert (result.status, result.wrong, result.conflict) == ("error", True, None)
    assert "cp-sat has a verified one" in result.message


def test_a_comparison_explains_an_infeasible_problem_once(tmp_path):
    problem = model("stated-stuck")(stuck)(need=5, free=[2, 1], switch=[0, 1], most=2)
    comparison = optsched.compare([problem], ["cp-sat", "highs"])
    assert comparison.results["message"].tolist() == ["together impossible: nodes", ""]
    optsched.save(comparison, tmp_path / "page")
    assert "together impossible: nodes" in (tmp_path / "page" / "report.html").read_text()


def test_an_unknown_answer_is_said(monkeypatch):
    problem = model("stated-stuck")(stuck)(need=1, free=[2], switch=[0], most=2)
    idle = SimpleNamespace(solve=lambda model: cp_model.UNKNOWN)
    monkeypatch.setattr(_Trials, "_solver", lambda self: idle)
    with pytest.raises(InputError, match="time does not suffice"):
        conflict(problem)
    assert "did not suffice" in str(Conflict(("nodes",), ("nodes",), False))


def test_a_placement_that_may_leave_jobs_out_has_no_conflict():
    assert conflict(WindowMKP([6, 4], [3])) is None
    assert conflict("reconfiguration/no-room").names == ("start1",)


@settings(max_examples=60, deadline=None)
@given(migrations())
def test_existing_models_name_families_of_rows(problem):
    found = conflict(problem)
    infeasible = optsched.solve(problem, "cp-sat").status == "infeasible"
    assert (found is not None) == infeasible
    if found is not None:
        assert {*found.families} <= {"place", "once_job", "router"}
        assert all(name.startswith(of) for name, of in zip(found.names, found.families))


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_each_name_is_needed_and_all_together_are_in_conflict(data):
    """By all points of small integer programs, whose rows are families of their own."""
    n, m = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 6))
    numbers = st.sampled_from([-2, -1, 1, 2])
    rows = [{j: data.draw(numbers) for j in range(n)} for _ in range(m)]
    least = [data.draw(st.none() | st.integers(-3, 4)) for _ in range(m)]
    most = [None if low is not None else data.draw(st.integers(-4, 3)) for low in least]
    problem = IntegerProgram("max", [1] * n, upper=[2] * n, rows=rows, at_least=least, at_most=most)

    def possible(names: set[str]) -> bool:
        kept = [row for row in range(m) if f"r{row + 1}" in names]
        part = IntegerProgram(
            "max", [1] * n, upper=[2] * n, rows=[rows[r] for r in kept],
            at_least=[least[r] for r in kept], at_most=[most[r] for r in kept],
        )  # fmt: skip
        program = part.formulate().program
        return any(program.admits(x) for x in points(program))

    found = conflict(problem)
    event("infeasible" if found else "feasible")
    if found is None:
        assert possible({f"r{row + 1}" for row in range(m)})
        return
    assert found.is_least
    assert not possible({*found.names})
    for name in found.names:
        assert possible({*found.names} - {name})
