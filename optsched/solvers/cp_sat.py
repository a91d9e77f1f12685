"""OR-Tools CP-SAT, for every problem with a formulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.export import cp_sat_model
from optsched.models.program import UNBOUNDED, Program
from optsched.registry import solvers
from optsched.solvers.generic import (
    LONGEST_TIME,
    GenericSolver,
    Outcome,
    Post,
    Search,
    own_log,
    run_in_thread,
)
from optsched.solvers.result import Status

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


MOST_WORKERS = 1_000
"""Largest number of threads, well beyond the cores of any machine."""

UNKNOWN = 2.0**62
"""Size from which a bound of CP-SAT stands for none."""


@solvers.register("cp-sat")
@dataclass(frozen=True)
class CpSat(GenericSolver):
    """Lazy clause generation with linear relaxations, by OR-Tools.

    `relative_gap`: relative gap at which the search stops.
    """

    # Number of search threads, each with a different strategy. With several threads, results
    # are reproducible only under a work limit, under which the threads take turns.
    workers: int = 1
    first_solution: bool = False  # stop at the first solution

    floating_point = False
    work_unit = "deterministic seconds"
    seconds_per_solve = 1e-3
    seconds_per_work = 1.4
    default_work = 0.5
    requires = "ortools"
    _imports = ("ortools.sat.python.cp_model",)
    set_by: ClassVar[Mapping[str, str]] = {
        "max_time_in_seconds": "a time limit",
        "max_deterministic_time": "a work limit",
        "random_seed": "a seed",
        "relative_gap_limit": "relative_gap",
        "num_workers": "workers",
        "num_search_workers": "workers",
        "stop_after_first_solution": "first_solution",
        "log_search_progress": "-v",
        "log_to_stdout": "-v",
        "absolute_gap_limit": "optsched: a gap is measured in floating point",
        "presolve_inclusion_work_limit": "optsched: with others, presolve cuts optima off",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.workers <= MOST_WORKERS:
            expected = f"expected at least 1 and at most {MOST_WORKERS:,}"
            raise InputError(f"workers: {self.workers}; {expected}")

    @property
    def threads(self) -> int:
        """Number of workers, each of which has a thread even if workers take turns."""
        return self.workers

    def check_native(self) -> None:
        """Check the names and values of native options."""
        from ortools.sat.python import cp_model

        self._set_in(cp_model.CpSolver().parameters)

    def _set_in(self, parameters: Any) -> None:
        """Set native options, values of enumerations by their names."""

        def put(name: str, value: object) -> None:
            before = getattr(parameters, name)
            if isinstance(value, list):
                before.extend(value)
            elif isinstance(value, str) and not isinstance(before, str):
                setattr(parameters, name, getattr(type(before), value))
            else:
                setattr(parameters, name, value)

        known = [one.removeprefix("clear_") for one in dir(parameters) if one.startswith("clear_")]
        self._set_native(known, put, "CP-SAT")

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
        self._set_in(parameters)
        parameters.num_workers = self.workers
        parameters.random_seed = search.seed
        parameters.relative_gap_limit = self.relative_gap
        # a gap is measured in floating point, and would end searches of large numbers early
        parameters.absolute_gap_limit = 0
        parameters.stop_after_first_solution = self.first_solution
        say = own_log(self.name)
        if say is not None:
            parameters.log_search_progress, parameters.log_to_stdout = True, False
            solver.log_callback = say
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

        known = False  # whether CP-SAT has a bound
        exact = _is_exact(search.program)

        def solve(post: Post) -> None:
            def note(bound: float) -> None:
                nonlocal known
                known = True
                if exact and abs(bound) < UNKNOWN:
                    post(None, round(bound))

            solver.best_bound_callback = note
            solver.solve(model, _recorder()(post, search.program))

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
        bound = _bound(response, search.program)
        x = _vector(response)
        # without a solution the bound of the response is 0 even if no bound is known
        return Outcome(
            claim, x if len(x) else None, bound if known or len(x) else None, limit, work
        )


def _vector(response: Any) -> NDArray[np.int64]:
    return np.array(list(response.solution), dtype=np.int64)


def _bound(response: Any, program: Program) -> int | None:
    """Return the bound of a response, computed from its integer part.

    Presolve keeps the constant term of the objective twice. The one in floating point loses units
    where it passes through numbers of 2^53 and more, and shifts objectives and bounds.
    """
    if abs(response.best_objective_bound) >= UNKNOWN:
        return None
    bound = int(response.inner_objective_lower_bound)
    return (-bound if program.sense == "max" else bound) + program.offset


def _is_exact(program: Program) -> bool:
    """Return whether sums of presolve, which multiplies rows by costs, are right to half a unit."""
    parts = np.concatenate((program.values, program.row_lower, program.row_upper))
    sizes = np.abs(parts).astype(float)
    largest = sizes[sizes < UNBOUNDED].max(initial=1)
    return bool(program.terms.sum() * largest < 2.0**48)  # some of the sums are divided


@cache
def _recorder() -> Any:
    from ortools.sat.python import cp_model

    class Recorder(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        """Poster of the solutions that CP-SAT finds."""

        def __init__(self, post: Post, program: Program) -> None:
            super().__init__()
            self._post, self._program = post, program

        def on_solution_callback(self) -> None:
            response, program = self.response_proto, self._program
            self._post(program.value(_vector(response)), _bound(response, program))

    return Recorder
