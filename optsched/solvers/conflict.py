"""Requirements in conflict: why a problem has no solution."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optsched.errors import InputError
from optsched.models.export import cp_sat_model
from optsched.models.problem import Problem
from optsched.models.program import Program
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import as_snapshot
from optsched.solvers.result import Budget, Conflict, Result
from optsched.solvers.solver_call import refuted, violations_of

SECONDS = 10.0
"""Default time limit in seconds."""

MOST_ENTRIES = 2_000_000
"""Entries of the largest program that is looked at."""


def conflict(
    problem: Problem[Any] | Snapshot | str | Path, *, seconds: float = SECONDS
) -> Conflict | None:
    """Return requirements that no solution meets together, of which each one is needed for that.

    Other sets may be in conflict as well, and smaller ones.

    Parameters
    ----------
    problem : Problem, Snapshot or path
        The problem, a snapshot, or its file or name.
    seconds : float
        Time limit, in seconds.

    Returns
    -------
    Conflict or None
        None if there is a solution.

    Raises
    ------
    InputError
        If time does not suffice to find out whether there is a solution, or the program is too
        large, or the model has none.

    References
    ----------
    U. Junker, "QuickXplain: preferred explanations and relaxations for over-constrained problems",
    AAAI 2004.
    """
    found = conflict_or_solution(as_snapshot(problem).problem, seconds)
    return found if isinstance(found, Conflict) else None


def explained(problem: Problem[Any], result: Result, budget: Budget) -> Result:
    """Return an infeasible result with its conflict, or refuted by a solution.

    The conflict is sought within the time limit of a budget, and at most 10 s.
    """
    seconds = SECONDS if budget.seconds is None else min(SECONDS, budget.seconds)
    try:
        found = conflict_or_solution(problem, seconds)
    except InputError as error:
        log = logging.getLogger("optsched")
        log.info("%s %s: not explained: %s", problem.name, problem.size, error)
        return result
    if isinstance(found, Conflict):
        return replace(result, conflict=found)
    if violations_of(problem, found):
        return result
    claim = f"{result.solver} claims that there is no solution; cp-sat has a verified one"
    return refuted(result, claim)


def conflict_or_solution(problem: Problem[Any], seconds: float) -> Any:
    """Return requirements in conflict, or a solution if there is one; see `conflict`."""
    formulation = problem.formulate()
    found = conflict_or_vector(formulation.program, seconds)
    return found if isinstance(found, Conflict) else formulation.decode(found)


def conflict_or_vector(program: Program, seconds: float) -> Conflict | NDArray[np.int64]:
    """Return rows of a program in conflict, or a vector that it admits; see `conflict`."""
    end = time.monotonic() + seconds
    if len(program.values) > MOST_ENTRIES:
        raise InputError(f"a program of more than {MOST_ENTRIES:,} entries is not looked at")
    if (program.lower > program.upper).any():
        return Conflict((), (), True)
    program = replace(program, objective=np.zeros_like(program.objective))
    family: Callable[[int], str] = getattr(program.row_name, "family", program.row_name)
    families = [family(row) for row in range(program.num_rows)]
    trials = _Trials(program, families, end)
    if trials.possible(tuple(dict.fromkeys(families))):
        if trials.unknown:
            raise InputError("time does not suffice to find out whether there is a solution")
        return trials.found
    inside = {*trials.least()}
    names = [program.row_name(r) if of in inside else "" for r, of in enumerate(families)]
    trials = _Trials(program, names, end, trials.unknown)
    least = trials.least()
    of_row = dict(zip(names, families))
    return Conflict(least, tuple(of_row[name] for name in least), not trials.unknown)


class _Trials:
    """Solves of parts of a program, of which each group of rows is in or out.

    Rows with an empty name are out. `unknown` counts the trials that ended at the time limit, and
    `found` is the last vector.
    """

    def __init__(
        self, program: Program, groups: Sequence[str], end: float, unknown: int = 0
    ) -> None:
        self._program, self._groups, self._end = program, np.array(groups, dtype=object), end
        self._names = tuple(name for name in dict.fromkeys(groups) if name)
        self.unknown = unknown
        self.found: NDArray[np.int64] = program.lower

    def least(self) -> tuple[str, ...]:
        """Return a part of the names of which each is needed for the conflict, in their order."""
        needed = {*self._needed((), (), self._core())}
        return tuple(name for name in self._names if name in needed)

    def _needed(
        self, given: tuple[str, ...], added: tuple[str, ...], names: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return names that are in conflict with those `given`, of which `added` were the last."""
        if added and not self.possible(given):
            return ()
        if len(names) <= 1:
            return names
        first, second = names[: len(names) // 2], names[len(names) // 2 :]
        of_second = self._needed(given + first, first, second)
        return self._needed(given + of_second, of_second, first) + of_second

    def possible(self, names: Sequence[str]) -> bool:
        """Return whether groups can be met together, as far as is known."""
        from ortools.sat.python import cp_model

        chosen = np.isin(self._groups, np.array(names, dtype=object))
        solver = self._solver()
        status = solver.solve(cp_sat_model(_rows_of(self._program, chosen)))
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            self.found = np.array(solver.response_proto.solution, dtype=np.int64)
        elif status != cp_model.INFEASIBLE:
            self.unknown += 1
        return bool(status != cp_model.INFEASIBLE)

    def _core(self) -> tuple[str, ...]:
        """Return the names that CP-SAT needs to show the conflict quickly, or all of them."""
        from ortools.sat.python import cp_model

        kept = self._groups != ""
        model = cp_sat_model(_rows_of(self._program, kept))
        literals = {name: model.new_bool_var(name) for name in self._names}
        for constraint, name in zip(model.proto.constraints, self._groups[kept]):
            constraint.enforcement_literal.append(literals[name].index)
        model.add_assumptions(list(literals.values()))
        solver = self._solver()
        solver.parameters.max_deterministic_time = 0.2
        if solver.solve(model) != cp_model.INFEASIBLE:
            return self._names
        core = {*solver.sufficient_assumptions_for_infeasibility()}
        return tuple(name for name in self._names if literals[name].index in core)

    def _solver(self) -> Any:
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.catch_sigint_signal = False
        solver.parameters.max_time_in_seconds = max(0.01, self._end - time.monotonic())
        return solver


def _rows_of(program: Program, chosen: NDArray[np.bool_]) -> Program:
    counts = np.diff(program.row_start)
    entries = np.repeat(chosen, counts)
    return replace(
        program,
        row_start=np.concatenate(([0], np.cumsum(counts[chosen]))),
        columns=program.columns[entries],
        values=program.values[entries],
        row_lower=program.row_lower[chosen],
        row_upper=program.row_upper[chosen],
    )
