"""Comparing solvers: the same problems, the same budget, every answer verified."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.json_text import json_text
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.solvers.apart import Apart, EndedError
from optsched.solvers.asking import supports, verify, version_of
from optsched.solvers.comparison import tables
from optsched.solvers.comparison.claims import settle
from optsched.solvers.comparison.entries import (
    Contender,
    Entry,
    choose_contenders,
    kinds,
    read_entries,
    skipped,
)
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.solver import Solver
from optsched.solvers.solving import check_budget, checked_seed, solve

if TYPE_CHECKING:
    import pandas as pd

WARM_UP = 1.0
"""Seconds that a solver may spend, unrecorded, on the smallest problem before it is timed."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Answers of several solvers to the same problems.

    Parameters
    ----------
    results : pandas.DataFrame
        One row per snapshot and solver. ``best_objective`` is the best verified or known objective
        of the snapshot, ``best_bound`` the tightest bound that any solver proved or that is known;
        ``gap`` is to the solver's own bound.
    incumbents : pandas.DataFrame
        One row per improving solution; the last one of a snapshot and solver is its answer.
    answers : tuple of dict
        The solution of each snapshot and solver in the model's JSON form; an answer that did not
        pass verification as text.
    config : mapping
        Snapshots with their SHA-256, solvers with their versions and options, budget, seed.
    wrong_answers : tuple of str
        Answers that did not pass verification: on which snapshot, whose, and what is wrong.
    contradictions : tuple of str
        Claims that exclude each other, between solvers or with what was known of a snapshot.
        Whoever a verified solution refutes has the status ``error`` in `results`.
    failures : tuple of str
        Solvers that failed, or whose result is not of the form of one: where, who and how.
    refusals : tuple of str
        Solvers that refused a problem, as too large for instance: where, who and why.
    skipped : tuple of str
        Which solvers were not asked for which kinds of problem, because they do not answer them.
    """

    results: pd.DataFrame
    incumbents: pd.DataFrame
    answers: tuple[Mapping[str, Any], ...]
    config: Mapping[str, Any]
    wrong_answers: tuple[str, ...]
    contradictions: tuple[str, ...]
    failures: tuple[str, ...]
    refusals: tuple[str, ...]
    skipped: tuple[str, ...]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per kind and solver; see `optsched.solvers.comparison.tables.summarise`."""
        return tables.summarise(self.results)

    def __repr__(self) -> str:
        solvers = ", ".join(solver["name"] for solver in self.config["solvers"])
        found = f", {len(self.wrong_answers):,} wrong answers" if self.wrong_answers else ""
        found += f", {len(self.contradictions):,} contradictions" if self.contradictions else ""
        return f"<Comparison of {solvers}: {len(self.config['snapshots']):,} snapshots{found}>"

    def _repr_html_(self) -> str:
        warnings = ""
        for title, texts in (
            ("Wrong answers", self.wrong_answers),
            ("Contradictions", self.contradictions),
        ):
            found = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
            warnings += f"<p><b>{title}</b></p><ul>{found}</ul>" if found else ""
        return warnings + str(self.table.to_html(index=False, na_rep="-"))


def compare(
    problems: Iterable[str | Path | Snapshot | Problem[Any]],
    solvers: Iterable[str | Solver] | None = None,
    *,
    budget: Budget | None = None,
    seed: int | None = None,
    progress: Callable[[int], None] | None = None,
    in_process_apart: bool = False,
) -> Comparison:
    """Have several solvers answer the same problems, and verify every answer.

    Before a solver is timed it answers the smallest problem of each kind once, unrecorded, so that
    no time goes into imports and compilation. A solver that fails on a problem, or answers wrongly,
    is recorded with status ``error``, and the comparison goes on.

    Parameters
    ----------
    problems : iterable of path, Snapshot or Problem
        The problems, of one kind or of several. A folder stands for the snapshots in it.
    solvers : iterable of str or Solver, optional
        Solvers, profiles, or profiles' TOML files; every installed solver that answers at least one
        of the problems if left out. A solver is skipped for the kinds that it does not answer.
    budget : Budget, optional
        What each solve may spend; the profile's budget, or no limit, if left out.
    seed : int, optional
        Seed of the solvers' random choices; the profile's, or 0, if left out.
    progress : callable, optional
        Called with the number of problems that are done.
    in_process_apart : bool
        Let the solvers work in a fork of this process, as the command ``optsched compare`` does.
        One that goes on after its time limit is ended there, after a grace of as long again, but
        20 s at least; it has failed then, as has one that crashes.

    Raises
    ------
    InputError
        If a problem cannot be read, a solver is not known or not installed, two solvers have one
        name, or there is nothing to solve.

    Examples
    --------
    >>> from optsched.models import WindowMKP
    >>> example = WindowMKP(weights=[6, 4, 3, 1, 2], capacities=[3, 6, 6])
    >>> comparison = compare([example], ["greedy", "branch-and-bound"])
    >>> comparison.results[["solver", "status", "objective", "best_bound"]]
                 solver    status  objective  best_bound
    0            greedy  feasible         15        15.0
    1  branch-and-bound   optimal         15        15.0
    """
    check_budget(budget)
    seed = checked_seed(seed)
    entries = read_entries(problems)
    contenders = choose_contenders(solvers, entries)

    def answer(who: int, what: int, is_warm_up: bool) -> Result:
        contender, problem = contenders[who], entries[what].problem
        if is_warm_up:
            return solve(problem, contender.given, budget=_warm_up_budget(contender, budget))
        return solve(problem, contender.given, budget=budget, seed=seed)

    answered = []
    wrong_answers: list[str] = []
    failures: list[str] = []
    refusals: list[str] = []
    with Apart(answer) as answer_apart:
        ask = answer_apart if in_process_apart else answer
        for who, contender in enumerate(contenders):
            for what in _smallest(entries):
                if supports(contender.solver, entries[what].problem):
                    _result(ask, contender, entries[what].problem, who, what, True)
        for what, entry in enumerate(entries):
            results = [
                _result(ask, contender, entry.problem, who, what, False)
                for who, contender in enumerate(contenders)
                if supports(contender.solver, entry.problem)
            ]
            for result in results:
                told = f"{entry.name}: {result.message}"
                if result.wrong:
                    wrong_answers.append(told)
                elif result.status is Status.ERROR:
                    failures.append(told)
                elif result.message:
                    refusals.append(told)
            answered.append((entry, settle(entry.problem, entry.known, results)))
            if progress is not None:
                progress(what + 1)
    return Comparison(
        results=tables.result_frame(answered),
        incumbents=tables.incumbent_frame(answered),
        answers=tuple(tables.answers(answered)),
        config=_config(entries, contenders, budget, seed),
        wrong_answers=tuple(wrong_answers),
        contradictions=tuple(
            f"{entry.name}: {text}"
            for entry, settled in answered
            for text in settled.contradictions
        ),
        failures=tuple(failures),
        refusals=tuple(refusals),
        skipped=skipped(contenders, entries),
    )


def _warm_up_budget(contender: Contender, budget: Budget | None) -> Budget:
    spent = budget or contender.profile.budget
    seconds = WARM_UP if spent.seconds is None else min(WARM_UP, spent.seconds)
    return Budget(seconds, contender.solver.default_work)


def _smallest(entries: Sequence[Entry]) -> Iterator[int]:
    """Yield the place of the smallest problem of each kind, for the warm-up."""
    for kind in kinds(entries):
        alike = [what for what, entry in enumerate(entries) if entry.problem.name == kind]
        yield min(alike, key=lambda what: len(json_text(entries[what].problem.to_json())))


def _result(
    ask: Callable[..., Result],
    contender: Contender,
    problem: Problem[Any],
    *question: Any,
) -> Result:
    """Return the answer to a question, verified once more where no solver has been at work."""
    began = time.perf_counter()
    try:
        result = ask(*question)
    except EndedError as error:
        seconds, message = time.perf_counter() - began, f"{contender.name} {error}"
        return Result(contender.name, Status.ERROR, seconds=seconds, message=message)
    return verify(problem, replace(result, solver=contender.name))


def _config(
    entries: Sequence[Entry],
    contenders: Sequence[Contender],
    budget: Budget | None,
    seed: int | None,
) -> dict[str, Any]:
    from importlib.metadata import version

    from optsched.version import __version__

    return {
        "snapshots": [
            {
                "name": entry.name,
                "path": entry.path,
                "kind": entry.problem.name,
                "size": entry.problem.size,
                "sha256": entry.sha256,
            }
            for entry in entries
        ],
        "solvers": [
            {
                "name": contender.name,
                "solver": contender.profile.solver,
                "version": version_of(contender.solver),
                "options": dict(contender.profile.options),
                "budget": asdict(budget or contender.profile.budget),
                "seed": contender.profile.seed if seed is None else seed,
            }
            for contender in contenders
        ],
        "versions": {"optsched": __version__}
        | {package: version(package) for package in ("numpy", "numba")},
    }
