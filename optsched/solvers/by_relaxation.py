"""Answers to problems with rules by solvers that know the problem without them, its relaxation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optsched.solvers.anytime import Progress, StoppedError
from optsched.solvers.result import Budget, Result
from optsched.solvers.solver import OnIncumbent

SHARE = 0.5
"""Share of the budget of an exact solver that goes to the relaxation."""


def solve_by_relaxation(
    ask: Callable[..., Result],
    problem: Any,
    *,
    exact: bool,
    budget: Budget,
    hint: Any = None,
    seed: int = 0,
    on_incumbent: OnIncumbent | None = None,
) -> Result:
    """Solve a problem by a call of a solver that knows its relaxation.

    The part of the relaxation's answer that breaks no rule is a first answer. If the solver is
    exact, CP-SAT goes on from there, and the bound of the relaxation holds.
    """
    from optsched.solvers.cp_sat import CpSat

    progress = Progress(budget, on_incumbent, problem.sense)
    part = Budget(*(limit and limit * SHARE for limit in (budget.seconds, budget.work)))
    first = ask(problem.relaxation, budget=part if exact else budget, hint=hint, seed=seed)
    if first.solution is None or not first.verified:
        return first
    found = problem.restricted(first.solution)
    if hint is not None:
        found = max(hint, found, key=problem.objective)
    progress.offer(found, problem.objective(found), problem.bound(first.bound))
    progress.work, limit = first.work, first.limit
    if exact and not progress.is_proven:
        limit = None
        try:
            progress.go_on(CpSat(), problem, seed)
        except StoppedError as stopped:
            limit = stopped.limit
    return progress.result("", limit, seed)
