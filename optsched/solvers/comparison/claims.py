"""Problems and solvers of a comparison, their claims about one problem, and contradictions."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from optsched import registry
from optsched.errors import InputError, UnknownNameError, brief
from optsched.files import json_text
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import TABLE, known_values, read_hashed, snapshot_files
from optsched.solvers.finding import (
    Profile,
    check_options,
    find_solver,
    solvers_of,
    supports,
    unknown_solver,
    unsupported,
    version_of,
)
from optsched.solvers.result import Result, Status
from optsched.solvers.solver import Solver
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

    results: tuple[Result, ...]  # with the status ``error`` if a verified solution refutes one
    objective: int | None  # best objective, found or known
    bound: float | None  # tightest bound, proven or known, that is not refuted
    contradictions: tuple[str, ...]  # pairs of claims that cannot both hold


def read_known(snapshot: Snapshot, place: str | Path) -> Known:
    """Return the known objective, bound and solution of a snapshot; messages name its `place`."""
    known = {"objective": None, "bound": None, "infeasible": False, **snapshot.known}
    for name, kinds, expected in (
        ("objective", int | None, "an integer"),
        ("bound", int | float | None, "a number"),
        ("infeasible", bool, "true or false"),
    ):
        value = known[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            wrong = f"{value!r}; expected {expected}"
            raise InputError(wrong, file=place, field=f"known {name}")
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
    return Known(known["objective"], known["bound"], solution, known["infeasible"], by)


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
        deniers = [one.solver for one in checked if one.status is Status.INFEASIBLE]
        stated = f"{stated_by} states the objective {known_objective}"
        if deniers:
            contradictions.append(f"{stated}; {deniers[0]} claims that there is no solution")
        elif tightest is not None and beats(known_objective, tightest.value, problem.sense):
            bound = f"{tightest.by} claims the bound {_text(tightest.value)}"
            contradictions.append(f"{stated}; {bound}")
        else:
            objective = known_objective
    tightest_bound = None if tightest is None else tightest.value
    return Reconciled(tuple(checked), objective, tightest_bound, tuple(contradictions))


def contradicted(problem: Problem[Any], result: Result, other: Result) -> Result:
    """Return a verified result, as an error if the verified solution of `other` refutes it."""
    if other.objective is None or not other.verified:
        return result
    wrong = _refuted(result, Claim(other.solver, other.objective), problem.sense)
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
    value, is_optimal = _text(bound.value), result.status is Status.OPTIMAL
    claim = f"that {value} is optimal" if is_optimal else f"the bound {value}"
    return f"{result.solver} claims {claim}; {_has(best)}"


def _bound_of(result: Result) -> Claim | None:
    """Return the bound that a result claims: its objective if that is claimed to be optimal."""
    if result.status is Status.ERROR:
        return None
    value = result.objective if result.status is Status.OPTIMAL else result.bound
    return None if value is None else Claim(result.solver, value)


def _text(value: float) -> str:
    return f"{value:.15g}"


def _has(best: Claim) -> str:
    return f"{best.by} has a verified solution of {_text(best.value)}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A problem of a comparison."""

    name: str  # name of the file, or the model and a number
    snapshot: Snapshot  # the snapshot of the problem
    path: str | None  # file of the snapshot, if any
    known: Known  # known values of the problem
    sha256: str  # SHA-256 of the snapshot file, written or not

    @property
    def problem(self) -> Problem[Any]:
        """The problem."""
        return self.snapshot.problem


@dataclass(frozen=True, slots=True)
class Contender:
    """A solver of a comparison."""

    name: str  # name of the solver or profile
    given: str | Solver  # solver as the user specified it
    solver: Solver
    profile: Profile  # options, budget and seed of the solver


def read_entries(problems: Iterable[str | Path | Snapshot | Problem[Any]]) -> list[Entry]:
    """Read the problems of a comparison and name them."""
    entries: dict[str, Entry] = {}
    mistakes: list[InputError] = []
    paths = set()
    for number, given in enumerate(_expanded(problems, mistakes), start=1):
        if isinstance(given, str | Path):
            path = str(given)
            try:
                snapshot, digest = read_hashed(given)
            except InputError as error:
                mistakes.append(error)
                continue
            name = Path(path).name.removesuffix(".gz").removesuffix(".json")
            name = path if name in entries else name
        else:
            snapshot, path = given if isinstance(given, Snapshot) else Snapshot(given), None
            data = (json_text(snapshot.to_json(), indent=1) + "\n").encode()
            digest = hashlib.sha256(data).hexdigest()
            name = f"{snapshot.problem.name}-{number}"
        if name in entries or (path is not None and path in paths):
            raise InputError(f"snapshot {name!r} is named twice; expected different ones")
        paths.add(path)
        try:
            check_options(snapshot, path)
            known = read_known(snapshot, path or name)
        except InputError as error:
            mistakes.append(error)
            continue
        entries[name] = Entry(name, snapshot, path, known, digest)
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        lines = dict.fromkeys(line for error in mistakes for line in error.lines())
        raise InputError(*lines)  # a table of known values is read for many snapshots
    if not entries:
        raise InputError("nothing to solve; expected at least one snapshot")
    return list(entries.values())


def known_tables(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the tables of known values beside the problems, each with its use, for the config."""
    paths = [Path(entry.path) for entry in entries if entry.path is not None]
    tables = []
    for folder in dict.fromkeys(path.parent for path in paths):
        of_folder = [path for path in paths if path.parent == folder]
        table = known_values(of_folder[0])
        if table is not None:
            used = sum(table.name_of(path) is not None for path in of_folder)
            about = {"path": str(table.path), "sha256": table.sha256, "snapshots": used}
            unused = table.unused([*of_folder, *snapshot_files(folder)])
            tables.append(about | {"unused": unused})
    return tables


def _expanded(problems: Any, mistakes: list[InputError]) -> Iterator[Any]:
    """Yield the problems, with folders replaced by their files; collect mistakes."""
    if isinstance(problems, str | Path | Snapshot | Problem) or not isinstance(problems, Iterable):
        problems = [problems]
    for given in problems:
        if isinstance(given, str | Path):
            try:
                yield from snapshot_files(Path(given))
            except InputError as error:
                mistakes.append(error)
        elif isinstance(given, Snapshot | Problem):
            yield given
        else:
            expected = "expected a problem, a snapshot, the file of one, or a folder of them"
            mistakes.append(InputError(f"{brief(given)}; {expected}", field="problems"))


def choose_contenders(
    solvers: Iterable[str | Solver] | None, entries: Sequence[Entry]
) -> list[Contender]:
    """Return the solvers of a comparison, by default all installed solvers of its problems."""
    if solvers is None:
        solvers = [name for name in registry.solvers if _is_of_use(registry.solvers[name], entries)]
    elif isinstance(solvers, str | Solver) or not isinstance(solvers, Iterable):
        solvers = [solvers]
    contenders: dict[str, Contender] = {}
    for given in solvers:
        try:
            solver, profile = find_solver(given)
        except UnknownNameError as error:
            if error.noun != "solver":
                raise
            raise unknown_solver(error.name, kinds(entries)) from None
        if profile.name in contenders:
            raise InputError(f"solver {profile.name!r} is named twice; expected different names")
        contenders[profile.name] = Contender(profile.name, given, solver, profile)
    chosen = list(contenders.values())
    models = kinds(entries)
    if not any(supports(contender.solver, model) for contender in chosen for model in models):
        wanted = f"{' or '.join(models)} problems"
        if not chosen:
            raise InputError(f"nothing to solve; no solver for {wanted}")
        solve = "solves" if len(chosen) == 1 else "solve"
        expected = f"expected one of {', '.join(solvers_of(models))}"
        reason = f"{' and '.join(contenders)} {solve} no {wanted}; {expected}"
        raise InputError(f"nothing to solve; {reason}")
    return chosen


def kinds(entries: Sequence[Entry]) -> list[str]:
    """Return the models of the problems, in order of appearance."""
    return list(dict.fromkeys(entry.problem.name for entry in entries))


def skipped(contenders: Sequence[Contender], entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return a message for each solver and model that the solver does not accept."""
    counts = Counter(
        (contender.name, entry.problem.name)
        for contender in contenders
        for entry in entries
        if not supports(contender.solver, entry.problem.name)
    )
    return tuple(
        f"{unsupported(solver, model)}: {count} skipped"
        for (solver, model), count in counts.items()
    )


def _is_of_use(cls: type[Solver], entries: Sequence[Entry]) -> bool:
    try:
        return version_of(cls) is not None and any(supports(cls, m) for m in kinds(entries))
    except InputError as error:
        logging.getLogger("optsched").warning("left out: %s", error)
        return False
