"""Calls of solvers, and verification of their results."""

from __future__ import annotations

import copy
import logging
import math
import reprlib
import textwrap
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any

from optsched.compilation import clock
from optsched.errors import InputError, StatementError
from optsched.models.problem import Problem, Violation
from optsched.registry import place_of
from optsched.solvers import separate_process
from optsched.solvers.anytime import Progress, StoppedError
from optsched.solvers.result import INFINITE, Budget, Incumbent, Limit, Result, Status
from optsched.solvers.solver import OnIncumbent, Solver

TOLERANCE = 1e-6
"""Relative tolerance of a fractional bound, which is a floating-point number."""

LONGEST_MESSAGE = 400
"""Largest length of a message, in characters."""


KEPT = ("status", "solution", "objective", "bound", "limit", "work", "incumbents")
"""Fields of a well-formed result that are taken over as they are."""


def call_solver(
    solver: Solver,
    problem: Problem[Any],
    *,
    name: str,
    budget: Budget,
    hint: Any = None,
    seed: int = 0,
    on_incumbent: OnIncumbent | None = None,
    prepare: bool = False,
    around: AbstractContextManager[object] | None = None,
) -> Result:
    """Call a solver and verify its result, which gets a `name`.

    A solver of another package gets copies of the problem and the hint, so that verification and
    the fallback use data that the solver cannot have changed. For the solvers of this package,
    copies and checks of the result's form are left to the tests, because in a simulation both would
    take longer than many decisions. If `prepare`, the solver's method of that name is called first;
    its time does not count. The solver then searches in the context `around`. For the other
    parameters, see `Solver.solve`.

    The result is verified as by `verify`. An exception of the solver, or a result of the wrong
    form, gives the status ``error``; an `InputError` is a refusal and gives ``no-solution``. Only
    `KeyboardInterrupt` and exceptions of `on_incumbent` are raised.
    """
    trusted = type(solver).__module__.partition(".")[0] == "optsched"
    given = problem
    if not trusted:
        given, hint = problem.copy(), copy.deepcopy(hint)
    raised_by_callback: list[BaseException] = []

    def report(found: Incumbent) -> None:
        assert on_incumbent is not None
        if not _is_incumbent(found):
            raise TypeError(f"on_incumbent was called with {repr_of(found)}; expected an Incumbent")
        try:
            on_incumbent(found)
        except BaseException as error:
            raised_by_callback.append(error)
            raise

    search: Callable[..., Result] = solver.solve
    if problem.relaxation is not None and solver.models is not None:
        ask = partial(call_solver, solver, name=name)
        search = partial(solve_by_relaxation, ask, exact=solver.exact)
    began = clock()
    try:
        if prepare:
            limit = separate_process.PREPARATION
            separate_process.allow(limit, f"the {limit:g} s for preparation")
            solver.prepare(given)
        separate_process.allow_solve(budget.seconds)
        began = clock()
        with around or nullcontext():
            answer = search(
                given,
                budget=budget,
                hint=hint,
                seed=seed,
                on_incumbent=None if on_incumbent is None else report,
            )
        if raised_by_callback:  # the solver has ignored the exception
            raise raised_by_callback[0]
        seconds = clock() - began
        mistake = "" if trusted else _form_error(answer)
        if not mistake:
            parts = _parts(answer, name, seconds) if trusted else _plain(answer, name, seconds)
            parts.update(_verdict(problem, answer, name, seconds))
            return Result(**parts)
        status, message = Status.ERROR, f"{name} returned {mistake}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if raised_by_callback:
            raise raised_by_callback[0] from None
        seconds = clock() - began
        if isinstance(error, InputError) and not isinstance(error, StatementError):
            status, message = Status.NO_SOLUTION, f"{name}: {_one_line(error)}"
        else:
            logging.getLogger("optsched").debug("%s raised", name, exc_info=True)
            status, message = Status.ERROR, f"{name} raised {described(error, solver)}"
    finally:
        separate_process.allow(None)
    refused = status is Status.NO_SOLUTION
    return Result(name, status, seconds=seconds, verified=refused, message=message)


def prepare(solver: Solver, name: str) -> None:
    """Let a solver import and compile its dependencies."""
    try:
        solver.prepare()
    except (KeyboardInterrupt, InputError):
        raise
    except BaseException as error:
        raise InputError(
            f"solver {name!r} cannot be prepared: {described(error, solver)}"
        ) from None


def verify(problem: Problem[Any], result: Result) -> Result:
    """Return `result` with its objective recomputed, and with status ``error`` if it is wrong.

    A result is wrong if its solution is infeasible, if its objective is not the value of the
    solution, if the solution beats the bound or the bound of an incumbent, if the other fields
    contradict the status, if an incumbent is better than the solution, or if incumbents are not in
    order of time. A wrong result keeps its solution for inspection.
    """
    return replace(result, **_verdict(problem, result, result.solver, result.seconds))


def _verdict(problem: Problem[Any], result: Result, name: str, seconds: float) -> dict[str, Any]:
    """Return the fields that verification changes in a result."""
    if result.status is Status.ERROR:
        return {"verified": False}
    with_solution = result.status in (Status.OPTIMAL, Status.FEASIBLE)
    if with_solution != (result.solution is not None):
        has = "no solution" if with_solution else "a solution"
        return _refutation(f"{name} claims {result.status.value} with {has}")
    if result.solution is None:
        if result.incumbents:
            return _refutation(f"{name} claims {result.status.value} with an incumbent")
        return {"verified": True}
    if violations := violations_of(problem, result.solution):
        message = f"{name} returned an infeasible solution: {_one_line(violations[0])}"
        return _refutation(message) | {"violations": tuple(violations)}
    objective, bound = problem.objective(result.solution), result.bound
    met = bound is not None and (objective == bound or abs(objective - bound) < _tolerance(bound))
    if result.objective is not None and result.objective != objective:
        mistake = f"reports {result.objective} for a solution of {objective}"
    elif bound is not None and beats(objective, bound, problem.sense):
        mistake = f"claims the bound {bound}, beaten by {objective}"
    elif result.status is Status.OPTIMAL and not met:
        mistake = f"claims that {objective} is optimal with a bound of {bound}"
    else:
        mistake = _incumbent_error(problem, result, objective)
    if mistake:
        return _refutation(f"{name} {mistake}", objective)
    verified = {"objective": objective, "verified": True}
    only = (Incumbent(seconds, objective, bound),)
    return verified if result.incumbents else verified | {"incumbents": only}


def _incumbent_error(problem: Problem[Any], result: Result, objective: int) -> str:
    """Return a message on the first contradictory incumbent, or an empty string."""
    before = 0.0
    for seconds, found, bound in result.incumbents:
        if seconds < before:
            return f"reports an incumbent at {seconds} s after one at {before} s"
        if beats(found, objective, problem.sense):
            return f"reports an incumbent of {found}, better than its answer of {objective}"
        if bound not in (None, result.bound) and beats(objective, bound, problem.sense):
            return f"claims the bound {bound} with an incumbent, beaten by {objective}"
        before = seconds
    return ""


def refuted(result: Result, message: str) -> Result:
    """Return a verified result as a wrong answer, for the reason in `message`."""
    return replace(result, **_refutation(message, result.objective))


def _refutation(message: str, objective: int | None = None) -> dict[str, Any]:
    """Return the changed fields of a wrong answer, with the objective of a feasible solution."""
    return {
        "status": Status.ERROR,
        "objective": objective,
        "verified": False,
        "wrong": True,
        "message": message,
        "conflict": None,
    }


def violations_of(problem: Problem[Any], solution: Any) -> list[Violation]:
    """Return the violations of a solution, which may be any object."""
    try:
        return [] if problem.passes_quick_check(solution) else problem.violations(solution)
    except Exception as error:
        return [Violation("form", f"not a solution at all ({described(error)})")]


def answer_to_json(problem: Problem[Any], result: Result) -> Any:
    """Return the solution of a result in the JSON form of its model, or None without a solution.

    A solution that did not pass verification may be any object, and is returned as text.
    """
    if result.solution is None:
        return None
    if result.verified:
        return problem.solution_to_json(result.solution)
    try:
        return repr(result.solution)
    except Exception:
        return repr_of(result.solution)


def _form_error(answer: Any) -> str:
    """Return a message on the first malformed field of a result, or an empty string."""
    if not isinstance(answer, Result):
        return f"{repr_of(answer)}; expected a Result"
    expected = "a finite number below 1e20"
    for name, value, fine, wanted in (
        ("status", answer.status, type(answer.status) is Status, "a Status"),
        ("objective", answer.objective, _is_number_or_none(answer.objective), expected),
        ("bound", answer.bound, _is_number_or_none(answer.bound), expected),
        ("limit", answer.limit, isinstance(answer.limit, Limit | None), "a Limit or None"),
        ("work", answer.work, _is_amount(answer.work), "a number from 0 to 1e20"),
        ("message", answer.message, isinstance(answer.message, str), "a text"),
    ):
        if not fine:
            return f"a result with the {name} {repr_of(value)}; expected {wanted}"
    if not isinstance(answer.incumbents, tuple | list):
        return f"a result with the incumbents {repr_of(answer.incumbents)}; expected a tuple"
    for found in answer.incumbents:
        if not _is_incumbent(found):
            return f"a result with the incumbent {repr_of(found)}; expected finite numbers"
    return ""


def _is_incumbent(found: Any) -> bool:
    return (
        isinstance(found, Incumbent)
        and _is_amount(found.seconds)
        and _is_number(found.objective)
        and _is_number_or_none(found.bound)
    )


def _is_number(value: Any) -> bool:
    kind = type(value)
    # nearly all numbers are int or float, and the check for a Real is slow
    real = kind is int or kind is float or (isinstance(value, Real) and kind is not bool)
    return real and bool(-INFINITE < value < INFINITE)


def _is_number_or_none(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_amount(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _parts(answer: Result, name: str, seconds: float) -> dict[str, Any]:
    """Return the fields of a well-formed result, with the caller's name and seconds."""
    message = _one_line(answer.message) if answer.message else ""
    if answer.status is Status.ERROR and not message:
        message = "failed, and does not say why"
    if message and not message.startswith(name):
        message = f"{name}: {message}"
    kept = {field: getattr(answer, field) for field in KEPT}
    return kept | {"solver": name, "seconds": seconds, "message": message}


def _plain(answer: Result, name: str, seconds: float) -> dict[str, Any]:
    """Return the fields of a well-formed result with plain Python numbers."""
    names = ("objective", "bound", "work")
    numbers = {part: _plain_number(getattr(answer, part)) for part in names}
    incumbents = tuple(Incumbent(*map(_plain_number, one)) for one in answer.incumbents)
    return _parts(answer, name, seconds) | numbers | {"incumbents": incumbents}


def _plain_number(value: Any) -> Any:
    if type(value) in (int, float) or value is None:
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def described(error: BaseException, solver: Solver | type[Solver] | None = None) -> str:
    """Return an error, with the lines of the user's file with a solver that it comes from."""
    place = place_of(error, solver if isinstance(solver, type) else type(solver))
    described = ": ".join(filter(None, (type(error).__name__, _one_line(error))))
    return f"{described} ({place})" if place else described


def _one_line(what: object) -> str:
    try:
        # truncated first, because `shorten` splits the whole text into words
        text = str(what)[: 4 * LONGEST_MESSAGE]
        return textwrap.shorten(text, LONGEST_MESSAGE, placeholder=" ...")
    except Exception:
        return f"a text that cannot be read, of {type(what).__name__}"


def repr_of(value: object) -> str:
    """Return a value of a solver as a short line of text."""
    try:
        return _one_line(reprlib.repr(value))
    except Exception:
        return f"something of {type(value).__name__}"


def beats(objective: float, bound: float, sense: str) -> bool:
    """Return whether an objective is better than a bound; whole numbers are compared exactly.

    >>> beats(10**12 + 1, 10**12, "max"), beats(15, 14.999_999, "max")
    (True, False)
    """
    if tolerance := _tolerance(bound):
        bound += tolerance if sense == "max" else -tolerance
    return objective > bound if sense == "max" else objective < bound


def _tolerance(bound: float) -> float:
    return 0.0 if bound == math.floor(bound) else min(TOLERANCE * max(1.0, abs(bound)), 0.5)


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
    exact, it takes half of the budget, CP-SAT goes on, and the bound of the relaxation holds.
    """
    from optsched.solvers.cp_sat import CpSat

    progress = Progress(budget, on_incumbent, problem.sense)
    part = Budget(*(limit and limit / 2 for limit in (budget.seconds, budget.work)))
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
