"""`optsched.extend` has all that the pages for authors of plug-ins need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from optsched import extend, registry
from optsched.machines.machine import Machine
from optsched.models.problem import Problem
from optsched.simulator.execution import ExecutionModel
from optsched.simulator.policy import Policy
from optsched.solvers.solver import Solver
from optsched.workloads.workload_model import WorkloadModel

HOW_TO = Path(__file__).resolve().parents[1] / "docs" / "how-to"
PAGES = (
    *("add-a-policy", "add-a-solver", "add-a-workload-model", "add-an-execution-model"),
    *("add-a-model", "add-a-metric", "add-a-picture"),
)


def test_every_registry_and_every_contract_is_there():
    contracts = (Policy, Solver, Problem, Machine, ExecutionModel, WorkloadModel)
    assert all(getattr(extend, contract.__name__) is contract for contract in contracts)
    kinds = {kind for kind in vars(extend).values() if isinstance(kind, registry.Registry)}
    assert kinds == set(registry.all_kinds())


@pytest.mark.parametrize("page", PAGES)
def test_a_page_imports_nothing_else(page):
    text = (HOW_TO / f"{page}.md").read_text()
    imported = set(re.findall(r"^(?:from|import) (optsched[\w.]*)", text, re.MULTILINE))
    assert "optsched.extend" in imported
    allowed = {"optsched", "optsched.extend", "optsched.models", "optsched.testing"}
    assert imported - allowed - {"optsched.testing.contract"} == set()
