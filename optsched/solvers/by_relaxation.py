"""Answers to problems with rules by solvers that know the problem without them, its relaxation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optsched.solvers.progress import Progress
from optsched.solvers.result import Budget, Incumbent, Result
from optsched.solvers.solver import OnIncumbent

SHARE = 0.5
"""Share of the budget of an exact solver that goes to the relaxation."""

LEAST = 1e-3
"""Least budget of CP-SAT."""


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
    value, bound = problem.objective(found), problem.bound(first.bound)
    progress.note(value, bound)
    work, limit = first.work, first.limit
    if exact and value != bound:
        spent = progress.seconds(), work
        limits = zip((budget.seconds, budget.work), spent)
        rest = Budget(*(limit and max(LEAST, limit - done) for limit, done in limits))

        def note(incumbent: Incumbent) -> None:
            progress.note(incumbent.objective, _tighter(bound, incumbent.bound))

        second = CpSat().solve(problem, budget=rest, hint=found, seed=seed, on_incumbent=note)
        work, limit = work + second.work, second.limit
        if second.solution is not None:
            found, value = second.solution, problem.objective(second.solution)
            bound = _tighter(bound, second.bound)
            progress.note(value, bound)
    return progress.result("", found, value, bound, limit, work=work, seed=seed)


def _tighter(one: int | None, other: float | None) -> int | None:
    limits = [round(limit) for limit in (one, other) if limit is not None]
    return min(limits, default=None)
