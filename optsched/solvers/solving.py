"""Solves with a named solver or profile."""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from optsched import registry
from optsched.errors import InputError
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import as_snapshot
from optsched.numbers import LARGEST
from optsched.solvers.conflict import explained
from optsched.solvers.finding import check_options, find_solver, label_of, version_of
from optsched.solvers.interruption import noted_once
from optsched.solvers.live_display import shown
from optsched.solvers.result import Budget, Incumbent, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver
from optsched.solvers.solver_call import call_solver, violations_of

log = logging.getLogger("optsched")

_prepared: set[tuple[type[Solver], str]] = set()
"""Solvers that were prepared in this process, each with the model."""

EXACT = "cp-sat"
"""Solver that goes on where a default solver in floating point refuses a problem or fails."""


def solve(
    problem: Problem[Any] | Snapshot | str | Path,
    solver: str | Solver | None = None,
    *,
    budget: Budget | float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = None,
    hint: Any = None,
    seed: int | None = None,
    on_incumbent: OnIncumbent | None = None,
    display: bool = False,
    interruptible: bool = True,
    explain: bool = True,
) -> Result:
    """Solve a problem and verify the result.

    Parameters
    ----------
    problem : Problem, Snapshot or path
        The problem, or a snapshot of it, or the file of one. Options in the snapshot apply to a
        solver given by name, unless its profile states them.
    solver : str or Solver, optional
        Solver, or name of a solver or profile; the default solver of the model if omitted, after
        which CP-SAT goes on where its floating-point numbers do not suffice.
    budget : Budget or float, optional
        Budget of the solve, or its seconds; by default that of the profile, or no limit.
    time_limit, work_limit : float, optional
        Limits of the budget, in place of it: wall-clock seconds, and work in the solver's unit.
    hint : solution or str, optional
        Feasible solution to start from, or the name of a solver that finds one. That solver gets
        half of the time limit, the main solver the rest, and ``seconds`` of the result cover both.
    seed : int, optional
        Seed of random choices; by default that of the profile, or 0.
    on_incumbent : callable, optional
        Callback for each `Incumbent`, called again when its bound becomes tighter.
    display : bool
        Whether to show objective, bound and gap while the solver runs: as a table on a terminal and
        in a notebook, otherwise as lines on stderr.
    interruptible : bool
        Whether the first Ctrl-C ends the search, so that the best solution so far is returned, with
        the limit ``interrupted``. A second one, or a solver that does not end within 5 s, raises
        `KeyboardInterrupt`. If False, the first one does.
    explain : bool
        Whether to look for the requirements in conflict of an infeasible problem, in what is left
        of the time limit and at most 10 s.

    Returns
    -------
    Result
        Verified result. Its status is ``error``, with a message and the violations, if the solver
        fails or its solution is infeasible or has another objective than reported. Exceptions of
        solvers are never raised.

    Raises
    ------
    InputError
        If the file cannot be read, if the solver is unknown, not installed or not for this model,
        if the hint is infeasible, or if the solver of the hint fails.
    """
    snapshot = as_snapshot(problem)
    check_options(snapshot, problem if isinstance(problem, str | Path) else None)
    problem, options = snapshot.problem, snapshot.options
    budget = as_budget(budget, time_limit, work_limit)
    seed = checked_seed(seed)
    given = problem.solver if solver is None else solver
    chosen, profile = find_solver(given, problem.name, options)
    label, version = label_of(given, profile), version_of(chosen)
    budget = budget or profile.budget
    spent = 0.0
    if isinstance(hint, str):
        first = solve(
            snapshot,
            hint,
            budget=_budget_of_hint(hint, problem, budget),
            seed=seed,
            interruptible=interruptible,
        )
        if first.limit is Limit.INTERRUPT:
            return first
        if first.status is Status.ERROR:
            raise InputError(first.message, field="hint")
        hint, spent = first.solution, first.seconds
    if hint is not None and (violations := violations_of(problem, hint)):
        raise InputError(f"the hint is not a feasible solution: {violations[0]}")
    seed = profile.seed if seed is None else seed
    listeners = [] if on_incumbent is None else [on_incumbent]

    def report(found: Incumbent) -> None:
        for listener in listeners:
            listener(found._replace(seconds=found.seconds + spent))

    @contextmanager
    def watched() -> Iterator[None]:
        with ExitStack() as stack:
            if interruptible:
                stack.enter_context(noted_once())
            if display:
                listeners.append(stack.enter_context(shown()))
            yield

    found = f"{label} ({profile.solver} {version})"
    log.debug("%s solves %s %s, limit: %s", found, problem.name, problem.size, budget)
    # a heuristic is prepared by a whole solve, which has no time limit to keep
    prepare = chosen.exact or (type(chosen), problem.name) not in _prepared
    _prepared.add((type(chosen), problem.name))
    result = call_solver(
        chosen,
        problem,
        name=label,
        budget=_remaining(budget, spent),
        hint=hint,
        seed=seed,
        on_incumbent=report if listeners or display else None,
        prepare=prepare,
        around=watched(),
    )
    if explain and result.status is Status.INFEASIBLE:
        with suppress(KeyboardInterrupt) if interruptible else nullcontext():
            result = explained(problem, result, _remaining(budget, spent + result.seconds))
    refused = result.message and result.limit is None and getattr(chosen, "floating_point", False)
    if solver is None and refused:
        log.info("%s; %s goes on", result.message, EXACT)
        spent += result.seconds
        left = _remaining(budget, spent)
        # that solver counts work in a unit of its own
        work = None if left.work is None else registry.solvers[EXACT].default_work
        result = solve(
            snapshot,
            EXACT,
            budget=Budget(left.seconds, work),
            hint=hint,
            seed=seed,
            on_incumbent=None if on_incumbent is None else report,
            display=display,
            interruptible=interruptible,
            explain=explain,
        )
    return replace(
        result,
        seconds=spent + result.seconds,
        incumbents=tuple(one._replace(seconds=one.seconds + spent) for one in result.incumbents),
        version=result.version or version or "",
        seed=seed,
        problem=problem,
    )


def as_budget(budget: Any, time_limit: Any = None, work_limit: Any = None) -> Budget | None:
    """Return an argument that is a budget, its seconds, or None; limits may take its place."""
    if time_limit is not None or work_limit is not None:
        if budget is not None:
            expected = "expected a budget, or time_limit and work_limit"
            raise InputError(f"{budget!r} beside a limit; {expected}", field="budget")
        return Budget(time_limit, work_limit)
    if isinstance(budget, Budget | None):
        return budget
    if isinstance(budget, int | float) and not isinstance(budget, bool):
        return Budget(seconds=budget)
    expected = "optsched.Budget(seconds=...), optsched.Budget(work=...), seconds or None"
    raise InputError(f"{budget!r}; expected {expected}", field="budget")


def checked_seed(seed: Any) -> int | None:
    """Return a seed as a plain integer, or None if it is omitted."""
    if seed is None:
        return None
    try:
        number = operator.index(seed)
    except TypeError:
        raise InputError(f"{seed!r}; expected an integer", field="seed") from None
    if abs(number) > LARGEST:
        raise InputError(f"{seed!r}; expected an integer of at most 2^53", field="seed")
    return number


def _budget_of_hint(name: str, problem: Problem[Any], whole: Budget) -> Budget:
    """Return the budget of the solver of a hint, given the budget of the whole solve."""
    solver, profile = find_solver(name, problem.name)
    if whole.seconds is not None:
        return Budget(whole.seconds / 2, profile.budget.work)
    if whole.work is not None and profile.budget == Budget():
        # the two solvers count work in different units
        return Budget(work=solver.default_work)
    return profile.budget


def _remaining(budget: Budget, spent: float) -> Budget:
    if budget.seconds is None:
        return budget
    return Budget(max(budget.seconds - spent, budget.seconds * 0.01), budget.work)
