"""Gurobi, for every problem with a formulation."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from optsched.errors import InputError
from optsched.models.problem import Problem
from optsched.models.program import UNBOUNDED, Program
from optsched.registry import solvers
from optsched.solvers import interruption
from optsched.solvers.generic import GenericSolver, Outcome, Post, Search, own_log, run_in_thread
from optsched.solvers.result import Limit, Status


@solvers.register("gurobi")
@dataclass(frozen=True)
class Gurobi(GenericSolver):
    """Branch and cut by Gurobi, by default in one thread.

    Without a licence, gurobipy solves programs of at most 2,000 variables and rows, and refuses
    larger ones.
    """

    seconds_per_solve = 2e-3
    seconds_per_work = 3e-3
    default_work = 300
    requires = "gurobipy"
    threads_by = "Threads"
    set_by: ClassVar[Mapping[str, str]] = {
        "TimeLimit": "a time limit",
        "NodeLimit": "a work limit",
        "Seed": "a seed",
        "MIPGap": "relative_gap",
        "MIPGapAbs": "optsched: objectives are integers",
        "OutputFlag": "-v",
        "LogToConsole": "-v",
    }

    def check_native(self) -> None:
        """Check the names and values of native options."""
        import gurobipy

        with _environment() as environment:
            known = [name for name in dir(gurobipy.GRB.Param) if not name.startswith("_")]
            self._set_native(known, environment.setParam, "Gurobi")

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import Gurobi, and find its licence."""
        with _environment():
            pass

    def run(self, search: Search) -> Outcome:
        """Search with Gurobi."""
        import gurobipy

        try:
            with _environment() as environment, gurobipy.Model(env=environment) as model:
                return self._run_in(model, search)
        except gurobipy.GurobiError as error:
            if error.errno == gurobipy.GRB.ERROR_SIZE_LIMIT_EXCEEDED:
                raise InputError(f"Gurobi: {error}") from None
            return Outcome(Status.ERROR, message=f"Gurobi: {error}")

    def _run_in(self, model: Any, search: Search) -> Outcome:
        import gurobipy

        codes, say = gurobipy.GRB, own_log(self.name)
        variables = _state(model, search.program)
        parameters = {
            "Threads": 1,
            "IntFeasTol": 1e-6,  # a tenth of the default
            **self.native,
            "Seed": search.seed % 2_000_000_000,
            "MIPGap": self.relative_gap,
            "MIPGapAbs": 0.0,
            "NodeLimit": search.node_limit(),
            "TimeLimit": search.seconds_left(),
            "OutputFlag": int(say is not None),
            "LogToConsole": 0,
        }
        for name, value in parameters.items():
            if value is not None:
                model.setParam(name, value)
        if search.start is not None:
            variables.Start = search.start.astype(float)

        def solve(post: Post) -> None:
            def callback(_model: Any, where: int) -> None:
                if where == codes.Callback.MESSAGE and say is not None:
                    say(model.cbGet(codes.Callback.MSG_STRING))
                elif where == codes.Callback.MIPSOL:
                    # the reported objective is that of a point within the tolerance
                    value = search.value_near(model.cbGetSolution(variables))
                    bound = model.cbGet(codes.Callback.MIPSOL_OBJBND)
                    post(value, bound)
                elif where == codes.Callback.MIP:
                    post(None, model.cbGet(codes.Callback.MIP_OBJBND))

            model.optimize(callback)

        run_in_thread(solve, model.terminate, search)
        if model.Status == codes.INTERRUPTED and not interruption.requested():
            signal.raise_signal(signal.SIGINT)  # Ctrl-C, which Gurobi has taken from Python
        work = int(model.NodeCount)
        limits = {
            codes.TIME_LIMIT: Limit.TIME,
            codes.NODE_LIMIT: Limit.WORK,
            codes.INTERRUPTED: Limit.INTERRUPT,
        }
        match model.Status:
            case codes.OPTIMAL:
                claim = Status.OPTIMAL
            case status if status in limits:
                claim = Status.FEASIBLE
            case codes.INFEASIBLE:
                return Outcome(Status.INFEASIBLE, work=work)
            case codes.UNBOUNDED | codes.INF_OR_UNBD:
                return search.unbounded_or_infeasible(work)
            case status:
                return Outcome(Status.ERROR, work=work, message=f"Gurobi: status {status}")
        x = np.rint(variables.X).astype(np.int64) if model.SolCount else None
        return Outcome(claim, x, model.ObjBound, limits.get(model.Status), work)


def _environment() -> Any:
    import gurobipy

    try:
        return gurobipy.Env(params={"OutputFlag": 0})
    except gurobipy.GurobiError as error:
        raise InputError(f"Gurobi: {error}") from None


def _state(model: Any, program: Program) -> Any:
    """State a program in a model; return its variables."""
    from gurobipy import GRB
    from scipy.sparse import csr_matrix

    variables = model.addMVar(
        program.num_variables,
        lb=np.where(program.lower == -UNBOUNDED, -GRB.INFINITY, program.lower),
        ub=np.where(program.upper == UNBOUNDED, GRB.INFINITY, program.upper),
        obj=program.objective.astype(float),
        vtype=GRB.INTEGER,
    )
    model.ObjCon = program.offset
    model.ModelSense = GRB.MAXIMIZE if program.sense == "max" else GRB.MINIMIZE
    parts = program.values.astype(float), program.columns, program.row_start
    matrix = csr_matrix(parts, shape=(program.num_rows, program.num_variables))
    is_equation = program.row_lower == program.row_upper
    for sense, rows, sides in (
        ("=", is_equation, program.row_lower),
        ("<", (program.row_upper != UNBOUNDED) & ~is_equation, program.row_upper),
        (">", (program.row_lower != -UNBOUNDED) & ~is_equation, program.row_lower),
    ):
        if rows.any():
            model.addMConstr(matrix[rows], variables, sense, sides[rows].astype(float))
    return variables
