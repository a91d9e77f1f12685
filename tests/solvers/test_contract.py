"""Every registered solver on problems of every model that it answers: new ones are tested too."""

from functools import cache

import numpy as np
import pytest

from optsched import Budget, registry
from optsched.content import bundled
from optsched.models import IntegerProgram, WindowMKP
from optsched.models.snapshot_file import read_snapshot, snapshot_files
from optsched.solvers.cp_sat import CpSat
from optsched.testing import check_solver

SOON_SOLVED = 1000
"""Reference snapshots in files of at most as many bytes are solved to the end."""

OPTIMUM = 741
"""Of `_hard`; proven by all four generic solvers."""


def _hard() -> WindowMKP:
    """Sixteen jobs in three slots that every generic solver leaves open at the root."""
    rng = np.random.default_rng(4)
    weights = rng.integers(50, 100, 16)
    capacities = int(weights.sum() / 6) + rng.integers(0, 20, 3)
    return WindowMKP(weights, capacities, weights + rng.integers(0, 10, 16))


@cache
def _examples() -> dict[str, tuple]:
    """Return problems by name, with their optima."""
    examples = {
        "odd-window": (WindowMKP([5, 5, 3, 9, 1, 2], [0, 4, 8], [5, 5, 0, 90, 1, 7]), None),
        "no-jobs": (WindowMKP([], [3]), 0),
        "no-slots": (WindowMKP([3], []), 0),
        "all-too-large": (WindowMKP([7, 8], [3, 6]), 0),
    }
    folders = [bundled("models") / model for model in registry.models]
    for file in [file for folder in folders for file in snapshot_files(folder)]:
        if file.stat().st_size > SOON_SOLVED:
            continue
        snapshot = read_snapshot(file)
        best, bound = (snapshot.known.get(name) for name in ("objective", "bound"))
        if snapshot.known.get("infeasible") or (best is not None and best == bound):
            examples[f"{file.parent.name}-{file.stem}"] = (snapshot.problem, best)
    return examples


WHOLE_NODES_ALONE = ("node-placement-shared-devices", "node-placement-worked-example")
"""Examples that solvers of whole nodes refuse, as their own tests show."""

PROGRAMS = {n: p for n, (p, _) in _examples().items() if isinstance(p, IntegerProgram)}
REFUSED = dict.fromkeys(("switch-groups", "leaf-best-fit"), WHOLE_NODES_ALONE)
REFUSED |= {"bin-search": tuple(name for name, p in PROGRAMS.items() if p.packing is None)}


def _long(solver: str, example: str) -> bool:
    """Return whether a generic solver has other examples of the model, or is slow on this one."""
    if registry.solvers[solver].models is not None:
        return False
    model = _examples()[example][0].name
    alike = [name for name, (problem, _) in _examples().items() if problem.name == model]
    slow = example == "data-placement-waiting-is-worse" and solver != "cp-sat"
    return slow or example not in alike[:2]


CASES = [
    pytest.param(
        *(solver, example),
        id=f"{solver}-{example}",
        marks=pytest.mark.long if _long(solver, example) else (),
    )
    for solver in registry.solvers
    for example, (problem, _) in _examples().items()
    if registry.solvers[solver].supports(problem.name)
    if example not in REFUSED.get(solver, ())
]


BUDGETS = {"depth-first": Budget(work=20_000)}
"""Budgets of solvers that are meant for smaller problems than some of the examples."""


@pytest.mark.parametrize(("solver", "example"), CASES)
def test_every_solver_keeps_the_contract(solver, example, solver_named):
    problem, optimum = _examples()[example]
    check_solver(solver_named(solver), problem, optimum=optimum, budget=BUDGETS.get(solver))


FITTING = [name for name in registry.solvers if registry.solvers[name].supports(_hard().name)]


@pytest.mark.parametrize("name", FITTING)
def test_the_contract_holds_when_the_budget_runs_out(name, solver_named):
    solver = solver_named(name)
    budget = Budget(work=0.01 * solver.default_work)
    check_solver(solver, _hard(), optimum=OPTIMUM, budget=budget)


def test_several_workers_answer_alike_under_a_work_budget():
    check_solver(CpSat(workers=2), _hard(), optimum=OPTIMUM, budget=Budget(work=0.02))
