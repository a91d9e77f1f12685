"""The public names: where the package says, light to import, and clear about wrong arguments."""

import re
from pathlib import Path

import pytest

import optsched
from optsched import extend, registry
from optsched.machines.machine import Machine
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.solvers.cp_sat import CpSat
from optsched.solvers.solver import Solver
from optsched.workloads.workload_model import WorkloadModel

PROBLEM = optsched.models.WindowMKP([6, 4, 3, 1, 2], [3, 6, 6])
HOW_TO = [*Path(__file__).resolve().parents[1].glob("docs/how-to/add-*.md")]
HOW_TO = sorted(page for page in HOW_TO if page.stem != "add-a-study")


def test_every_public_name_is_there():
    for name in optsched.__all__:
        assert getattr(optsched, name) is not None
    kinds = [registry.models[name] for name in registry.models]
    assert {kind.__name__ for kind in kinds} <= set(dir(optsched.models))
    assert all(getattr(optsched.models, kind.__name__) is kind for kind in kinds)
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchModel'"):
        optsched.models.NoSuchModel  # noqa: B018
    assert set(optsched.__all__) <= set(dir(optsched))


def test_plug_ins_have_every_registry_and_every_contract():
    contracts = (Policy, Solver, Problem, Machine, ExecutionModel, WorkloadModel)
    assert all(getattr(extend, contract.__name__) is contract for contract in contracts)
    kinds = {kind for kind in vars(extend).values() if isinstance(kind, registry.Registry)}
    assert kinds == set(registry.all_kinds())


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_a_page_for_authors_of_plug_ins_imports_nothing_else(page):
    text = page.read_text()
    imported = set(re.findall(r"^(?:from|import) (optsched[\w.]*)", text, re.MULTILINE))
    assert "optsched.extend" in imported
    allowed = {"optsched", "optsched.extend", "optsched.models", "optsched.testing"}
    assert imported - allowed - {"optsched.testing.contract"} == set()


def test_notebooks_show_small_tables_and_what_is_large_in_one_line(make_trace):
    run = optsched.simulate(make_trace((0, 10, 10, 1)), "nodes:4", "easy", journal=True)
    assert "mean wait" in run._repr_html_()
    assert "optimal" in optsched.solve(PROBLEM)._repr_html_()
    comparison = optsched.compare(PROBLEM, ["greedy", "highs"])
    result = optsched.solve(PROBLEM, solver="greedy")
    shown = [result, run, run.schedule, run.machine, run.journal, comparison, Snapshot(PROBLEM)]
    assert [repr(one) for one in shown] == [
        "<Result greedy: feasible, objective 15, bound None>",
        "<Run made: 1 jobs, easy on nodes:4>",
        "<Schedule: 1 jobs, 2 decisions>",
        "<Nodes nodes:4: 4 processors free>",
        "<Journal: 3 entries>",
        "<Comparison of greedy, highs: 1 snapshots>",
        "<Snapshot window-mkp 5x3>",
    ]


def test_a_file_or_a_snapshot_is_solved_like_its_problem(tmp_path):
    file = tmp_path / "snapshot.json"
    optsched.save_snapshot(PROBLEM, file)
    given = (PROBLEM, Snapshot(PROBLEM), file, str(file))
    assert [optsched.solve(one).objective for one in given] == [15] * 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": "5"}, r"budget: '5'; expected optsched.Budget\(seconds="),
        ({"seed": "a"}, "seed: 'a'; expected an integer"),
        ({"jobs": (1, 2.5)}, r"jobs: \(1, 2.5\); expected the first and the last job"),
        ({"trace": 5}, "trace: 5; expected a trace, a file, a name"),
        ({"policy": 5}, "policy: 5; expected a policy or the name"),
        ({"settings": ["window=5"]}, "settings: .'window=5'.; expected a mapping"),
        ({"policy": "window", "solver": 5}, "solver: 5; expected a solver or the name"),
        ({"problem": 5}, "problem: 5; expected a problem, a snapshot"),
        ({"problem": PROBLEM, "solver": CpSat}, r"the class CpSat, not CpSat\(\); expected a so"),
        ({"problem": PROBLEM, "budget": "5"}, r"budget: '5'; expected optsched\.Budget"),
        ({"problem": PROBLEM, "seed": "a"}, "seed: 'a'; expected an integer"),
        ({"problems": 5}, "problems: 5; expected a problem, a snapshot"),
        ({"problems": [PROBLEM, None]}, "problems: None; expected a problem"),
        ({"problems": PROBLEM, "solvers": 5}, "solver: 5; expected a solver or"),
        ({"problems": PROBLEM, "budget": "5"}, r"budget: '5'; expected optsched\.Budget"),
        ({"problems": PROBLEM, "seed": "a"}, "seed: 'a'; expected an integer"),
    ],
)
def test_simulate_solve_and_compare_say_what_they_expected(options, words, make_trace):
    functions = {"problem": optsched.solve, "problems": optsched.compare}
    function = functions.get(next(iter(options)), optsched.simulate)
    if function is optsched.simulate:
        usual = {"trace": make_trace((0, 10, 10, 1)), "machine": "nodes:4", "policy": "easy"}
        options = usual | options
    with pytest.raises(optsched.InputError, match=words):
        function(**options)
