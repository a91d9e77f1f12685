"""The one import for authors of plug-ins.

Contracts, the data that passes through them, actions, and the registries. Names stay here when
modules are split or renamed. `optsched.testing` checks plug-ins.
"""

from __future__ import annotations

from optsched.errors import InputError, MissingDependencyError
from optsched.machines.machine import Allocation, Machine
from optsched.models.problem import Problem, Violation
from optsched.models.program import UNBOUNDED, Program
from optsched.models.snapshot import Snapshot
from optsched.registry import (
    executions,
    machines,
    models,
    policies,
    readers,
    solvers,
    studies,
    workloads,
)
from optsched.simulator.actions import Action, Migrate, Move, Share, Start, Wake
from optsched.simulator.execution import ExecutionModel, ExecutionReport
from optsched.simulator.policy import Answers, Policy
from optsched.simulator.schedule import Schedule, State
from optsched.simulator.system import System
from optsched.solvers.generic import GenericSolver, Outcome, Search
from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Incumbent, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver
from optsched.traces.trace import Trace
from optsched.workloads.spec_table import SpecTable
from optsched.workloads.streams import Stream
from optsched.workloads.workload_model import Jobs, WorkloadModel

__all__ = [
    "UNBOUNDED",
    "Action",
    "Allocation",
    "Answers",
    "Budget",
    "ExecutionModel",
    "ExecutionReport",
    "GenericSolver",
    "Incumbent",
    "InputError",
    "Jobs",
    "Limit",
    "Machine",
    "Migrate",
    "MissingDependencyError",
    "Move",
    "OnIncumbent",
    "Outcome",
    "Policy",
    "Problem",
    "Program",
    "Progress",
    "Result",
    "Schedule",
    "Search",
    "Share",
    "Snapshot",
    "Solver",
    "SpecTable",
    "Start",
    "State",
    "Status",
    "Stream",
    "System",
    "Trace",
    "Violation",
    "Wake",
    "WorkloadModel",
    "executions",
    "machines",
    "models",
    "policies",
    "readers",
    "solvers",
    "studies",
    "workloads",
]
