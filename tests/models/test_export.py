from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from optsched import solve
from optsched.errors import InputError
from optsched.models import IntegerProgram, WindowMKP
from optsched.models.export import cp_sat_model, export
from optsched.models.snapshot_file import read_snapshot
from optsched.testing import brute_force, window_mkps

PROBLEM = WindowMKP([6, 4, 3, 1, 2], [3, 6, 6])
FILES = ("a.lp", "a.mps", "a.pb.txt", "a.pbtxt")


def optimum_on_file(path) -> int:
    """Read the file with the software it is for, and solve it there."""
    if path.suffix in (".lp", ".mps"):
        highspy = pytest.importorskip("highspy")
        highs = highspy.Highs()
        highs.silent()
        assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
        highs.run()
        return round(highs.getObjectiveValue())
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    assert model.proto.parse_text_format(path.read_text())
    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False  # it would take Ctrl-C from Python for good
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


@pytest.mark.parametrize("name", FILES)
def test_what_is_exported_has_the_same_optimum(tmp_path, name):
    export(PROBLEM, tmp_path / name)
    assert optimum_on_file(tmp_path / name) == 15
    assert [path.name for path in tmp_path.iterdir()] == [name]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(problem=window_mkps(max_jobs=4, max_slots=3))
def test_random_problems_keep_their_optimum(tmp_path, problem):
    for name in FILES[:3]:
        export(problem, tmp_path / name)
        assert optimum_on_file(tmp_path / name) == brute_force(problem)


@pytest.mark.parametrize("name", FILES)
def test_names_are_those_of_the_model(tmp_path, name):
    export(PROBLEM, tmp_path / name)
    text = (tmp_path / name).read_text()
    for expected in ("x_job1_slot1", "x_job5_slot3", "capacity_slot3", "once_job5"):
        assert expected in text


@pytest.mark.parametrize("name", FILES[:3])
def test_long_numbers_are_written_to_the_last_digit(tmp_path, name):
    profits = [123_456_789_011, 123_456_789_012, 123_456_789_013]
    problem = WindowMKP([5, 5, 5], [10], profits)
    export(problem, tmp_path / name)
    assert optimum_on_file(tmp_path / name) == profits[1] + profits[2]


class Changed(WindowMKP):
    """A window knapsack with changes to its program."""

    changes: dict = {}

    def formulate(self):
        formulation = super().formulate()
        formulation.program = replace(formulation.program, **self.changes)
        return formulation


def changed(**changes):
    problem = Changed([6, 4], [3, 6])
    object.__setattr__(problem, "changes", changes)
    return problem


@pytest.mark.parametrize("name", FILES[:3])
def test_sense_offset_ranges_and_integers_are_kept(tmp_path, name):
    problem = changed(
        sense="min",
        objective=np.array([3, -2, 1, 5]),
        lower=np.array([-4, 0, 0, -1]),
        upper=np.array([9, 7, 1, 1]),
        row_lower=np.array([-11, 2, -1, -1]),
        row_upper=np.array([40, 33, 3, 8]),
        offset=1000,
    )
    export(problem, tmp_path / name)
    best = np.array([-2, 5, 1, -1])
    assert optimum_on_file(tmp_path / name) == problem.formulate().program.value(best) == 980


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset": 10**15}, "16 digits"),
        ({"objective": np.array([1, -(10**15), 1, 1])}, "16 digits"),
        ({"variable_name": "x[{}]".format}, r"'x\[0\]' cannot be the name"),
        ({"row_name": "row {}".format}, "'row 0' cannot be the name"),
        ({"variable_name": "e{}".format}, "'e0' cannot be the name"),
        ({"variable_name": "same".format}, "the same name"),
    ],
)
@pytest.mark.parametrize("name", ["a.lp", "a.mps"])
def test_what_does_not_fit_is_refused(tmp_path, changes, message, name):
    with pytest.raises(InputError, match=message) as raised:
        export(changed(**changes), tmp_path / name)
    assert name in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_the_format_may_be_named_and_must_be_known(tmp_path):
    export(PROBLEM, tmp_path / "model.data", "mps")
    assert "ENDATA" in (tmp_path / "model.data").read_text()
    for arguments in ((tmp_path / "model.data",), (tmp_path / "model.lp", "gams")):
        with pytest.raises(InputError, match=r"expected lp, mps, minizinc, cp-sat or.*\.pb\.txt"):
            export(PROBLEM, *arguments)


def test_a_knapsack_is_written_in_the_text_format_and_others_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    export(WindowMKP([6, 4], [3, 6], [7, 0]), path)
    assert path.read_text() == "2\n2\n3\n6\n6 7\n4 0\n"
    assert read_snapshot(path).problem.to_json() == WindowMKP([6, 4], [3, 6], [7, 0]).to_json()
    with pytest.raises(InputError, match=r"b\.txt: integer-program has no text format"):
        export(IntegerProgram("max", [1], rows=[]), tmp_path / "b.txt")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none.*cannot be written"):
        export(PROBLEM, tmp_path / "none" / "a.lp")


def test_the_model_for_cp_sat_is_valid_and_without_names_unless_asked():
    model = cp_sat_model(PROBLEM.formulate().program)
    assert model.validate() == ""
    assert not model.proto.variables[0].name
    assert solve(PROBLEM, "cp-sat").objective == 15
