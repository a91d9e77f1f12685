import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optsched
from optsched import testing
from optsched.errors import InputError
from optsched.models import (
    BoxPlacement,
    DataPlacement,
    GangPacking,
    Migration,
    PartitionMKP,
    Reconfiguration,
    ThresholdAllocation,
    WindowMKP,
)
from optsched.models.export import lp_text
from optsched.models.program import (
    UNBOUNDED,
    Formulation,
    Formulations,
    ProgramBuilder,
    formulations,
)

HALVES = """
from functools import cached_property

import numpy as np

from optsched.models.program import Formulation, ProgramBuilder, formulations


@formulations.register("halves")
class HalvesFormulation(Formulation):
    @cached_property
    def program(self):
        builder = ProgramBuilder("max")
        x = builder.variables("x{}", 2, objective=3)
        builder.rows("one", (1, x[None]), at_most=1)
        return builder.build()

    def decode(self, x):
        return tuple(x.tolist())

    def encode(self, solution):
        return np.array(solution)
"""

PROBLEM = """
from optsched.models.problem import Problem
from optsched.registry import models


@models.register("halves")
class Halves(Problem):
    sense = "max"
    size = "2"

    def objective(self, solution):
        return 3 * sum(solution)

    def violations(self, solution):
        return []

    to_json = from_json = solution_to_json = solution_from_json = describe = None
"""


def printed(folder, code):
    """Return the output of a Python process started in a folder."""
    run = [sys.executable, "-c", textwrap.dedent(code)]
    path = ":".join((str(folder), *filter(None, sys.path)))
    env = {"PYTHONPATH": path, "PATH": "/usr/bin"}
    done = subprocess.run(run, cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_only_the_formulation_that_is_asked_for_is_imported(tmp_path):
    code = """
        import sys
        from optsched.models.hold import Hold
        print("optsched.models.hold.program" in sys.modules)
        Hold(["cores"], free=[[4]], chunks=1, demand=[4], costs=[], held=[]).formulate()
        print(*(name for name in sys.modules if name.endswith(".program")))
        print(any("migration" in name for name in sys.modules))
    """
    programs = ["optsched.models.program", "optsched.models.hold.program"]
    assert printed(tmp_path, code) == ["False", *programs, "False"]


@pytest.mark.parametrize("package", [False, True], ids=["in one file", "beside its problem"])
def test_a_formulation_of_another_package_is_found(tmp_path, package):
    if package:
        (tmp_path / "halves").mkdir()
        (tmp_path / "halves" / "__init__.py").write_text("")
        (tmp_path / "halves" / "problem.py").write_text(PROBLEM)
        (tmp_path / "halves" / "program.py").write_text(HALVES)
    else:
        (tmp_path / "halves.py").write_text(PROBLEM + HALVES)
    code = f"""
        import optsched
        from {"halves.problem" if package else "halves"} import Halves
        result = optsched.solve(Halves(), "highs")
        print(result.status, result.objective)
    """
    assert printed(tmp_path, code) == ["optimal", "3"]


def test_a_model_without_a_formulation_is_not_for_generic_solvers(tmp_path):
    (tmp_path / "halves.py").write_text(PROBLEM)
    code = """
        import optsched
        from halves import Halves
        result = optsched.solve(Halves(), "highs")
        print(result.status, result.message.replace(" ", "_"))
    """
    said = ["no-solution", "highs:_model_'halves'_has_no_formulation"]
    assert printed(tmp_path, code) == said


def test_a_model_has_one_formulation():
    registry = Formulations()
    One, Other = type("One", (Formulation,), {}), type("Other", (Formulation,), {})  # noqa: N806
    registry.register("x")(One)
    registry.register("x")(One)  # a module that is imported again
    with pytest.raises(ValueError, match="the formulation of 'x' is already"):
        registry.register("x")(Other)
    assert registry["x"].name == "x"
    with pytest.raises(InputError, match="unknown model 'window'"):
        formulations["window"]


PROGRAMS = {
    "box-placement": BoxPlacement((4, 1, 1), ["1x1x1@1,0,0"], [2, 1, 1], [5, 1, 1]),
    "box-placement-of-one": BoxPlacement((4, 1, 1), ["1x1x1@1,0,0"], [2]),
    "gang-packing": GangPacking(4, 3, [0b0011, 0b0110], [0, 2], [3]),
    "gang-packing-rerow": GangPacking(4, 2, [0b0011, 0b0110], [0, 1], [3, 1], rerow=True),
    "migration": Migration((3, 1, 1), ["1x1x1@0,0,0"], [1], [7], 2, wrap=(False,) * 3),
    "partition-mkp": PartitionMKP(
        (8, 4, 4), ["4x3x3@0,0,0", "1x1x1@7,0,0"], waiting=[13, 6, 2, 4, 40]
    ),
    "reconfiguration": Reconfiguration(
        (3, 1, 1), ["1x1x1@0,0,0"], [1], [7], [2, 2], required=[1], wrap=(False,) * 3, worth=5
    ),
    "window-mkp": WindowMKP([5, 2], [4, 9], [7, 3]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_is_the_page_of_the_model_in_numbers(name):
    """As files in LP; who changes one compares it with the page."""
    stated = (Path(__file__).parent / "programs" / f"{name}.lp").read_text()
    assert lp_text(PROGRAMS[name].formulate().program) == stated


CROWD = [f"1x1x1@{x},{y},0" for x in range(20) for y in range(20)], [1] * 400, [1] * 400
JOBS = [[1] * 50, [60] * 50, [-1] * 50, [0] * 50]
HELD = [[node, 1, 0, 100 + node, 500] for node in range(400)]
TOO_LARGE = {
    "interval-search needs none": DataPlacement([[0] * 20] * 50, *JOBS),
    "movable jobs or fewer shapes make it smaller": Migration((24, 24, 24), *CROWD, 8000),
    "jobs or fewer shapes make it smaller": Reconfiguration((24, 24, 24), *CROWD, [8000]),
    "bottleneck-search needs none": ThresholdAllocation(400, 4, [6000], HELD, 64, 100, [2000]),
}


@pytest.mark.parametrize("advice", TOO_LARGE)
def test_a_program_that_is_too_large_is_refused(advice):
    with pytest.raises(InputError, match=advice):
        assert TOO_LARGE[advice].formulate().program


DRAWN = {
    "box-placement": testing.box_placements(max_waiting=2, max_side=3),
    "gang-packing": testing.gang_packings(max_running=3, max_waiting=2, max_rows=2),
    "migration": testing.migrations(max_running=3, max_side=3),
    "node-placement": testing.node_placements(),
    "partition-mkp": testing.partition_mkps(),
    "reconfiguration": testing.reconfigurations(max_running=2, max_waiting=2, max_side=3),
    "threshold-allocation": testing.threshold_allocations(2, 2, 2, 3, 4),
    "window-mkp": testing.window_mkps(max_jobs=4, max_slots=3),
}


ANSWERED_BY = {"migration": "position-search", "reconfiguration": "highs"}
"""Solvers whose answers are tried besides, where hardly any random point is feasible."""


@pytest.mark.parametrize("model", DRAWN)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_problems_keep_the_contract_of_a_problem(model, data):
    problem = data.draw(DRAWN[model])
    answer = model in ANSWERED_BY and optsched.solve(problem, ANSWERED_BY[model]).solution
    testing.check_problem(problem, solutions=[answer] if answer else [])


def rows_of(builder):
    """Return the rows as LP has them."""
    return lp_text(builder.build()).partition("subject to\n ")[2].partition("\nbounds")[0]


def test_families_of_rows_sum_terms_over_the_last_axis_and_single_rows_take_any():
    builder = ProgramBuilder("max")
    x = builder.variables("x{}{}", 2, 3)
    y = builder.variables("y{}", 2)
    z = builder.variables("z{}{}{}", 2, 2, 2)
    total = builder.variable("t")
    builder.rows("used_{}", ([1, 2, 3], x), (-7, y[:, None]), at_most=0)
    builder.rows("all_{}", (1, x), (-1, total), over=(["a", "b"],), equal=[0, 4])
    builder.rows("pair_{}_{}", (1, z), at_least=np.array([[1, 2], [3, 4]]))
    builder.row("one", (2, int(x[0, 0])), (3, [1, 2]), ([-4], x[1, 2:]), at_least=1, at_most=8)
    assert rows_of(builder).split("\n ") == [
        "used_1: +1 x11 +2 x12 +3 x13 -7 y1 <= 0",
        "used_2: +1 x21 +2 x22 +3 x23 -7 y2 <= 0",
        "all_a: +1 x11 +1 x12 +1 x13 -1 t = 0",
        "all_b: +1 x21 +1 x22 +1 x23 -1 t = 4",
        "pair_1_1: +1 z111 +1 z112 >= 1",
        "pair_1_2: +1 z121 +1 z122 >= 2",
        "pair_2_1: +1 z211 +1 z212 >= 3",
        "pair_2_2: +1 z221 +1 z222 >= 4",
        "one_low: +2 x11 +3 x12 +3 x13 -4 x23 >= 1",
        "one_high: +2 x11 +3 x12 +3 x13 -4 x23 <= 8",
    ]


def test_blocks_and_families_may_be_empty():
    builder = ProgramBuilder("max")
    empty = builder.variables("x{}_{}", 2, 0)
    builder.rows("none_{}", (1, empty.T), at_most=1)
    builder.rows("blank_{}", (1, empty), at_most=1)
    y = builder.variables("y{}", 1)
    builder.ragged_rows("never_{}", (3,), (1, y[:0], y[:0]), at_most=1)
    builder.row("last", (1, y), equal=1)
    assert rows_of(builder) == "blank_1: 0 y1 <= 1\n blank_2: 0 y1 <= 1\n last: +1 y1 = 1"
    program = ProgramBuilder("max").build()
    assert (program.num_variables, program.num_rows) == (0, 0)
    assert program.row_start.tolist() == [0]
    assert {array.dtype for array in (program.objective, program.columns)} == {np.dtype(np.int64)}


def test_common_divisors_are_taken_out_and_rows_rounded_inwards():
    builder = ProgramBuilder("max")
    x = builder.variables("x{}", 2, lower=[0, -3], upper=[1, 2], objective=[30, -45])
    builder.row("a", ([2048, -1024], x), at_least=-5000, at_most=3000)
    builder.row("b", at_least=-1, at_most=1)
    builder.row("c", (-7, x[1:]), at_most=20)
    program = builder.build(offset=10**12)
    divided, divisor = program.divided(offset=False)
    assert (divisor, divided.offset) == (15, 0)
    assert divided.objective.tolist() == [2, -3]
    assert divided.values.tolist() == [2, -1, -1]
    assert divided.row_lower.tolist() == [-4, -1, -UNBOUNDED]
    assert divided.row_upper.tolist() == [2, 1, 2]
    assert divided.terms.tolist() == [2, 3 * 3, 0]
    kept, divisor = program.divided(offset=True)
    assert (divisor, kept.terms.tolist()) == (5, [6, 27, 2 * 10**11])
