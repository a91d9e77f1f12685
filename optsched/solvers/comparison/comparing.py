"""Comparison of solvers with the same problems and budget, every result verified."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.errors import InputError
from optsched.files import json_text
from optsched.models.problem import Problem
from optsched.models.snapshot import Snapshot
from optsched.registry import display_of
from optsched.solvers.comparison import tables
from optsched.solvers.comparison.claims import (
    Contender,
    Entry,
    Reconciled,
    choose_contenders,
    kinds,
    known_tables,
    read_entries,
    reconcile,
    skipped,
)
from optsched.solvers.conflict import explained
from optsched.solvers.finding import supports, version_of
from optsched.solvers.result import Budget, Result, Status
from optsched.solvers.separate_process import EndedError, SeparateProcess
from optsched.solvers.solver import Solver
from optsched.solvers.solver_call import verify
from optsched.solvers.solving import as_budget, checked_seed, solve

if TYPE_CHECKING:
    import pandas as pd

TOLD = ("skipped", "missing", "wrong_answers", "contradictions", "failures", "refusals")
"""Fields of a comparison with messages, in the order of ``comparison.json``."""

WARM_UP = 1.0
"""Seconds that a solver may spend on the unrecorded warm-up solve."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Results of several solvers for the same problems."""

    # One row per snapshot and solver. ``best_objective`` is the best verified or known
    # objective of the snapshot, ``best_bound`` the tightest bound proven by any solver or
    # known; ``gap`` refers to the solver's own bound.
    results: pd.DataFrame
    # One row per improving solution, in order of time; the last one is the final solution
    incumbents: pd.DataFrame
    # Solution for each snapshot and solver, in the JSON form of the model; as text if the
    # solution did not pass verification
    answers: tuple[Mapping[str, Any], ...]
    # Snapshots with their SHA-256, solvers with versions and options, budget and seed
    config: Mapping[str, Any]
    # Results that did not pass verification, each with snapshot, solver and reason
    wrong_answers: tuple[str, ...]
    # Claims that exclude each other, between solvers or with the known values of a snapshot.
    # A result that a verified solution refutes has the status ``error`` in `results`.
    contradictions: tuple[str, ...]
    # Failures of solvers and malformed results, each with snapshot, solver and cause
    failures: tuple[str, ...]
    # Refusals of problems, as too large for instance, each with snapshot, solver and reason
    refusals: tuple[str, ...]
    skipped: tuple[str, ...]  # solvers and the models that they do not accept
    # Snapshots that are left out because the comparison was interrupted; solvers of the first
    # one where no snapshot has the answers of all solvers
    missing: tuple[str, ...] = ()

    @cached_property
    def table(self) -> pd.DataFrame:
        """Summary per model and solver; see `optsched.solvers.comparison.tables.summarize`."""
        return tables.summarize(self.results)

    @property
    def record(self) -> dict[str, Any]:
        """The config with all that went wrong: the content of ``comparison.json``."""
        return dict(self.config) | {name: list(getattr(self, name)) for name in TOLD}

    def __repr__(self) -> str:
        solvers = ", ".join(solver["name"] for solver in self.config["solvers"])
        found = f", {len(self.wrong_answers):,} wrong answers" if self.wrong_answers else ""
        found += f", {len(self.contradictions):,} contradictions" if self.contradictions else ""
        found += ", interrupted" if self.missing else ""
        return f"<Comparison of {solvers}: {len(self.config['snapshots']):,} snapshots{found}>"

    def _repr_html_(self) -> str:
        html: str = display_of("comparison")(self)
        return html


def compare(
    problems: Iterable[str | Path | Snapshot | Problem[Any]],
    solvers: Iterable[str | Solver] | None = None,
    *,
    budget: Budget | float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = None,
    seed: int | Sequence[int] | None = None,
    progress: Callable[[int], None] | None = None,
    separate_process: bool = False,
    interruptible: bool = True,
) -> Comparison:
    """Solve the same problems with several solvers, and verify every result.

    Each solver first solves the smallest problem of each model once, unrecorded, so that imports
    and compilation are not timed. A failure or a wrong answer is recorded with status ``error``,
    and the comparison continues.

    Parameters
    ----------
    problems : iterable of path, Snapshot or Problem
        Problems of one or several models. A folder stands for the snapshots in it.
    solvers : iterable of str or Solver, optional
        Solvers, profiles, or TOML files of profiles; by default every installed solver of at least
        one of the problems. Problems that a solver does not accept are skipped.
    budget : Budget or float, optional
        Budget of each solve, or its seconds; by default that of the profile, or no limit.
    time_limit, work_limit : float, optional
        Limits of the budget, in place of it: wall-clock seconds, and work in each solver's unit.
    seed : int or sequence of int, optional
        Seed of random choices; by default that of the profile, or 0. Of several, each problem is
        solved with each, which counts as a problem of its own.
    progress : callable, optional
        Callback that takes the number of problems done.
    separate_process : bool
        Whether to run the solvers in a separate process, as the command ``optsched compare`` does.
        There, a solver that crashes has failed, and so has a solver that exceeds its time limit by
        as long again, or by 20 s if that is more, after which it is ended.
    interruptible : bool
        Whether Ctrl-C ends the comparison with the problems that all solvers have answered, or the
        answers to the first one, and ``missing`` names the rest. If False, or before the first
        answer, it raises `KeyboardInterrupt`.

    Raises
    ------
    InputError
        If a problem cannot be read, a solver is unknown or not installed, two solvers have the
        same name, or there is nothing to solve.

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
    budget = as_budget(budget, time_limit, work_limit)
    given = [*seed] if isinstance(seed, Sequence) and not isinstance(seed, str) else [seed]
    seeds = [checked_seed(one) for one in given]
    if not seeds or len({*seeds}) < len(seeds):
        raise InputError(f"{seed!r}; expected different integers", field="seed")
    entries = read_entries(problems)
    contenders = choose_contenders(solvers, entries)

    def answer(
        who: int, what: int, one: int | None, is_warm_up: bool, claim: Result | None = None
    ) -> Result:
        contender, snapshot, limits = contenders[who], entries[what].snapshot, budget
        whole = budget or contender.profile.budget
        if claim is not None:
            return explained(snapshot.problem, claim, whole)
        if is_warm_up:
            limits = Budget(min(WARM_UP, whole.seconds or inf), contender.solver.default_work)
        result = solve(
            snapshot,
            contender.given,
            budget=limits,
            seed=one,
            interruptible=False,
            explain=False,
        )
        return replace(result, problem=None)  # known here, and to send it takes time

    answered: list[tuple[Entry, Reconciled]] = []
    missing: tuple[str, ...] = ()
    told: dict[str, list[str]] = {"wrong_answers": [], "failures": [], "refusals": []}
    with SeparateProcess(answer) as call_in_process:
        call = call_in_process if separate_process else answer
        sizes = [len(json_text(entry.problem.to_json())) for entry in entries]
        names = [entry.problem.name for entry in entries]
        for who, contender in enumerate(contenders):
            for model in kinds(entries):
                if supports(contender.solver, model):
                    alike = [what for what, name in enumerate(names) if name == model]
                    what = min(alike, key=sizes.__getitem__)  # for the warm-up
                    _result(call, contender, entries[what].problem, who, what, None, True)
        for what, entry in enumerate(entries):
            results: list[Result] = []
            of_seed: list[int] = []
            try:
                for number, one in enumerate(seeds):
                    for who, contender in enumerate(contenders):
                        if supports(contender.solver, entry.problem.name):
                            asked = (who, what, one, False)
                            results.append(_result(call, contender, entry.problem, *asked))
                            of_seed.append(number)
                reconciled = reconcile(entry.problem, entry.known, results)
                for at, result in enumerate(reconciled.results):
                    if result.status is Status.INFEASIBLE and reconciled.objective is None:
                        who = [one.name for one in contenders].index(result.solver)
                        claim = (who, what, None, False, result)
                        results[at] = _result(call, contenders[who], entry.problem, *claim)
                        break  # one explanation is enough
            except KeyboardInterrupt:
                if not (interruptible and (answered or results)):
                    raise
                missing = _missing(entries[what:], contenders, [] if answered else results)
                if answered:
                    break
            for result in results:
                kind = "failures" if result.status is Status.ERROR else "refusals"
                if result.message:
                    kind = "wrong_answers" if result.wrong else kind
                    told[kind].append(f"{entry.name}: {result.message}")
            answered += _by_seed(entry, seeds, results, of_seed)
            if progress is not None:
                progress(what + 1)
            if missing:
                break
    entries = [entry for entry, _ in answered]
    not_accepted = skipped(contenders, entries)
    took_part = {result.solver for _, reconciled in answered for result in reconciled.results}
    contenders = [contender for contender in contenders if contender.name in took_part]
    return Comparison(
        results=tables.result_frame(answered),
        incumbents=tables.incumbent_frame(answered),
        answers=tuple(tables.answers(answered)),
        config=_config(entries, contenders, budget, seeds),
        contradictions=tuple(
            f"{entry.name}: {text}"
            for entry, reconciled in answered
            for text in reconciled.contradictions
        ),
        skipped=not_accepted,
        missing=missing,
        **{kind: tuple(texts) for kind, texts in told.items()},
    )


def _by_seed(
    entry: Entry, seeds: Sequence[int | None], results: Sequence[Result], of_seed: Sequence[int]
) -> Iterator[tuple[Entry, Reconciled]]:
    """Yield the entry with each seed, and its results reconciled with those of all seeds."""
    reconciled = reconcile(entry.problem, entry.known, results)
    for number, seed in enumerate(seeds):
        own = tuple(result for result, its in zip(reconciled.results, of_seed) if its == number)
        if len(seeds) > 1 and not own:  # interrupted
            continue
        yield (
            entry if len(seeds) == 1 else replace(entry, name=f"{entry.name}, seed {seed}"),
            replace(
                reconciled,
                results=own,
                contradictions=reconciled.contradictions if number == 0 else (),
            ),
        )


def _missing(
    left: Sequence[Entry], contenders: Sequence[Contender], results: Sequence[Result]
) -> tuple[str, ...]:
    """Return in words the answers that are missing, given those to the first problem left."""
    first, *others = left
    answered = {result.solver for result in results}
    lacking = [
        f"{first.name} by {contender.name}"
        for contender in contenders
        if contender.name not in answered and supports(contender.solver, first.problem.name)
    ]
    return (*(lacking if results else [first.name]), *(entry.name for entry in others))


def _result(
    call: Callable[..., Result], contender: Contender, problem: Problem[Any], *arguments: Any
) -> Result:
    """Return the result of a call, verified again in this process, which runs no solver."""
    began = time.perf_counter()
    try:
        result = call(*arguments)
    except EndedError as error:
        seconds, message = time.perf_counter() - began, f"{contender.name} {error}"
        return Result(contender.name, Status.ERROR, seconds=seconds, message=message)
    return verify(problem, replace(result, solver=contender.name))


def _config(
    entries: Sequence[Entry],
    contenders: Sequence[Contender],
    budget: Budget | None,
    seeds: Sequence[int | None],
) -> dict[str, Any]:
    from importlib.metadata import version

    from optsched.version import __version__

    seeds_shown = ",".join(map(str, seeds)) if len(seeds) > 1 else seeds[0]
    return {
        "snapshots": [
            {
                "name": entry.name,
                "path": entry.path,
                "kind": entry.problem.name,
                "size": entry.problem.size,
                "sense": entry.problem.sense,
                "sha256": entry.sha256,
                "known": {
                    "objective": entry.known.objective,
                    "bound": entry.known.bound,
                    "source": entry.snapshot.known.get("source"),
                },
            }
            for entry in entries
        ],
        "known_values": known_tables(entries),
        "solvers": [
            {
                "name": contender.name,
                "solver": contender.profile.solver,
                "version": version_of(contender.solver),
                "options": dict(contender.profile.options),
                "budget": asdict(budget or contender.profile.budget),
                "seed": contender.profile.seed if seeds_shown is None else seeds_shown,
            }
            for contender in contenders
        ],
        "versions": {"optsched": __version__}
        | {package: version(package) for package in ("numpy", "numba")},
    }
