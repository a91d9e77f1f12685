"""OR-Tools CP-SAT, for every problem with a formulation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.errors import InputError
from optsched.models.export import cp_sat_model
from optsched.models.problem import Problem
from optsched.registry import solvers
from optsched.solvers.generic import (
    LONGEST_TIME,
    GenericSolver,
    Outcome,
    Post,
    Search,
    run_in_thread,
)
from optsched.solvers.result import Status

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


MOST_WORKERS = 1_000
"""Largest number of threads, well beyond the cores of any machine."""


@solvers.register("cp-sat")
@dataclass(frozen=True)
class CpSat(GenericSolver):
    """Lazy clause generation with linear relaxations, by OR-Tools.

    Parameters
    ----------
    relative_gap : float
        Relative gap at which the search stops.
    workers : int
        Number of search threads, each with a different strategy. With several threads, results are
        reproducible only under a work limit, under which the threads take turns.
    first_solution : bool
        Stop at the first solution.
    """

    workers: int = 1
    first_solution: bool = False

    floating_point = False
    work_unit = "deterministic seconds"
    seconds_per_solve = 1e-3
    seconds_per_work = 1.4
    default_work = 0.5
    requires = "ortools"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.workers <= MOST_WORKERS:
            expected = f"expected at least 1 and at most {MOST_WORKERS:,}"
            raise InputError(f"workers: {self.workers}; {expected}")

    @property
    def threads(self) -> int:
        """Number of workers, each of which has a thread even if workers take turns."""
        return self.workers

    def prepare(self, problem: Problem[Any] | None = None) -> None:
        """Import OR-Tools."""
        _recorder()

    def run(self, search: Search) -> Outcome:
        """Search with CP-SAT."""
        return self.search_model(cp_sat_model(search.program), search)

    def search_model(self, model: CpModel, search: Search, hinted: int | None = None) -> Outcome:
        """Search a model with the variables and the objective of the program of `search`.

        The constraints of the model may go beyond the rows of the program. Hinted are the
        first `hinted` variables, all by default.
        """
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = self.workers
        parameters.random_seed = search.seed
        parameters.relative_gap_limit = self.relative_gap
        parameters.stop_after_first_solution = self.first_solution
        # a rule of presolve sums in 32 bits, and cuts optima off beyond that (OR-Tools 5293)
        parameters.presolve_inclusion_work_limit = 0
        # CP-SAT's handler of Ctrl-C would replace Python's for good
        parameters.catch_sigint_signal = False
        if search.work is not None:
            parameters.max_deterministic_time = min(search.work, LONGEST_TIME)
            parameters.interleave_search = self.workers > 1
            parameters.interleave_batch_size = self.workers
        seconds = search.seconds_left()
        if seconds is not None:
            parameters.max_time_in_seconds = seconds
        if search.start is not None:
            start = search.start[:hinted].tolist()
            hint = model.proto.solution_hint
            hint.vars.extend(range(len(start)))
            hint.values.extend(start)

        bounds: list[float] = []

        def solve(post: Post) -> None:
            def note(bound: float) -> None:
                bounds.append(bound)
                post(None, bound)

            solver.best_bound_callback = note
            solver.solve(model, _recorder()(post))

        run_in_thread(solve, solver.stop_search, search)
        response = solver.response_proto
        # a sum in no fixed order: equal solves may differ in its last digits
        work = round(response.deterministic_time, 12)
        match response.status:
            case cp_model.INFEASIBLE:
                return Outcome(Status.INFEASIBLE, work=work)
            case cp_model.MODEL_INVALID:
                return Outcome(Status.ERROR, message=f"CP-SAT: {model.validate().strip()}")
            case cp_model.OPTIMAL:
                claim, limit = Status.OPTIMAL, None
            case cp_model.FEASIBLE if self.first_solution:
                claim, limit = Status.FEASIBLE, None
            case _:
                claim, limit = Status.FEASIBLE, search.nearer_limit(work)
        if not len(response.solution):
            # without a solution the bound of the response is 0 even if no bound is known
            return Outcome(claim, None, bounds[-1] if bounds else None, limit, work)
        x = np.array(list(response.solution), dtype=np.int64)
        return Outcome(claim, x, response.best_objective_bound, limit, work)


@cache
def _recorder() -> Any:
    from ortools.sat.python import cp_model

    class Recorder(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        """Poster of the solutions that CP-SAT finds."""

        def __init__(self, post: Post) -> None:
            super().__init__()
            self._post = post

        def on_solution_callback(self) -> None:
            self._post(self.objective_value, self.best_objective_bound)

    return Recorder
