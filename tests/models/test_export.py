import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from optsched import load_snapshot, solve
from optsched.errors import InputError
from optsched.models import IntegerProgram, WindowMKP
from optsched.models.export import export, minizinc_model
from optsched.models.program import ProgramBuilder
from optsched.models.snapshot_file import read_snapshot

PROBLEM = WindowMKP([6, 4], [3, 6], [7, 0])


@pytest.mark.parametrize("name", ["a.lp", "a.mps", "a.pb.txt", "a.pbtxt"])
def test_names_are_those_of_the_model(tmp_path, name):
    export(PROBLEM, tmp_path / name)
    text = (tmp_path / name).read_text()
    for expected in ("x_job1_slot1", "x_job2_slot2", "capacity_slot2", "once_job2"):
        assert expected in text
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_names_that_lp_files_do_not_take_are_numbered(tmp_path):
    for names in (["free", "ST", "y"], ["x[1]", "x", "y"]):
        problem = IntegerProgram("max", [1, 2, 3], variable_names=names, rows=[{0: 1, 1: 1, 2: 1}])
        export(problem, tmp_path / "a.lp")
        assert read_snapshot(tmp_path / "a.lp").problem.variable_names == ("x1", "x2", "x3")
        assert problem.describe((1, 1, 0)) == [("not 0", " ".join(names[:2]))]


def changed(**changes):
    """Return the problem with changes to its program."""
    problem, formulation = PROBLEM.copy(), PROBLEM.formulate()
    formulation.program = replace(formulation.program, **changes)
    object.__setattr__(problem, "formulate", lambda: formulation)
    return problem


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
    export(PROBLEM, path)
    assert path.read_text() == "2\n2\n3\n6\n6 7\n4 0\n"
    assert read_snapshot(path).problem.to_json() == PROBLEM.to_json()
    with pytest.raises(InputError, match=r"b\.txt: integer-program has no text format"):
        export(IntegerProgram("max", [1], rows=[]), tmp_path / "b.txt")


ODD = IntegerProgram(
    "min", [3, -1, 1], [0, -2, 0], [1, 2, 9], -4, ["var", "x.1", "y"],
    rows=[{0: 2, 1: -3, 2: 1}, {0: -1, 1: 1}, {}], at_least=[-5, 1, None], at_most=[6, 1, 0],
)  # fmt: skip

MODELS = (
    *("window-mkp/yang-2014-example", "migration/worked-example", "data-placement/bridge"),
    *("gang-packing/mpl-3-skip", "hold/no-release", "threshold-allocation/memory-and-network"),
)


def test_the_text_says_what_the_program_says():
    assert minizinc_model(ODD.formulate().program).splitlines() == [
        "var 0..1: 'var';",
        "var -2..2: 'x.1';",
        "var 0..9: y;",
        "constraint :: \"r1\" 2*'var' - 3*'x.1' + y >= -5;",
        "constraint :: \"r1\" 2*'var' - 3*'x.1' + y <= 6;",
        "constraint :: \"r2\" -'var' + 'x.1' = 1;",
        'constraint :: "r3" 0 <= 0;',
        "solve minimize 3*'var' - 'x.1' + y - 4;",
    ]


def test_what_minizinc_cannot_hold_is_refused():
    names = ("a'b", 'a"b', "a\\b", "a\nb", "")
    for name, number, upper, told in (
        *((name, 1, 1, "cannot be the name") for name in names),
        ("x", 1, np.iinfo(np.int64).max, "MiniZinc needs both"),
        ("x", 2, 1, "the same name"),
    ):
        builder = ProgramBuilder("max")
        builder.variables(name, number, upper=upper)
        with pytest.raises(InputError, match=told):
            minizinc_model(builder.build())


@pytest.mark.skipif(shutil.which("minizinc") is None, reason="needs MiniZinc")
@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_minizinc_finds_the_same_optimum(tmp_path, name):
    problem = ODD if name == "odd" else load_snapshot(name)
    optimum = solve(problem, "cp-sat").objective
    export(problem, tmp_path / "a.mzn")
    command = ["minizinc", "--output-objective", "a.mzn"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ("UNSATISFIABLE" if optimum is None else "==========") in ran.stdout
    if optimum is not None:
        assert re.findall(r"_objective = (-?\d+)", ran.stdout)[-1] == str(optimum)
