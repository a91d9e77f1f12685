"""The public names, and that they are found where the package says."""

from __future__ import annotations

import subprocess
import sys

import pytest

import optsched
from optsched import registry
from optsched.models.snapshot import Snapshot
from optsched.solvers.cp_sat import CpSat

PROBLEM = optsched.models.WindowMKP([6, 4, 3, 1, 2], [3, 6, 6])


def test_every_public_name_is_there():
    for name in optsched.__all__:
        assert getattr(optsched, name) is not None
    kinds = [registry.models[name] for name in registry.models]
    assert {kind.__name__ for kind in kinds} <= set(dir(optsched.models))
    assert all(getattr(optsched.models, kind.__name__) is kind for kind in kinds)
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchModel'"):
        optsched.models.NoSuchModel  # noqa: B018
    assert set(optsched.__all__) <= set(dir(optsched))


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, optsched; print('numpy' in sys.modules, 'pandas' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False False\n"


def test_notebooks_show_small_tables(make_trace):
    assert "optimal" in optsched.solve(PROBLEM)._repr_html_()
    run = optsched.simulate(make_trace((0, 10, 10, 1)), "nodes:4", "easy")
    assert "mean wait" in run._repr_html_()


def test_what_is_large_is_shown_in_one_line(make_trace):
    run = optsched.simulate(make_trace((0, 10, 10, 1)), "nodes:4", "easy", journal=True)
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
        ({"jobs": 5.5}, "jobs: 5.5; expected the first and the last job"),
        ({"jobs": (1, 2.5)}, r"jobs: \(1, 2.5\); expected the first and the last job"),
        ({"trace": 5}, "trace: 5; expected a trace, a file, a name"),
        ({"policy": 5}, "policy: 5; expected a policy or the name"),
        ({"settings": ["window=5"]}, "settings: .'window=5'.; expected a mapping"),
        ({"policy": "window", "solver": 5}, "solver: 5; expected a solver or the name"),
    ],
)
def test_simulate_says_what_it_expected(options, words, make_trace):
    with pytest.raises(optsched.InputError, match=words):
        optsched.simulate(
            **{"trace": make_trace((0, 10, 10, 1)), "machine": "nodes:4", "policy": "easy"}
            | options
        )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: optsched.solve(5), "problem: 5; expected a problem, a snapshot"),
        (
            lambda: optsched.solve(PROBLEM, CpSat),
            r"solver: the class CpSat, not CpSat\(\); expected a solver or",
        ),
        (lambda: optsched.solve(PROBLEM, budget="5"), "budget: '5'; expected optsched.Budget"),
        (lambda: optsched.solve(PROBLEM, seed="a"), "seed: 'a'; expected an integer"),
        (lambda: optsched.compare(5), "problems: 5; expected a problem, a snapshot"),
        (lambda: optsched.compare([PROBLEM, None]), "problems: None; expected a problem"),
        (lambda: optsched.compare(PROBLEM, 5), "solver: 5; expected a solver or"),
        (lambda: optsched.compare(PROBLEM, budget="5"), "budget: '5'; expected optsched.Budget"),
        (lambda: optsched.compare(PROBLEM, seed="a"), "seed: 'a'; expected an integer"),
    ],
)
def test_solve_and_compare_say_what_they_expected(call, words):
    with pytest.raises(optsched.InputError, match=words):
        call()
