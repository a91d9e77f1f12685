from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from optsched.content import bundled
from optsched.errors import InputError
from optsched.models import IntegerProgram
from optsched.models.export import export, minizinc_model
from optsched.models.program import ProgramBuilder
from optsched.models.snapshot_file import read_snapshot

ODD = IntegerProgram(
    "min", [3, -1, 1], [0, -2, 0], [1, 2, 9], -4, ["var", "x.1", "y"],
    rows=[{0: 2, 1: -3, 2: 1}, {0: -1, 1: 1}, {}], at_least=[-5, 1, None], at_most=[6, 1, 0],
)  # fmt: skip

MODELS = {
    "window-mkp/yang-2014-example": 15,
    "migration/worked-example": 260,
    "data-placement/bridge": 190,
    "gang-packing/mpl-3-skip": 3801,
    "hold/no-release": None,
    "threshold-allocation/memory-and-network": 1440000,
}


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


@pytest.mark.parametrize("name", ["a'b", 'a"b', "a\\b", "a\nb", ""])
def test_names_that_cannot_be_quoted_are_refused(name):
    builder = ProgramBuilder("max")
    builder.variable(name)
    with pytest.raises(InputError, match="cannot be the name"):
        minizinc_model(builder.build())


@pytest.mark.parametrize(
    ("number", "upper", "told"),
    [(1, np.iinfo(np.int64).max, "MiniZinc needs both"), (2, 1, "the same name")],
)
def test_unbounded_variables_and_repeated_names_are_refused(number, upper, told):
    builder = ProgramBuilder("max")
    builder.variables("x", number, upper=upper)
    with pytest.raises(InputError, match=told):
        minizinc_model(builder.build())


@pytest.mark.skipif(shutil.which("minizinc") is None, reason="needs MiniZinc")
@pytest.mark.parametrize("name", [*MODELS, "odd"])
def test_minizinc_finds_the_same_optimum(tmp_path, name):
    if name == "odd":
        # x.1 is 1 + var, so var = 1 costs 3 and saves 1; with var = 0 and y = 0: -1 - 4
        problem, optimum = ODD, -5
    else:
        problem, optimum = read_snapshot(bundled("models") / f"{name}.json").problem, MODELS[name]
    export(problem, tmp_path / "a.mzn")
    command = ["minizinc", "--output-objective", "a.mzn"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    if optimum is None:
        assert "UNSATISFIABLE" in ran.stdout
    else:
        assert "==========" in ran.stdout
        assert re.findall(r"_objective = (-?\d+)", ran.stdout)[-1] == str(optimum)
