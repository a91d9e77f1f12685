import subprocess
import sys
import textwrap
from pathlib import Path

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
from optsched.models.program import Formulation, Formulations, formulations

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
