"""The one import for authors of plug-ins.

Contracts, the data that passes through them, actions, and the registries. Names stay here when
modules are split or renamed. `optsched.testing` checks plug-ins.
"""

from __future__ import annotations

from optsched.compiled import kernel as kernel
from optsched.errors import InputError as InputError
from optsched.errors import MissingDependencyError as MissingDependencyError
from optsched.fields import LARGEST_FIELD as LARGEST_FIELD
from optsched.fields import Integer as Integer
from optsched.fields import Kind as Kind
from optsched.machines.machine import Allocation as Allocation
from optsched.machines.machine import Machine as Machine
from optsched.metrics.measure import Group as Group
from optsched.metrics.measure import Measure as Measure
from optsched.metrics.measure import Metric as Metric
from optsched.models.fields import Amounts as Amounts
from optsched.models.fields import FieldChecks as FieldChecks
from optsched.models.fields import Integers as Integers
from optsched.models.fields import Labels as Labels
from optsched.models.fields import Texts as Texts
from optsched.models.problem import Problem as Problem
from optsched.models.problem import Violation as Violation
from optsched.models.program import UNBOUNDED as UNBOUNDED
from optsched.models.program import Formulation as Formulation
from optsched.models.program import Program as Program
from optsched.models.program import ProgramBuilder as ProgramBuilder
from optsched.models.program import formulations as formulations
from optsched.models.schema import declared as declared
from optsched.models.schema import field as field
from optsched.models.snapshot import Snapshot as Snapshot
from optsched.registry import executions as executions
from optsched.registry import machines as machines
from optsched.registry import metrics as metrics
from optsched.registry import models as models
from optsched.registry import pictures as pictures
from optsched.registry import policies as policies
from optsched.registry import readers as readers
from optsched.registry import solvers as solvers
from optsched.registry import workloads as workloads
from optsched.report import style as style
from optsched.report.page import duration as duration
from optsched.report.pictures import RunFacts as RunFacts
from optsched.report.pictures import RunPicture as RunPicture
from optsched.schedule import Schedule as Schedule
from optsched.schedule import State as State
from optsched.simulator._core import DONE as DONE
from optsched.simulator._core import N_ENDED as N_ENDED
from optsched.simulator._core import N_SUBMITTED as N_SUBMITTED
from optsched.simulator._core import OPEN as OPEN
from optsched.simulator._core import START as START
from optsched.simulator._core import tell as tell
from optsched.simulator.compiled_decisions import CompiledDecisions as CompiledDecisions
from optsched.simulator.execution import ExecutionModel as ExecutionModel
from optsched.simulator.execution import ExecutionReport as ExecutionReport
from optsched.simulator.policy import Action as Action
from optsched.simulator.policy import Answers as Answers
from optsched.simulator.policy import Migrate as Migrate
from optsched.simulator.policy import ModelPolicy as ModelPolicy
from optsched.simulator.policy import Move as Move
from optsched.simulator.policy import Policy as Policy
from optsched.simulator.policy import Share as Share
from optsched.simulator.policy import Start as Start
from optsched.simulator.policy import Wake as Wake
from optsched.simulator.system import System as System
from optsched.solvers.anytime import AnytimeSolver as AnytimeSolver
from optsched.solvers.anytime import Progress as Progress
from optsched.solvers.anytime import StoppedError as StoppedError
from optsched.solvers.generic import GenericSolver as GenericSolver
from optsched.solvers.generic import Outcome as Outcome
from optsched.solvers.generic import Search as Search
from optsched.solvers.result import Budget as Budget
from optsched.solvers.result import Incumbent as Incumbent
from optsched.solvers.result import Limit as Limit
from optsched.solvers.result import Result as Result
from optsched.solvers.result import Status as Status
from optsched.solvers.solver import OnIncumbent as OnIncumbent
from optsched.solvers.solver import Solver as Solver
from optsched.traces.trace import Trace as Trace
from optsched.workloads.workload_model import Jobs as Jobs
from optsched.workloads.workload_model import SpecTable as SpecTable
from optsched.workloads.workload_model import Stream as Stream
from optsched.workloads.workload_model import WorkloadModel as WorkloadModel
