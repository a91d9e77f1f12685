"""Claims of several solvers about one problem: best values and contradictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from optsched.errors import InputError
from optsched.models.known_values import FILE as TABLE
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.solvers.result import Result, Status
from optsched.solvers.solver_call import beats, refuted, verify

KNOWN = "the snapshot's known value"


class Claim(NamedTuple):
    """A claim that a solution with an objective exists, or that a bound holds."""

    by: str
    value: float


class Known(NamedTuple):
    """Known values of a problem, None for an unknown one, and what states them."""

    objective: int | None = None
    bound: float | None = None
    solution: Any = None
    infeasible: bool = False
    by: str = "the snapshot"


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Results of several solvers for one problem, reconciled with its known values."""

    # Results; the status is ``error`` if a verified solution of another solver refutes the
    # claim
    results: tuple[Result, ...]
    objective: int | None  # best objective, found or known
    bound: float | None  # tightest bound, proven or known, that is not refuted
    contradictions: tuple[str, ...]  # pairs of claims that cannot both hold


def read_known(snapshot: Snapshot, place: str | Path) -> Known:
    """Return the known objective, bound and solution of a snapshot; messages name its `place`."""
    known = snapshot.known
    for name, kinds, expected in (
        ("objective", int, "an integer"),
        ("bound", int | float, "a number"),
    ):
        value = known.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
            expected = f"{value!r}; expected {expected}"
            raise InputError(expected, file=place, field=f"known {name}")
    infeasible = known.get("infeasible", False)
    if not isinstance(infeasible, bool):
        expected = f"{infeasible!r}; expected true or false"
        raise InputError(expected, file=place, field="known infeasible")
    solution = known.get("solution")
    if solution is not None:
        if not isinstance(solution, Mapping):
            raise InputError("expected an object", file=place, field="known solution")
        try:
            solution = snapshot.problem.solution_from_json(solution)
        except InputError as error:
            raise error.within(place) from None
    source = str(known.get("source"))
    by = source if source.startswith(f"{TABLE}, ") else Known().by
    return Known(known.get("objective"), known.get("bound"), solution, infeasible, by)


def reconcile(problem: Problem[Any], known: Known, results: Sequence[Result]) -> Reconciled:
    """Reconcile the verified results of several solvers with each other and with the known values.

    A verified solution is a fact, so a result is wrong if it claims infeasibility or a bound that
    the solution beats. A solver's proof outweighs a known objective without a solution. A result
    with status ``error`` is returned unchanged.
    """
    sign = 1 if problem.sense == "max" else -1
    contradictions = []
    known_objective, known_bound, known_solution, infeasible, stated_by = known
    found = [
        Claim(r.solver, r.objective) for r in results if r.verified and r.objective is not None
    ]
    if known_solution is not None:
        answer = Result(KNOWN, Status.FEASIBLE, known_solution, objective=known_objective)
        answer = verify(problem, answer)
        if answer.verified and answer.objective is not None:
            found.append(Claim(KNOWN, answer.objective))
        else:
            contradictions.append(answer.message)
            known_objective = None
    best = max(found, key=lambda claim: sign * claim.value, default=None)
    if infeasible and best is not None:
        contradictions.append(f"{stated_by} states that there is no solution; {_has(best)}")

    checked = []
    for result in results:
        wrong = _refuted(result, best, problem.sense)
        if wrong:
            contradictions.append(wrong)
            result = refuted(result, wrong)
        checked.append(result)
    proven = [claim for claim in map(_bound_of, checked) if claim is not None]
    if known_bound is not None:
        if best is not None and beats(best.value, known_bound, problem.sense):
            stated = f"{stated_by} states the bound {_text(known_bound)}"
            contradictions.append(f"{stated}; {_has(best)}")
        else:
            proven.append(Claim(KNOWN, known_bound))
    tightest = min(proven, key=lambda claim: sign * claim.value, default=None)

    objective = None if best is None else int(best.value)
    if known_objective is not None and (
        objective is None or beats(known_objective, objective, problem.sense)
    ):
        denial = _denial(known_objective, tightest, checked, problem.sense)
        if denial:
            stated = f"{stated_by} states the objective {known_objective}"
            contradictions.append(f"{stated}; {denial}")
        else:
            objective = known_objective
    bound = None if tightest is None else tightest.value
    return Reconciled(tuple(checked), objective, bound, tuple(contradictions))


def contradicted(problem: Problem[Any], result: Result, other: Result) -> Result:
    """Return a verified result, as an error if the verified solution of `other` refutes it."""
    if other.objective is None or not other.verified:
        return result
    best = Claim(other.solver, other.objective)
    wrong = _refuted(result, best, problem.sense)
    return refuted(result, wrong) if wrong else result


def _refuted(result: Result, best: Claim | None, sense: str) -> str:
    """Return a message that refutes the claim of a result, or an empty string."""
    if best is None or result.status is Status.ERROR:
        return ""
    if result.status is Status.INFEASIBLE:
        return f"{result.solver} claims that there is no solution; {_has(best)}"
    bound = _bound_of(result)
    if bound is None or not beats(best.value, bound.value, sense):
        return ""
    if result.status is Status.OPTIMAL:
        return f"{result.solver} claims that {_text(bound.value)} is optimal; {_has(best)}"
    return f"{result.solver} claims the bound {_text(bound.value)}; {_has(best)}"


def _bound_of(result: Result) -> Claim | None:
    """Return the bound that a result claims: its objective if that is claimed to be optimal."""
    if result.status is Status.ERROR:
        return None
    value = result.objective if result.status is Status.OPTIMAL else result.bound
    return None if value is None else Claim(result.solver, value)


def _denial(objective: float, tightest: Claim | None, results: Sequence[Result], sense: str) -> str:
    """Return the claim that excludes a known objective, or an empty string."""
    for result in results:
        if result.status is Status.INFEASIBLE:
            return f"{result.solver} claims that there is no solution"
    if tightest is not None and beats(objective, tightest.value, sense):
        return f"{tightest.by} claims the bound {_text(tightest.value)}"
    return ""


def _text(value: float) -> str:
    return f"{value:.15g}"


def _has(best: Claim) -> str:
    return f"{best.by} has a verified solution of {_text(best.value)}"
