"""Problems and solvers of a comparison."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optsched import registry
from optsched.errors import InputError, UnknownNameError, brief
from optsched.json_text import json_text
from optsched.models.known_values import known_values
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.models.snapshot_file import read_hashed, snapshot_files
from optsched.solvers.comparison.claims import Known, read_known
from optsched.solvers.profiles import Profile
from optsched.solvers.solver import Solver
from optsched.solvers.solver_call import supports, unsupported, version_of
from optsched.solvers.solving import check_options, find_solver, solvers_of, unknown_solver


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
        if version_of(cls) is None:
            return False
        return any(supports(cls, model) for model in kinds(entries))
    except InputError as error:
        logging.getLogger("optsched").warning("left out: %s", error)
        return False
